"""Tests of unmasked.fingerprint, on a small package that is written, imported and changed."""

from __future__ import annotations

import importlib
import sys

import pytest

from unmasked.fingerprint import fingerprint

MODULES = {
    "__init__": "",
    "top": """
        from . import middle
        from ._low import helper as low_helper
        import math
        def compute(config, seed, workdir):
            return middle.step(seed) + Shape().area() + math.pi + low_helper()
        class Shape:
            side: int = 2
            def area(self):
                return self.side ** 2
        def unrelated():
            return 1
    """,
    "middle": """
        def step(seed):
            from probe_package._low import deep
            return deep(seed) if seed else None
    """,
    "_low": """
        RATE = 0.15
        SCALE: float = RATE * 2
        def deep(x, y=1):
            '''Says something.'''
            return x * SCALE + y
        def helper():
            # a remark
            return f"{RATE:.2f}"
    """,
}


@pytest.fixture
def probe(tmp_path, monkeypatch):
    """A function that writes the package with one replacement and returns compute's fingerprint."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    folder = tmp_path / "probe_package"
    folder.mkdir()

    def measure(module: str = "", old: str = "", new: str = "", without: tuple = ()) -> str:
        for name, text in MODULES.items():
            lines = [line[8:] for line in text.splitlines()]
            source = "\n".join(lines)
            if name == module:
                assert old in source
                source = source.replace(old, new)
            (folder / f"{name}.py").write_text(source)
        for name in [name for name in sys.modules if name.startswith("probe_package")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        compute = importlib.import_module("probe_package.top").compute
        return fingerprint(compute, without=without)

    yield measure
    for name in [name for name in sys.modules if name.startswith("probe_package")]:
        del sys.modules[name]


def test_it_is_twelve_hex_digits_and_stable(probe):
    first = probe()
    assert len(first) == 12
    assert int(first, 16) >= 0
    assert probe() == first


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("_low", "0.15", "0.16"),  # a constant behind a constant, three calls deep
        ("_low", "y=1", "y=2"),
        ("_low", ":.2f", ":.3f"),
        ("_low", "x * SCALE", "x / SCALE"),
        ("middle", "if seed", "if not seed"),
        ("top", "self.side ** 2", "self.side ** 3"),
        ("top", "side: int = 2", "side: int = 3"),
        ("top", "math.pi", "math.e"),
    ],
)
def test_a_change_anywhere_in_reach_changes_it(probe, module, old, new):
    before = probe()
    assert probe(module, old, new) != before


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("_low", "Says something.", "Says something else."),
        ("_low", "    '''Says something.'''\n", ""),
        ("_low", "# a remark", "# another\n\n"),
        ("_low", "def deep(x, y=1):", "def deep(x: float, y: int = 1) -> float:"),
        ("_low", "SCALE: float = RATE * 2", "SCALE = (RATE\n    * 2)"),
        ("top", "side: int = 2", "side: float = 2"),
        ("top", "return 1", "return 2"),  # a function that compute does not reach
        ("top", "config, seed, workdir", "config, seed: int, workdir,"),
    ],
)
def test_remarks_layout_annotations_and_unreached_code_do_not_change_it(probe, module, old, new):
    before = probe()
    assert probe(module, old, new) == before


def test_what_is_left_out_does_not_change_it_and_the_rest_does(probe):
    without = ("probe_package._low",)
    before = probe(without=without)
    assert probe("_low", "0.15", "0.16", without) == before
    assert probe("middle", "if seed", "if not seed", without) != before
    assert probe(without=("probe_package._lo",)) == probe(), "a name is no prefix of another"


def test_an_edit_during_a_run_does_not_change_the_fingerprint_of_the_running_code(probe, tmp_path):
    before = probe()
    path = tmp_path / "probe_package" / "_low.py"
    path.write_text(path.read_text().replace("0.15", "0.9"))
    assert fingerprint(sys.modules["probe_package.top"].compute) == before


def test_following_a_lazy_import_does_not_import_the_module(probe):
    probe()
    assert "probe_package._low" in sys.modules  # imported by top itself
    del sys.modules["probe_package._low"]
    fingerprint(sys.modules["probe_package.middle"].step)
    assert "probe_package._low" not in sys.modules


def test_a_lambda_has_no_fingerprint():
    with pytest.raises(ValueError, match="defined with def or class"):
        fingerprint(eval("lambda: 1"))


def test_the_machinery_that_stores_rows_is_left_out():
    from unmasked import results

    before = fingerprint(_uses_results)
    assert before == fingerprint(_uses_results)
    assert results.fingerprint is fingerprint
    with pytest.raises(ValueError, match="No source"):
        fingerprint(type("Made", (), {}))


def _uses_results():
    from unmasked import results

    return results.load_or_compute
