"""Verdicts on the papers' findings depend on the results."""

from pathlib import Path
from typing import Any

import pytest

from experiments.reproduction.claims import Claim, from_cases, made_by, span
from experiments.reproduction.study import load_definition, make_study, study_names
from experiments.studies import (
    _flexible_claims,
    _translation_claims,
    decoding,
    figure3a,
    figure5,
    flexible_figure3,
    flexible_table3,
    one_slot,
    table1,
    table3,
)
from tests.experiments.row_results import result_of
from tests.experiments.studies.flexible_results import WORDS, made_up_results

Result = dict[str, Any]


def results_of(study: str, scores: dict[str, float], folder: Path = Path("none")) -> list[Result]:
    rows = {row.name: row for row in make_study(study, "small", [], folder, folder).rows}
    return [result_of(rows[name], bleu) for name, bleu in scores.items()]


def verdict(claims: list[Claim], start: str) -> str:
    (claim,) = (claim for claim in claims if claim.what.startswith(start))
    return claim.verdict


@pytest.mark.parametrize("name", study_names())
def test_without_results_nothing_is_judged(name: str) -> None:
    claims = load_definition(name).claims([])
    verdicts = {claim.verdict for claim in claims if claim.made != "computed"}
    assert verdicts <= {"not run here"}
    assert all(claim.what and claim.paper for claim in claims)


def test_findings_are_reproduced_in_all_cases_or_in_some() -> None:
    cases = ([True, True], [True, False], [False])
    assert [from_cases(case) for case in cases] == ["reproduced", "partly", "not"]
    assert span([2.0, 1.0]) == "1.00 to 2.00" and span([1.0]) == "1.00"


def test_updates_and_seeds_behind_a_claim_are_told() -> None:
    names = ("bahdanau", "k32", "k32_seed1")
    found = results_of("table2", {f"multi30k_en_de_{name}": 30.0 for name in names})
    assert made_by(found) == "3,600; 1 to 2"


@pytest.mark.parametrize(
    ("gains", "expected"),
    [((1, 1, 1), "reproduced"), ((1, -1, 1), "partly"), ((-1, -1, -1), "contradicted")],
)
def test_one_slot_is_ahead_of_no_attention_or_the_paper_is_contradicted(
    gains: tuple[int, ...], expected: str
) -> None:
    scores = {}
    for length, gain in zip((50, 100, 200), gains, strict=True):
        scores |= {f"copy_{length}_none": 50.0, f"copy_{length}_k1": 50.0 + gain}
    found = results_of("table1", scores)
    assert verdict([*table1.claims(found)], "K = 1 is ahead") == expected
    assert verdict([*table1.claims(found[:-1])], "K = 1 is ahead") == "not run here"
    both = results_of("one_slot", {"copy_50_none": 50.0, "copy_50_k1_slots": 51.0})
    assert verdict(one_slot.claims(both), "K = 1 is ahead of no attention, eq. 5") == "reproduced"


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [((1.0, 0.9, 0.8, 0.7), "reproduced"), ((1.1, 1.05, 0.9, 0.8), "partly"), ((1.2,) * 4, "not")],
)
def test_decoding_is_faster_the_longer_the_source(ratios: tuple[float, ...], expected: str) -> None:
    found = []
    for length, ratio in zip((20, 50, 100, 200), ratios, strict=True):
        rows = [
            {"attention": "k_memory:64", "seconds": ratio},
            {"attention": "bahdanau", "seconds": 1.0},
        ]
        (result,) = results_of("table1", {f"copy_{length}_k64": 99.0})
        found.append({**result, "timed": {"rows": rows, "commit": "0123456789+"}})
    assert verdict([*table1.claims(found)], "decoding time") == expected


def test_a_step_takes_as_long_at_any_length() -> None:
    for slowest, expected in ((11.0, "reproduced"), (12.0, "partly"), (13.0, "not")):
        rows = [
            {
                "part": "growth",
                "attention": "k_memory:64",
                "length": n,
                "ms_per_step": ms,
                "commit": "0",
            }
            for n, ms in ((50, 10.0), (1000, slowest))
        ]
        (claim,) = decoding.claims(rows)
        assert claim.verdict == expected
    assert claim.here == "10.0 to 13.0 ms, L = 50 to 1,000"


def test_both_memories_decode_faster_than_attention() -> None:
    for seconds, expected in (((8, 9), "reproduced"), ((8, 11), "partly"), ((11, 12), "not")):
        names = ("k_memory:32", "k_memory:64", "bahdanau")
        rows = [
            {"attention": n, "seconds": s, "commit": "0"}
            for n, s in zip(names, (*seconds, 10), strict=True)
        ]
        (claim,) = table3.claims(rows)
        assert claim.verdict == expected


def scored(scores: dict[str, float]) -> list[Result]:
    """Results of Table 2 with test scores."""
    named = {f"multi30k_en_de_{name}": bleu for name, bleu in scores.items()}
    return [
        {**result, "tests": {"test": {"bleu": result["bleu"]}}}
        for result in results_of("table2", named)
    ]


