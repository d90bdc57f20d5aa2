"""Why masked language modelling works: three papers reproduced as an executable book."""

import warnings
from importlib.metadata import PackageNotFoundError, version

# Without ipywidgets, which a static page cannot show, progress bars are text; tqdm warns of that.
warnings.filterwarnings("ignore", message="IProgress not found")

try:
    __version__ = version("unmasked")
except PackageNotFoundError:  # imported straight from a source folder
    __version__ = "0+unknown"

__all__ = ["__version__"]
