"""Tests of unmasked.claims: effects, verdicts, what is not tested, what is refused."""

from __future__ import annotations

import pandas as pd
import pytest
import toy_chapter

from unmasked import claims
from unmasked.claims import Claim, effects, evaluate, judge, load_claims
from unmasked.profiles import resolve
from unmasked.project import UserError
from unmasked.results import Store, publish

BASE = {"id": "c", "paper": "p", "where": "w", "statement": "s", "kind": "direction"}
TEST = {
    "experiment": "losses",
    "profile": "laptop",
    "unit": "nats",
    "side": "negative",
    "effect": {
        "metric": "loss",
        "where": {"arm": "model", "width": 16},
        "minus": {"where": {"arm": "control", "width": 16}},
    },
}


def claim(**given) -> Claim:
    return Claim.model_validate({**BASE, **TEST, **given})


@pytest.fixture
def toy(tmp_path, monkeypatch):
    return toy_chapter.install(monkeypatch, tmp_path)


def publish_toy(profile="laptop") -> None:
    run = resolve("toy", {"profile": profile})
    run.rows("losses")
    publish(run.experiment("losses"), run.configs["losses"], profile, run.seeds["losses"])


def frame() -> pd.DataFrame:
    """Two arms, two widths, one row without a width; three seeds."""
    rows = []
    for seed in range(3):
        for arm, base in (("model", 2.0), ("control", 4.0)):
            for width in (8, 16, None):
                rows.append((seed, arm, width, True, "loss", base + seed + (width or 0) / 8))
    columns = ["seed", "arm", "width", "tied", "metric", "value"]
    return pd.DataFrame(rows, columns=columns)


@pytest.mark.parametrize(
    ("effect", "expected"),
    [
        ({"metric": "loss", "where": {"arm": "model", "width": 8}}, [3, 4, 5]),
        ({"metric": "loss", "where": {"arm": "model"}}, [3, 4, 5]),  # mean of 2, 3, 4 and so on
        ({"metric": "loss", "where": {"arm": "model", "width": None}}, [2, 3, 4]),
        ({"metric": "loss", "where": {"arm": "control", "width": 16.0, "tied": True}}, [6, 7, 8]),
        (
            {
                "metric": "loss",
                "where": {"arm": "control", "width": 16},
                "minus": {"where": {"arm": "model", "width": 8}},
            },
            [3, 3, 3],
        ),
        (
            {
                "metric": "loss",
                "where": {"arm": "control", "width": 8},
                "minus": {"metric": "loss", "where": {"arm": "model", "width": 8}},
                "relative": True,
            },
            [5 / 3, 6 / 4, 7 / 5],
        ),
    ],
)
def test_effects_are_paired_by_seed(effect, expected):
    assert effects(claim(effect=effect), frame()).tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("effect", "said"),
    [
        ({"metric": "los"}, "metric of losses: 'los'. Did you mean 'loss'?"),
        ({"metric": "loss", "where": {"amr": "x"}}, "condition of losses: 'amr'. Did you mean"),
        ({"metric": "loss", "where": {"arm": "modell"}}, "no loss rows where {'arm': 'modell'}"),
        ({"metric": "loss", "where": {"tied": 1}}, "no loss rows"),
    ],
)
def test_a_selection_that_matches_nothing_is_refused(effect, said):
    with pytest.raises(UserError) as caught:
        effects(claim(effect=effect), frame())
    assert said in str(caught.value)
    assert "claim c" in str(caught.value)


def test_a_seed_without_a_partner_is_refused():
    rows = frame()
    lacking = rows[(rows["seed"] != 1) | (rows["arm"] == "model")]
    with pytest.raises(UserError, match="for seed 1"):
        effects(claim(), lacking)


@pytest.mark.parametrize(
    ("given", "values", "word"),
    [
        ({"side": "negative"}, [-1.0, -1.2, -0.9], claims.REPRODUCED),
        ({"side": "positive"}, [-1.0, -1.2, -0.9], claims.NOT_REPRODUCED),
        ({"side": "negative"}, [-1.0, -1.2, 0.9], claims.NOT_REPRODUCED),
        ({"side": "negative", "threshold": -1.1}, [-1.0, -1.2, -0.9], claims.DIRECTION_ONLY),
        ({"side": "negative", "threshold": -0.5}, [-1.0, -1.2, -0.9], claims.REPRODUCED),
        ({"side": "positive"}, [0.0, 0.0, 0.0], claims.NOT_REPRODUCED),
        ({"kind": "theory", "threshold": 1e-6}, [1e-8, 2e-8, 1e-9], claims.REPRODUCED),
        ({"side": "positive"}, [1.0, 2.0], claims.NOT_TESTED),
        ({"kind": "number", "target": 5.0, "tolerance": 1.0}, [4.5, 5.0, 5.5], "reproduced"),
        ({"kind": "number", "target": 5.0, "tolerance": 0.4}, [4.5, 5.0, 5.5], "not reproduced"),
        (
            {"kind": "number", "target": 5.0, "tolerance": 0.4, "baseline": 4.0, "side": None},
            [4.5, 5.0, 5.5],
            claims.DIRECTION_ONLY,
        ),
        (
            {"kind": "number", "target": 3.0, "tolerance": 0.4, "baseline": 4.0, "side": None},
            [4.5, 5.0, 5.5],
            claims.NOT_REPRODUCED,
        ),
    ],
)
def test_verdicts(given, values, word):
    assert judge(claim(**given), values).verdict == word