def test_translation_is_judged_by_the_papers_gaps_and_the_spread_of_seeds() -> None:
    for ours, expected in ((37.0, "reproduced"), (36.0, "partly"), (35.0, "not")):
        claims = _translation_claims.claims(scored({"bahdanau": 38.0, "k64": ours}))
        assert verdict(claims, "K = 64 is close to Att") == expected
    slots = {"k4": 33.0, "k8": 34.0, "k32": 35.0, "k64": 36.0}
    assert verdict(_translation_claims.claims(scored(slots)), "more slots") == "reproduced"
    slots["k8"] = 35.5
    assert verdict(_translation_claims.claims(scored(slots)), "more slots") == "partly"
    for score, expected in ((37.0, "reproduced"), (35.8, "not"), (34.0, "contradicted")):
        found = scored({"k32": 36.0, "k32_seed1": 35.0, "k32_pe": score})
        assert verdict(_translation_claims.claims(found), "position encodings") == expected


def test_models_are_shown_with_all_their_seeds() -> None:
    found = scored({"k32": 36.0, "k32_seed1": 35.0})
    page = _translation_claims.summary(found, ["multi30k_en_de_k32", "multi30k_en_de_k64"])
    assert "| Multi30k | K=32 | 2 | 36.00, 35.00 | 36.00, 35.00 | - | - | 4,000, 4,000 |" in page
    assert "| Multi30k | multi30k_en_de_k64 | - | not run |" in page


@pytest.mark.parametrize(
    ("encoder", "ours", "expected"),
    [
        ("softmax", 30.0, "reproduced"),
        ("softmax", 34.0, "partly"),
        ("softmax", 35.8, "contradicted"),
        ("softmax over slots", 30.0, "reproduced"),
    ],
)
def test_two_softmaxes_are_worst_beyond_what_seeds_differ_by(
    encoder: str, ours: float, expected: str
) -> None:
    is_printed = encoder == "softmax over slots"
    name = "k32_slots_softmax" if is_printed else "k32"
    others = {"k32_softmax_sigmoid": 36.0, "k32_sigmoid_softmax": 35.0, "k32_sigmoid_sigmoid": 33.0}
    scores = {name: ours, f"{name}_seed1": ours + 0.5, **others}
    found = results_of("table2", {f"multi30k_en_de_{one}": bleu for one, bleu in scores.items()})
    claims = figure5.claims(found)
    reading = "eq. 5 as printed" if is_printed else "over the source"
    assert verdict(claims, f"two softmaxes translate worst, {reading}") == expected


def test_curves_of_copies_are_judged_by_when_they_come_to_90() -> None:
    names = ("none", "k1", "k32", "k64", "bahdanau")
    found = results_of("figure3a", {f"copy_200_{name}": 95.0 for name in names})
    assert verdict(figure3a.claims(found), "K = 32, 64 learn") == "reproduced"
    assert verdict(figure3a.claims(found), "K = 1 does not") == "partly"  # K = 1 has learned
    late = [
        {**one, "curve": [{**p, "update": 3 * p["update"]} for p in one["curve"]]} for one in found
    ]
    assert verdict(figure3a.claims([*late[:-1], found[-1]]), "K = 32, 64 learn") == "not"


def test_windows_are_judged_by_what_is_left_of_them() -> None:
    found = made_up_results()
    for result in found:
        result["name"] = result["name"]
    claims = _flexible_claims.claims(found, [WORDS])
    assert verdict(claims, "flexible is no worse") == "reproduced"
    assert verdict(claims, "tuned windows") == "reproduced"  # 4.0 positions of 12.5
    (curve,) = flexible_figure3.claims(found[3:])
    assert curve.verdict == "not"  # every threshold loses more than 0.5 BLEU
    found[2]["tests"]["test_2016_flickr_all"]["bleu"] -= 0.3
    assert verdict(_flexible_claims.claims(found, [WORDS]), "flexible is no worse") == "partly"


@pytest.mark.parametrize(
    ("single", "longer", "expected"),
    [(9.0, 9.0, "reproduced"), (11.0, 9.0, "partly"), (11.0, 11.0, "not")],
)
def test_windows_decode_faster_at_single_sentences_or_at_longer_sources(
    single: float, longer: float, expected: str
) -> None:
    def timed(first: float, second: float) -> list[Result]:
        return [
            {"joined": joined, "batch_size": 1, "milliseconds": ms}
            for joined, ms in ((1, first), (2, second))
        ]

    scores = dict.fromkeys(("multi30k_de_en_characters_global",), 30.0)
    (result,) = results_of("flexible_table2", scores)
    found = [
        {**result, "decoding": timed(10.0, 10.0)},
        {**result, "decoding": timed(single, longer)},
    ]
    (claim,) = flexible_table3.claims(found)
    assert claim.verdict == expected
