"""Claims of the papers and their verdicts, computed from committed rows and from nothing else.

`book/claims.yml` lists the claims. A claim that names an experiment, a profile and an effect is
judged by the 95 % bootstrap interval of the effect over seeds; any other is not tested.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pydantic

from unmasked import plainyaml, project
from unmasked.intervals import Interval, bootstrap
from unmasked.profiles import load_profiles, resolve
from unmasked.project import UserError, unknown
from unmasked.results import Store, committed_rows
from unmasked.validation import validated

FILE = "book/claims.yml"
REPRODUCED = "reproduced"
DIRECTION_ONLY = "direction only"
NOT_REPRODUCED = "not reproduced"
NOT_TESTED = "not tested"
MINIMUM_SEEDS = 3
Cell = str | bool | int | float | None


class _Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True, frozen=True, extra="forbid")


class Minus(_Strict):
    """The rows that are subtracted, of the same metric unless another is named."""

    metric: str | None = None
    where: dict[str, Cell] = {}


class Effect(_Strict):
    """What is measured for each seed.

    The mean over the rows of `metric` that match `where`; less the mean over the rows that match
    `minus`, if given; or with `relative` the ratio of the first mean to the second.
    """

    metric: str
    where: dict[str, Cell] = {}
    minus: Minus | None = None
    relative: bool = False

    @pydantic.model_validator(mode="after")
    def _ratio_of_two(self) -> Effect:
        if self.relative and self.minus is None:
            raise ValueError("relative needs minus, the rows to divide by")
        return self


class Claim(_Strict):
    """One claim of a paper, in the book's words, and how it is tested.

    A theory or direction claim says on which side of `threshold` (0; 1 for a ratio) the effect
    lies, a number claim that it is within `tolerance` of `target`. `baseline` is the value beyond
    which at least the direction is right. `untested` says why a claim has no experiment.
    """

    id: str
    paper: str
    where: str
    statement: str
    kind: Literal["theory", "direction", "number"]
    experiment: str | None = None
    profile: str | None = None
    effect: Effect | None = None
    unit: str = ""
    side: Literal["positive", "negative"] | None = None
    threshold: float | None = None
    baseline: float | None = None
    target: float | None = None
    tolerance: float | None = None
    untested: str = "no experiment yet"

    @pydantic.model_validator(mode="after")
    def _complete(self) -> Claim:
        needed = ["profile", "effect", "unit"] if self.experiment else []
        if self.experiment:
            needed += ["target", "tolerance"] if self.kind == "number" else ["side"]
        missing = [name for name in needed if getattr(self, name) in (None, "")]
        if missing:
            raise ValueError(f"a {self.kind} claim with an experiment needs {', '.join(missing)}")
        return self

    @property
    def neutral(self) -> float:
        """The value of no effect."""
        return 1.0 if self.effect and self.effect.relative else 0.0


@dataclass(frozen=True)
class Verdict:
    """A claim with its verdict; effect and interval ends are None where there are none.

    `reason` says in a clause why the verdict is what it is.
    """

    id: str
    paper: str
    where: str
    statement: str
    verdict: str
    effect: float | None
    low: float | None
    high: float | None
    seeds: int
    profile: str | None
    unit: str
    reason: str

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain values, for JSON."""
        return asdict(self)


def load_claims(path: Path | None = None) -> list[Claim]:
    """The claims of `book/claims.yml` in order.

    Raises UserError for a missing file, an unknown or missing key, a wrong type, an incomplete test
    or an id that is given twice.
    """
    file = path or project.root() / FILE
    if not file.is_file():
        raise UserError(f"There is no {FILE}; it belongs to the checkout and to the package.")
    table = plainyaml.read(file.read_text(encoding="utf-8"), FILE) or []
    if not isinstance(table, list) or not all(isinstance(item, dict) for item in table):
        raise UserError(f"{FILE}: a list of claims is needed, each a mapping.")
    claims: list[Claim] = []
    for number, item in enumerate(table, start=1):
        place = f"{FILE}, claim {item.get('id', number)}"
        claims.append(validated(Claim, item, "key", place))
        if claims[-1].id in {claim.id for claim in claims[:-1]}:
            raise UserError(f"{place}: the id is given twice.")
    return claims


def ledger(store: Store | None = None) -> list[Verdict]:
    """The verdicts on all claims, in the order of `book/claims.yml`."""
    return [evaluate(claim, store) for claim in load_claims()]


def evaluate(claim: Claim, store: Store | None = None) -> Verdict:
    """The verdict on a claim from the committed rows of its experiment and profile.

    Rows that are missing or stale, and fewer than three seeds, leave a claim not tested. Raises
    UserError when the claim names an experiment, a profile, a metric or a condition that is not
    there: a claim must not pass for untested because of a misspelling.
    """
    if claim.experiment is None:
        return _verdict(claim, NOT_TESTED, claim.untested)
    rows = committed_rows(*_run(claim), store=store)
    if rows is None:
        return _verdict(
            claim, NOT_TESTED, f"no committed rows of {claim.experiment} for this configuration"
        )
    if rows.stale:
        return _verdict(claim, NOT_TESTED, f"the committed rows of {claim.experiment} are stale")
    return judge(claim, effects(claim, rows.frame))


