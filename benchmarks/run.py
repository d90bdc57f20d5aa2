"""`make bench`: measure every benchmark, print the ratios beside their goals, keep the rows.

The pairs that are timed stand in `unmasked.experiments.cost`, where chapter 1 uses them too.
"""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Sequence

import pandas as pd
from tqdm import tqdm

from unmasked.experiments.cost import BENCHMARKS, measured
from unmasked.profiles import resolve
from unmasked.project import UserError, unknown
from unmasked.results import committed_rows, load_or_compute, publish

CHAPTER, EXPERIMENT, PROFILE = "masked_language_modelling", "cost", "laptop"
KEYS = ("name", "median", "low", "high", "goal")


def main(names: Sequence[str], json: bool = False, stored: bool = False) -> None:
    """Print the ratios of the named benchmarks, or of all.

    Without names and `stored` everything is measured and the rows are committed to results/. Named
    ones are measured and printed only. `stored` prints the committed rows. Raises UserError for an
    unknown name or when nothing is stored.
    """
    for name in names:
        if name not in BENCHMARKS:
            raise UserError(unknown("benchmark", name, BENCHMARKS))
    table = _stored(names) if stored else _measured(names) if names else _published()
    records = table.astype(object).where(table.notna(), None).to_dict("records")
    print(json_format.dumps(records, indent=2) if json else _text(records))


def _stored(names: Sequence[str]) -> pd.DataFrame:
    run = resolve(CHAPTER, {"profile": PROFILE})
    seeds, config = run.seeds[EXPERIMENT], run.configs[EXPERIMENT]
    rows = committed_rows(run.experiment(EXPERIMENT), config, PROFILE, seeds)
    if rows is None:
        raise UserError("No benchmark rows are committed yet: run `unmasked bench`.")
    if rows.stale:
        print(rows.message, file=sys.stderr)
    found = set(rows.frame["benchmark"])  # rows of older code may lack a benchmark
    if missing := [name for name in names if name not in found]:
        raise UserError(f"No committed rows of {', '.join(missing)}: run `unmasked bench`.")
    return _table(rows.frame, names or [name for name in BENCHMARKS if name in found])


def _published() -> pd.DataFrame:
    run = resolve(CHAPTER, {"profile": PROFILE})
    experiment, config = run.experiment(EXPERIMENT), run.configs[EXPERIMENT]
    seeds = run.seeds[EXPERIMENT]
    rows = load_or_compute(experiment, config, profile=PROFILE, seeds=seeds, recompute=True)
    publish(experiment, config, PROFILE, seeds)
    return _table(rows.frame, list(BENCHMARKS))


def _measured(names: Sequence[str]) -> pd.DataFrame:
    config = resolve(CHAPTER, {"profile": PROFILE}).configs[EXPERIMENT]
    records = []
    for name in tqdm(names, disable=None, leave=False):
        ratio = measured(name, config)
        records.append((name, ratio.median, ratio.low, ratio.high, BENCHMARKS[name].goal))
    return pd.DataFrame(records, columns=list(KEYS))


def _table(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Rows of the experiment as one line a benchmark."""
    ratios = frame[frame["metric"].isin(["median", "low", "high"])]
    wide = ratios.pivot(index="benchmark", columns="metric", values="value").loc[list(names)]
    goals = [BENCHMARKS[name].goal for name in names]
    return wide.reset_index(names="name").assign(goal=goals)[list(KEYS)]


def _text(records: list[dict[str, object]]) -> str:
    lines = [f"{'benchmark':<26}{'median':>8}{'low':>8}{'high':>8}  goal"]
    for line in records:
        goal = line["goal"]
        met = "" if goal is None else f"{goal:g} ({'met' if line['median'] >= goal else 'missed'})"
        numbers = "".join(f"{line[key]:8.2f}" for key in ("median", "low", "high"))
        lines.append(f"{line['name']:<26}{numbers}  {met}")
    return "\n".join(lines)
