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