def effects(claim: Claim, frame: pd.DataFrame) -> pd.Series:
    """The claim's effect for each seed, indexed by seed, in the claim's unit.

    Raises UserError for a metric or condition that the rows lack, or that some seed lacks.
    """
    effect = claim.effect
    if effect is None:
        raise UserError(f"Claim {claim.id} states no effect.")
    first = _seed_means(claim, frame, effect.metric, effect.where)
    if effect.minus is None:
        return first
    second = _seed_means(claim, frame, effect.minus.metric or effect.metric, effect.minus.where)
    return first / second if effect.relative else first - second


def judge(claim: Claim, values: pd.Series | Sequence[float]) -> Verdict:
    """The verdict on a claim from one effect a seed.

    The interval is drawn with a fixed generator, so that equal rows give equal verdicts.
    """
    interval = bootstrap(np.asarray(values, dtype=np.float64), np.random.default_rng(0))
    if interval.count < MINIMUM_SEEDS:
        few = f"{interval.count} of at least {MINIMUM_SEEDS} seeds"
        return _verdict(claim, NOT_TESTED, few, interval)
    test = _judge_number if claim.kind == "number" else _judge_side
    return _verdict(claim, *test(claim, interval.low, interval.high), interval)


def _judge_side(claim: Claim, low: float, high: float) -> tuple[str, str]:
    threshold = claim.neutral if claim.threshold is None else claim.threshold
    baseline = claim.neutral if claim.baseline is None else claim.baseline
    above = claim.side == "positive"
    word = "above" if above else "below"
    if _beyond(threshold, low, high, above):
        return REPRODUCED, f"the interval is {word} {threshold:g}"
    if _beyond(baseline, low, high, above):
        return DIRECTION_ONLY, f"the interval is {word} {baseline:g}, not {word} {threshold:g}"
    return NOT_REPRODUCED, f"the interval is not {word} {threshold:g}"


def _judge_number(claim: Claim, low: float, high: float) -> tuple[str, str]:
    target, tolerance = claim.target, claim.tolerance
    stated = f"{target:g} ± {tolerance:g}"
    if target - tolerance <= low and high <= target + tolerance:
        return REPRODUCED, f"the interval is within {stated}"
    if claim.baseline is not None:
        above = claim.side == "positive" if claim.side else target > claim.baseline
        if _beyond(claim.baseline, low, high, above):
            word = "above" if above else "below"
            return DIRECTION_ONLY, f"{word} {claim.baseline:g}, but not within {stated}"
    return NOT_REPRODUCED, f"the interval is not within {stated}"


def _beyond(value: float, low: float, high: float, above: bool) -> bool:
    return low > value if above else high < value


def _run(claim: Claim) -> tuple[Any, Any, str, tuple[int, ...]]:
    """Experiment, configuration, profile and seeds of a claim's test."""
    table = load_profiles()
    names: dict[str, str] = {}
    for chapter, profiles in table.items():
        for profile in profiles.values():
            names |= dict.fromkeys(profile.experiments, chapter)
    if claim.experiment not in names:
        raise UserError(
            f"{FILE}, claim {claim.id}: " + unknown("experiment", claim.experiment, names)
        )
    run = resolve(names[claim.experiment], {"profile": claim.profile})
    experiment = run.experiment(claim.experiment)
    name = claim.experiment
    return experiment, run.configs[name], run.profile.name, run.seeds[name]


def _seed_means(
    claim: Claim, frame: pd.DataFrame, metric: str, where: Mapping[str, Cell]
) -> pd.Series:
    """Mean value for each seed over the rows of a metric that match all conditions."""
    place = f"{FILE}, claim {claim.id}: "
    metrics = frame["metric"].unique()
    if metric not in metrics:
        raise UserError(place + unknown(f"metric of {claim.experiment}:", metric, metrics))
    chosen = frame["metric"] == metric
    for name, value in where.items():
        if name not in frame:
            raise UserError(place + unknown(f"condition of {claim.experiment}:", name, frame))
        chosen &= frame[name].map(lambda cell, value=value: _same(cell, value)).astype(bool)
    means = frame[chosen].groupby("seed")["value"].mean().reindex(frame["seed"].unique())
    if means.isna().any():
        lacking = ", ".join(str(seed) for seed in means.index[means.isna()])
        raise UserError(f"{place}no {metric} rows where {dict(where)} for seed {lacking}.")
    return means


def _same(cell: Any, value: Cell) -> bool:
    if value is None or pd.isna(cell):
        return value is None and bool(pd.isna(cell))
    if isinstance(value, bool) or isinstance(cell, bool | np.bool_):
        return isinstance(value, bool) and isinstance(cell, bool | np.bool_) and cell == value
    if isinstance(value, numbers.Real) and isinstance(cell, numbers.Real):
        return math.isclose(cell, value, rel_tol=1e-9)
    return str(cell) == str(value)


def _verdict(claim: Claim, word: str, reason: str, interval: Interval | None = None) -> Verdict:
    ends = (interval.mean, interval.low, interval.high) if interval else (math.nan,) * 3
    effect, low, high = (end if math.isfinite(end) else None for end in ends)
    return Verdict(
        id=claim.id,
        paper=claim.paper,
        where=claim.where,
        statement=claim.statement,
        verdict=word,
        effect=effect,
        low=low,
        high=high,
        seeds=interval.count if interval else 0,
        profile=claim.profile,
        unit=claim.unit,
        reason=reason,
    )
