"""Why masked language modelling works: three papers reproduced as an executable book."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("unmasked")
except PackageNotFoundError:  # imported straight from a source folder
    __version__ = "0+unknown"

__all__ = ["__version__"]