def test_the_neutral_value_of_a_ratio_is_one():
    effect = {**TEST["effect"], "relative": True}
    ratio = claim(effect=effect, side="positive", unit="ratio")
    assert judge(ratio, [1.1, 1.2, 1.3]).verdict == claims.REPRODUCED
    assert judge(ratio, [0.7, 0.8, 0.9]).verdict == claims.NOT_REPRODUCED


def test_a_verdict_has_its_effect_interval_and_reason():
    verdict = judge(claim(), [-1.0, -1.5, -2.0])
    assert verdict.effect == pytest.approx(-1.5)
    assert -2.0 <= verdict.low < -1.5 < verdict.high <= -1.0
    assert (verdict.seeds, verdict.profile, verdict.unit) == (3, "laptop", "nats")
    assert verdict.reason == "the interval is below 0"


def test_published_rows_give_a_verdict(toy):
    publish_toy()
    verdict = evaluate(claim())
    assert verdict.verdict == claims.REPRODUCED
    assert verdict.effect == pytest.approx(-2.02)


def test_computed_rows_that_are_not_committed_do_not_count(toy):
    resolve("toy", {}).rows("losses")
    assert evaluate(claim()).reason.startswith("no committed rows of losses")


def test_rows_of_another_configuration_do_not_count(toy):
    publish_toy()
    path = toy / "book" / "profiles.yml"
    path.write_text(path.read_text().replace("steps: 20", "steps: 21"))
    assert evaluate(claim()).verdict == claims.NOT_TESTED


def test_too_few_seeds_do_not_count_but_are_shown(toy):
    publish_toy("smoke")
    verdict = evaluate(claim(profile="smoke", effect={"metric": "loss", "where": {"arm": "model"}}))
    assert (verdict.verdict, verdict.seeds) == (claims.NOT_TESTED, 1)
    assert verdict.effect == pytest.approx(2.0)
    assert verdict.low is None
    assert verdict.reason == "1 of at least 3 seeds"


def test_stale_rows_do_not_count(toy):
    publish_toy()
    runs = toy / "results" / "runs.csv"
    mark = resolve("toy", {}).experiment("losses").fingerprint
    runs.write_text(runs.read_text().replace(mark, "0" * 12))
    verdict = evaluate(claim(), Store())
    assert (verdict.verdict, verdict.effect) == (claims.NOT_TESTED, None)
    assert verdict.reason == "the committed rows of losses are stale"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"experiment": "loses"}, "Unknown experiment 'loses'. Did you mean 'losses'?"),
        ({"profile": "lapptop"}, "Did you mean 'laptop'?"),
        ({"experiment": "extras", "profile": "smoke"}, "at profile smoke: 'extras'"),
    ],
)
def test_a_claim_on_an_unknown_test_is_refused(toy, given, said):
    with pytest.raises(UserError) as caught:
        evaluate(claim(**given))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- {id: a, paper: p, were: w}", "claim a: Unknown key 'were'. Did you mean 'where'?"),
        ("- {id: a, paper: p, where: w, kind: theory}", "key 'statement' is missing"),
        ("- {id: a, paper: p, where: w, statement: s, kind: theroy}", "did you mean 'theory'?"),
        (
            "- {id: a, paper: p, where: w, statement: s, kind: theory, experiment: x}",
            "a theory claim with an experiment needs profile, effect, unit, side",
        ),
        (
            "- {id: a, paper: p, where: w, statement: s, kind: number, experiment: x,"
            " profile: laptop, unit: u, effect: {metric: m}}",
            "needs target, tolerance",
        ),
        (
            "- {id: a, paper: p, where: w, statement: s, kind: theory,"
            " effect: {metric: m, relative: true}}",
            "relative needs minus",
        ),
        (
            "- {id: a, paper: p, where: w, statement: s, kind: theory, effect: {metrics: m}}",
            "effect.metrics",
        ),
        (
            "- {id: a, paper: p, where: w, statement: s, kind: theory}\n" * 2,
            "claim a: the id is given twice",
        ),
        ("a: 3", "a list of claims is needed"),
        ("- 3", "a list of claims is needed"),
    ],
)
def test_a_claims_file_that_is_wrong_is_refused_with_its_place(tmp_path, text, said):
    path = tmp_path / "claims.yml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        load_claims(path)
    assert str(caught.value).startswith("book/claims.yml")
    assert said in str(caught.value)


def test_a_missing_claims_file_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"no book/claims\.yml"):
        load_claims(tmp_path / "claims.yml")


def test_the_books_own_claims_are_those_of_the_three_papers():
    loaded = load_claims()
    papers = pd.Series([claim.paper for claim in loaded]).value_counts()
    first = {claim.id for claim in loaded if claim.paper == "Zhang and Hashimoto 2021"}
    assert first > {
        "cloze-masks-are-not-the-explanation",
        "masking-learns-graphical-models",
        "dependencies-encode-syntax",
    }
    assert papers["Chiang and Yogatama 2023"] == 3 + 7
    assert papers["Meng et al. 2024"] == 4


def test_a_claim_without_an_experiment_is_not_tested():
    untested = [evaluate(item) for item in load_claims() if item.experiment is None]
    assert untested
    assert {verdict.verdict for verdict in untested} == {claims.NOT_TESTED}
    reasons = {verdict.id: verdict.reason for verdict in untested}
    assert reasons.pop("dependencies-encode-syntax").startswith("needs bert-base-cased")
    assert set(reasons.values()) == {"no experiment yet"}
    assert {verdict.effect for verdict in untested} == {None}


def test_a_verdict_as_dictionary_has_the_fields_of_the_ledger():
    fields = judge(claim(), [1.0, 2.0, 3.0]).as_dict()
    assert list(fields)[:2] == ["id", "paper"]
    assert {"verdict", "effect", "low", "high", "seeds", "profile", "unit"} <= fields.keys()
