"""The `unmasked` command: run chapters, recompute and verify rows, build and check the book."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from unmasked.project import UserError

# Everything else is imported inside the commands, so that the command starts at once.
PUBLISHED = "laptop"


class _Commands(TyperGroup):
    """Commands whose user errors are one message on stderr and exit code 2."""

    def invoke(self, ctx: typer.Context) -> Any:
        try:
            return super().invoke(ctx)
        except UserError as error:
            typer.echo(f"unmasked: {error}", err=True)
            raise typer.Exit(2) from error


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Why masked language modelling works: three papers reproduced as an executable book.\n\n"
    "A chapter is named by its file in book/, for example masked_language_modelling. A profile is "
    "the scale it runs at: smoke (about a minute, no claims), laptop (the published one), gpu or "
    "paper. Rows that are committed or cached are used; the rest is computed, seed by seed, and a "
    "run that was stopped goes on where it was.",
)
Chapter = Annotated[str, typer.Argument(help="A chapter's name.", show_default=False)]
ProfileName = Annotated[str, typer.Option("--profile", help="smoke, laptop, gpu or paper.")]
ExperimentName = Annotated[
    str | None, typer.Option("--experiment", help="Only this experiment of the chapter.")
]
Recompute = Annotated[
    bool, typer.Option("--recompute", help="Compute anew even what is committed or cached.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Chapters at a time.")]


@app.command()
def run(
    chapter: Annotated[str, typer.Argument(help="A chapter's name, or `all`.", show_default=False)],
    profile: ProfileName = PUBLISHED,
    parameter: Annotated[
        list[str] | None,
        typer.Option("-p", metavar="NAME=VALUE", help="A parameter of the chapter; repeatable."),
    ] = None,
    recompute: Recompute = False,
    jobs: Jobs = 1,
) -> None:
    """Execute a chapter as a notebook.

    Its parameters are checked first. At the published profile with no -p the notebook replaces
    book/CHAPTER.ipynb; any other goes to build/PROFILE/CHAPTER.ipynb. A chapter that fails leaves
    the old notebook whole.

    Example: unmasked run masked_language_modelling --profile smoke -p seed=3
    """
    from unmasked import plainyaml, project

    given = dict(plainyaml.assignment(text) for text in parameter or [])
    if taken := sorted(given.keys() & {"profile", "recompute"}):
        raise UserError(f"Give {taken[0]} as --{taken[0]}, not with -p.")
    published = profile == PUBLISHED and not given
    given = {"profile": profile, **given, **({"recompute": True} if recompute else {})}
    folder = None if published else project.root() / "build" / profile
    _need_checkout("run a chapter")
    from unmasked.book.run import chapters, run_chapter, run_chapters

    if chapter == "all":
        paths = run_chapters(chapters(), given, folder=folder, jobs=jobs)
    else:
        output = None if folder is None else folder / f"{chapter}.ipynb"
        paths = [run_chapter(chapter, given, output)]
    for path in paths:
        typer.echo(path.relative_to(project.root()))


@app.command()
def reproduce(
    chapter: Chapter,
    profile: ProfileName = PUBLISHED,
    experiment: ExperimentName = None,
    recompute: Recompute = False,
) -> None:
    """Compute a chapter's rows and publish them.

    No notebook is run; the rows go to results/. Committed rows are left aside; rows that this code
    has computed on this machine are used, unless --recompute is given. Each seed is kept when it is
    done, and each experiment is published when all of its seeds are done, so the command can be
    stopped and started again.
    """
    from unmasked import results
    from unmasked.saved_models import publish_model

    _need_checkout("publish rows")
    chosen = _resolved(chapter, profile)
    for name in _experiments(chosen, experiment):
        rows = _computed(chosen, name, recompute)
        made, config = chosen.experiment(name), chosen.configs[name]
        results.publish(made, config, profile, chosen.seeds[name])
        if profile == PUBLISHED:
            publish_model(made, config, chosen.seeds[name][0])
        typer.echo(f"{rows.message} Published as results/{name}.csv.")


@app.command()
def verify(
    chapter: Chapter,
    profile: ProfileName = PUBLISHED,
    experiment: ExperimentName = None,
    rows: Annotated[
        Path | None, typer.Option("--rows", help="A file of rows to compare, not recomputed.")
    ] = None,
) -> None:
    """Recompute rows and compare with the committed.

    Rows are paired by experiment, configuration, seed, conditions and metric. Timings are skipped;
    other units have a tolerance each. Exit code 1 if anything differs or is missing.
    """
    import pandas as pd

    from unmasked.results import committed_rows
    from unmasked.verify import agrees, compare, read_rows

    chosen = _resolved(chapter, profile)
    given = None if rows is None else read_rows(rows, profile)
    names = _experiments(chosen, experiment)
    if given is not None:
        names = [name for name in names if name in set(given["experiment"])]
    tables = []
    for name in names:
        made, config = chosen.experiment(name), chosen.configs[name]
        committed = committed_rows(made, config, profile, chosen.seeds[name])
        if committed is None:
            raise UserError(f"There are no committed rows of {name} at profile {profile}.")
        if committed.stale:
            typer.echo(committed.message, err=True)
        found = given
        if found is None:
            computed = _computed(chosen, name, True)
            found = computed.frame
            if set(computed.runs["data_checksum"]) != set(committed.runs["data_checksum"]):
                typer.echo(
                    f"{name} was computed from other data than the committed rows.", err=True
                )
        tables.append(compare(committed.frame, found[found["experiment"] == name]))
    if not tables:
        raise UserError(f"There are no rows of chapter {chapter} to compare.")
    table = pd.concat(tables)
    typer.echo(table.to_string(index=False, float_format=lambda number: f"{number:.2g}"))
    if not agrees(table):
        raise typer.Exit(1)


@app.command()
def claims(as_json: AsJson = False) -> None:
    """Print each claim and its verdict.

    Verdicts are computed from the committed rows; missing or stale rows leave a claim untested."""
    from unmasked.claims import ledger
    from unmasked.tables import formatted

    verdicts = ledger()
    if as_json:
        typer.echo(json.dumps([verdict.as_dict() for verdict in verdicts], indent=2))
        return
    for verdict in verdicts:
        typer.echo(f"{verdict.verdict:<15}{verdict.id} ({verdict.paper}): {verdict.reason}")
        if verdict.effect is not None:
            shown = formatted(verdict.effect, verdict.low, verdict.high)
            typer.echo(f"{'':<15}{shown} {verdict.unit}, {verdict.seeds} seeds, {verdict.profile}")


@app.command()
def bench(
    names: Annotated[
        list[str] | None, typer.Argument(help="Only these benchmarks.", show_default=False)
    ] = None,
    as_json: AsJson = False,
    stored: Annotated[
        bool, typer.Option("--stored", help="Print the committed ratios; measure nothing.")
    ] = False,
) -> None:
    """Measure speed ratios.

    Each is measured side by side with the reference implementation in one run."""
    import importlib.util

    from unmasked import project

    path = project.root() / "benchmarks" / "run.py"
    spec = importlib.util.spec_from_file_location("unmasked_benchmarks", path)
    if not path.is_file() or spec is None or spec.loader is None:
        _need_checkout("measure")
        raise UserError("There is no benchmarks/run.py in this checkout.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    module.main(names or [], json=as_json, stored=stored)


@app.command()
def build(profile: ProfileName = PUBLISHED, jobs: Jobs = 1) -> None:
    """Execute what changed, check, build the pages."""
    _need_checkout("build the book")
    from unmasked.book import build as builder
    from unmasked.book import gate, site

    for name in builder.run_outdated(profile, jobs):
        typer.echo(f"executed {name}")
    _report(gate.check_all(expected_profile=profile))
    html = builder.build()
    _report(site.check_site(html))
    typer.echo(f"The book is {html / 'index.html'}")


@app.command()
def check(profile: ProfileName = PUBLISHED) -> None:
    """Check notebooks, Colab copies and built pages."""
    _need_checkout("check the book")
    from unmasked import project
    from unmasked.book import build as builder
    from unmasked.book import gate, site

    problems = gate.check_all(expected_profile=profile)
    html = project.root() / builder.HTML
    if html.is_dir():
        problems += site.check_site(html)
    _report(problems)
    typer.echo("Nothing to complain about.")


@app.command()
def colab() -> None:
    """Write the copies for Colab to book/colab/."""
    _need_checkout("write the copies")
    from unmasked import project
    from unmasked.book.colab import write_copies

    for path in write_copies():
        typer.echo(path.relative_to(project.root()))


def _report(problems: list[str]) -> None:
    """Print problems and end with exit code 1 if there are any."""
    for problem in problems:
        typer.echo(problem, err=True)
    if problems:
        raise typer.Exit(1)


def _need_checkout(what: str) -> None:
    from unmasked import project

    if not project.is_checkout():
        url = project.repository().url
        raise UserError(f"To {what}, a checkout of the book is needed: git clone {url}")


def _resolved(chapter: str, profile: str) -> Any:
    from unmasked.profiles import resolve

    return resolve(chapter, {"profile": profile})


def _experiments(chosen: Any, only: str | None) -> list[str]:
    if only is None:
        return list(chosen.configs)
    chosen.experiment(only)  # refuses a name that is not there
    return [only]


def _computed(chosen: Any, name: str, recompute: bool) -> Any:
    """Rows from the cache or computed, never the committed ones; a bar in a terminal."""
    import functools

    from tqdm import tqdm

    from unmasked.results import load_or_compute

    return load_or_compute(
        chosen.experiment(name),
        chosen.configs[name],
        profile=chosen.profile.name,
        seeds=chosen.seeds[name],
        recompute=recompute,
        committed=False,
        progress=functools.partial(tqdm, desc=name, unit="seed", disable=None),
    )


if __name__ == "__main__":
    app()
