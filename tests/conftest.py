"""Fixtures that tests in several folders share."""

import importlib.util
import sys

import pytest

from unmasked import project


@pytest.fixture(scope="module")
def bench():
    """`benchmarks/run.py`, which is no part of the package, as a module."""
    path = project.root() / "benchmarks" / "run.py"
    spec = importlib.util.spec_from_file_location("benchmark_run", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def states_its_numbers():
    """Checks a figure: its name, words of its alt text and caption, no missing number, drawable."""

    def check(figure, name, alt, caption=""):
        assert figure.name == name
        assert alt in figure.alt
        assert caption in figure.caption
        assert not {"nan", "None"} & set(figure.alt.split() + figure.caption.split())
        assert len(figure.data)
        figure.figure.canvas.draw()

    return check
