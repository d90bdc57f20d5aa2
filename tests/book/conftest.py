"""A miniature book: one chapter with every construct that pages use, executed and built once."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from unmasked.book import run
from unmasked.project import UserError

MINI = r"""# %% [markdown]
# (mini)=
# # A miniature chapter
#
# Masks were studied by several authors {cite:p}`devlin2019,zhang2021`; {cite:t}`zhang2021` asks
# why. The loss {eq}`eq-loss` is explained in {ref}`sec-proof`, not in {doc}`other`. A {term}`token`
# is masked with probability 15 %; code such as `{cite:p}` stays. [An address](https://example.org).
#
# $$
# \ell = -\log p \\
# p = 0.5
# $$ (eq-loss)
#
# % a comment for authors only
#
# ```{math}
# :label: eq-second
# a = b
# ```
#
# (sec-proof)=
# ## Statement and proof
#
# ```{prf:theorem} Small statement
# :label: thm-small
# From {eq}`eq-second` follows $b = a$.
# ```
#
# ```{prf:lemma}
# :label: lem-small
# Little lemma.
# ```
#
# ```{prf:proof}
# By symmetry; {prf:ref}`lem-small` is not needed.
#
# Second paragraph.
# ```
#
# ````{admonition} Careful
# Outer text
# ```{note}
# Inner note with {cite:p}`devlin2019`.
# ```
# ````
#
# :::{dropdown} Solution
# The *hidden* answer.
# :::
#
# - a list
#
#   ```{note}
#   Note within a list.
#   ```
#
# ```python
# raw = "{eq}`not-a-role` and $0.25$"
# ```
#
# ```{glossary}
# token
#   A piece of a word.
#
# mask
#   What hides it.
# ```

# %% tags=["parameters"]
profile = "laptop"
seed = 0

# %%
from types import SimpleNamespace

import matplotlib.pyplot as plt
import pandas as pd

from unmasked.book.notebook import banner, say, show

drawing, axes = plt.subplots(figsize=(2, 1))
axes.plot([1, 2])
frame = pd.DataFrame({"step": [0, 1], "value": [1.0, 2.0]})
show(
    SimpleNamespace(
        name="line",
        figure=drawing,
        alt=f"A line from {frame.value.min():.1f} to {frame.value.max():.1f}.",
        caption=f"The line reaches ${frame.value.max():.0f}$.",
        data=frame,
    )
)

# %%
print("one", flush=True)
print("two")

# %%
say(f"The seed is **{seed}**.")
banner(SimpleNamespace(message="Committed rows of 3 seeds.", stale=False, origin="committed"))

# %% [markdown]
# ## References
#
# ```{bibliography}
# :filter: docname in docnames
# ```
"""

BIBLIOGRAPHY = r"""
@inproceedings{devlin2019,
  author = {Devlin, Jacob and Chang, Ming-Wei and Lee, Kenton and Toutanova, Kristina},
  title = {{BERT}: Pre-training of deep bidirectional transformers},
  booktitle = {NAACL}, year = {2019}, doi = {10.18653/v1/N19-1423}}
@article{zhang2021,
  author = {Zhang, Tianyi and Hashimoto, Tatsunori B.},
  title = {On the inductive bias of masked language modeling}, journal = {NAACL},
  year = {2021}, eprint = {2104.05694}, archiveprefix = {arXiv}}
@article{unused2000, author = {Nobody, Ann}, title = {Not cited}, journal = {None}, year = {2000}}
"""

PROFILES = """
mini:
  smoke: {device: cpu, minutes: 1, memory_gb: 1, seeds: [0]}
  laptop: {device: cpu, minutes: 37, memory_gb: 1, seeds: [0, 1, 2], experiments: {e: {p: 0.45}}}
"""

CONFIGURATION = """
extensions = ["myst_nb", "sphinx_proof", "sphinxcontrib.bibtex", "sphinx_design"]
root_doc = "mini"
exclude_patterns = ["colab", "_build"]
html_theme = "basic"
html_static_path = ["{book}/_static"]
nb_execution_mode = "off"
nb_render_markdown_format = "myst"
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
bibtex_bibfiles = ["{book}/references.bib"]
bibtex_reference_style = "author_year"
"""


@dataclass
class MiniatureBook:
    """A checkout in little; `run` executes a chapter with the package's own function."""

    root: Path

    @property
    def book(self) -> Path:
        return self.root / "book"

    def write(self, chapter: str, text: str) -> Path:
        path = self.book / f"{chapter}.py"
        path.write_text(text, encoding="utf-8")
        return path

    def run(self, chapter: str, *args: Any, **kwargs: Any) -> Path:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run, "root", lambda: self.root)
            patch.setattr(run, "resolve", resolve)
            return run.run_chapter(chapter, *args, **kwargs)


def resolve(chapter: str, given: dict[str, Any]) -> SimpleNamespace:
    """Stands for profiles.resolve, which has tests of its own."""
    values = {"profile": "laptop", "seed": 0, **given}
    if values["profile"] not in ("smoke", "laptop"):
        raise UserError(f"Unknown profile {values['profile']!r}.")
    return SimpleNamespace(parameters=SimpleNamespace(model_dump=lambda mode: values))


def make_book(folder: Path) -> MiniatureBook:
    book = MiniatureBook(folder)
    book.book.mkdir()
    (book.book / "references.bib").write_text(BIBLIOGRAPHY, encoding="utf-8")
    (book.book / "profiles.yml").write_text(PROFILES, encoding="utf-8")
    (book.book / "other.md").write_text("---\norphan: true\n---\n# Another page\n\nText.\n")
    return book


@pytest.fixture
def fresh(tmp_path: Path) -> MiniatureBook:
    """An empty miniature book."""
    return make_book(tmp_path)


@pytest.fixture(scope="session")
def executed(tmp_path_factory: pytest.TempPathFactory) -> MiniatureBook:
    """A miniature book whose chapter has been run; tests leave it as it is."""
    book = make_book(tmp_path_factory.mktemp("miniature"))
    book.write("mini", MINI)
    book.run("mini")
    return book


@pytest.fixture(scope="session")
def page(executed: MiniatureBook, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The executed chapter as an HTML page, built with warnings as errors."""
    settings = tmp_path_factory.mktemp("settings")
    (settings / "conf.py").write_text(CONFIGURATION.format(book=executed.book), encoding="utf-8")
    html = tmp_path_factory.mktemp("html")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-n", "-b", "html", "-c", settings]
    built = subprocess.run([*command, executed.book, html], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return html / "mini.html"
