"""`make bench`: measure every benchmark, print the ratios beside their goals, keep the rows.

The pairs that are timed stand in the chapters' own experiments: `unmasked.experiments.cost` for
training, `unmasked.experiments.estimator_cost` for mutual information.
"""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

import pandas as pd
from tqdm import tqdm

from unmasked.experiments import cost, estimator_cost, source_cost
from unmasked.profiles import Run, resolve
from unmasked.project import UserError, unknown
from unmasked.results import committed_rows, load_or_compute, publish

PROFILE = "laptop"
KEYS = ("name", "median", "low", "high", "goal")


@dataclass(frozen=True)
class Suite:
    """The benchmarks of one experiment: its chapter, its name, and the module that times them."""

    chapter: str
    experiment: str
    module: ModuleType

    def run(self) -> Run:
        """The chapter at the profile whose rows are committed."""
        return resolve(self.chapter, {"profile": PROFILE})


SUITES = (
    Suite("masked_language_modelling", "cost", cost),
    Suite("inductive_bias", "estimator_cost", estimator_cost),
    Suite("distributional_hypothesis", "source_cost", source_cost),
)


def main(names: Sequence[str], json: bool = False, stored: bool = False) -> None:
    """Print the ratios of the named benchmarks, or of all.

    Without names and `stored` everything is measured and the rows are committed to results/. Named
    ones are measured and printed only. `stored` prints the committed rows. Raises UserError for an
    unknown name or when nothing is stored.
    """
    known = [name for suite in SUITES for name in suite.module.BENCHMARKS]
    for name in names:
        if name not in known:
            raise UserError(unknown("benchmark", name, known))
    of_suite = {
        suite: [name for name in names if name in suite.module.BENCHMARKS] for suite in SUITES
    }
    wanted = [suite for suite in SUITES if of_suite[suite] or not names]
    if stored:
        parts = [_stored(suite, of_suite[suite]) for suite in wanted]
    elif names:
        parts = [_measured(suite, of_suite[suite]) for suite in wanted]
    else:
        parts = [_published(suite) for suite in wanted]
    table = pd.concat(parts, ignore_index=True)
    records = table.astype(object).where(table.notna(), None).to_dict("records")
    print(json_format.dumps(records, indent=2) if json else _text(records))


def _stored(suite: Suite, names: Sequence[str]) -> pd.DataFrame:
    run, name = suite.run(), suite.experiment
    rows = committed_rows(run.experiment(name), run.configs[name], PROFILE, run.seeds[name])
    if rows is None:
        raise UserError(f"No rows of {name} are committed yet: run `unmasked bench`.")
    if rows.stale:
        print(rows.message, file=sys.stderr)
    found = set(rows.frame["benchmark"])  # rows of older code may lack a benchmark
    if missing := [name for name in names if name not in found]:
        raise UserError(f"No committed rows of {', '.join(missing)}: run `unmasked bench`.")
    return _table(suite, rows.frame, names or [n for n in suite.module.BENCHMARKS if n in found])


def _published(suite: Suite) -> pd.DataFrame:
    run, name = suite.run(), suite.experiment
    experiment, config, seeds = run.experiment(name), run.configs[name], run.seeds[name]
    rows = load_or_compute(experiment, config, profile=PROFILE, seeds=seeds, recompute=True)
    publish(experiment, config, PROFILE, seeds)
    return _table(suite, rows.frame, list(suite.module.BENCHMARKS))


def _measured(suite: Suite, names: Sequence[str]) -> pd.DataFrame:
    config = suite.run().configs[suite.experiment]
    records = []
    for name in tqdm(names, disable=None, leave=False):
        ratio = suite.module.measured(name, config)
        goal = suite.module.BENCHMARKS[name].goal
        records.append((name, ratio.median, ratio.low, ratio.high, goal))
    return pd.DataFrame(records, columns=list(KEYS))


def _table(suite: Suite, frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Rows of the experiment as one line a benchmark."""
    ratios = frame[frame["metric"].isin(["median", "low", "high"])]
    wide = ratios.pivot(index="benchmark", columns="metric", values="value").loc[list(names)]
    goals = [suite.module.BENCHMARKS[name].goal for name in names]
    return wide.reset_index(names="name").assign(goal=goals)[list(KEYS)]


def _text(records: list[dict[str, object]]) -> str:
    lines = [f"{'benchmark':<26}{'median':>8}{'low':>8}{'high':>8}  goal"]
    for line in records:
        goal = line["goal"]
        met = "" if goal is None else f"{goal:g} ({'met' if line['median'] >= goal else 'missed'})"
        numbers = "".join(f"{line[key]:8.2f}" for key in ("median", "low", "high"))
        lines.append(f"{line['name']:<26}{numbers}  {met}")
    return "\n".join(lines)
