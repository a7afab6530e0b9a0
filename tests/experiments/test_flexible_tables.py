"""The pages of Flexible Attention: which threshold they choose, and what stands in them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from experiments import flexible_tables as tables
from experiments.evaluate import windows
from experiments.study import Row, identity
from seq2seq_memattn.config import ModelConfig

WORDS = "multi30k_de_en"


def result_of(row: Row, bleu: dict[str, float], windows_by: dict[str, float]) -> dict[str, Any]:
    """A result whose figures depend on the threshold that ends an evaluation's name."""
    tests = {}
    for one in row.tests:
        threshold = one.name.rpartition("_")[2]
        is_valid = one.name.startswith("valid")
        tests[one.name] = {
            "bleu": bleu.get(threshold, 30.0) + (0.0 if is_valid else 1.0),
            "window": windows_by.get(threshold, 12.0) + (0.0 if is_valid else 0.5),
            "ribes": 0.8,
            "signature": "signature of BLEU",
            "ribes_signature": "signature of RIBES",
        }
        if threshold != "all":
            tests[one.name]["window_floor"] = 3.0
    return {**identity(row), "label": row.label, "tests": tests, "curve": []}


@pytest.fixture
def results() -> list[dict[str, Any]]:
    rows = {row.label: row for row in tables.corpus_rows(WORDS)}
    by_threshold = {"0.8": 4.0, "1.0": 5.0, "1.2": 6.0, "1.4": 7.0, "1.6": 8.0}
    return [
        result_of(rows["global"], {}, {}),
        result_of(rows["local"], {}, {"all": 9.0}),
        result_of(rows["flexible"], {"0.8": 29.2, "1.0": 29.4, "1.2": 29.5}, by_threshold),
        # Better without a threshold, and measured against the one that was not tuned.
        result_of(rows["tuned"], {"all": 31.0, "0.8": 29.6}, {**by_threshold, "0.8": 3.5}),
    ]


def test_the_threshold_is_that_with_the_smallest_window_which_costs_little(
    results: list[dict[str, Any]],
) -> None:
    flexible, tuned = results[2:]
    assert tables.chosen_threshold(flexible, needed=29.5) == 1.2
    assert tables.chosen_threshold(tuned, needed=29.5) == 0.8
    assert tables.chosen_threshold(flexible, needed=29.9) == 1.4
    assert tables.chosen_threshold(flexible, needed=30.1) is None
    flexible["tests"]["valid_1.6"]["window"] = 5.5  # windows need not grow with the threshold
    assert tables.chosen_threshold(flexible, needed=29.5) == 1.6


def test_a_table_has_the_five_rows_of_the_paper(results: list[dict[str, Any]]) -> None:
    page = tables.tables(results)[".md"]
    assert page.startswith("## Multi30k, German-English, words")
    lines = [line for line in page.split("\n") if line.startswith("| ")][1:]
    assert lines == [
        "| Global | - | 20.7 | 20.62 | 12.50 | - | 31.00 | 0.800 | 12.00 | 30.00 |",
        "| Local | - | 15.7 | 21.09 | 9.50 | - | 31.00 | 0.800 | 9.00 | 30.00 |",
        "| Flexible | ∞ | 20.7 | 21.31 | 12.50 | - | 31.00 | 0.800 | 12.00 | 30.00 |",
        "| Flexible | 1.2 | 7.8 | 21.11 | 6.50 | 3.00 | 30.50 | 0.800 | 6.00 | 29.50 |",
        "| + fine-tuning | 0.8 | 7.4 | 20.79 | 4.00 | 3.00 | 30.60 | 0.800 | 3.50 | 29.60 |",
    ]
    assert "* `signature of BLEU`" in page and "* `signature of RIBES`" in page


def test_rows_that_are_not_there_yet_are_left_out(results: list[dict[str, Any]]) -> None:
    assert "∞" not in tables.tables(results[:2])[".md"]
    assert tables.tables(results[:3])[".md"].count("| Flexible |") == 2


def test_fine_tuning_begins_with_the_trained_row_and_has_equation_9() -> None:
    for name, corpus in tables.CORPORA.items():
        *_, flexible, tuned = tables.corpus_rows(name)
        assert tuned.init_from == flexible.name
        assert tuned.options["strength_weight"] == 0.1
        if corpus.epoch:
            assert tuned.options["num_updates"] == corpus.epoch
            assert flexible.options["num_updates"] == corpus.epochs * corpus.epoch
        assert tuned.options["num_updates"] == tuned.options["validate_every"]


def test_figure_3_is_of_the_tuned_rows_of_table_1(
    results: list[dict[str, Any]], tmp_path: Path
) -> None:
    of = tables.make_figure3("small", [], tmp_path, tmp_path / "results")
    assert of.names() == ["multi30k_de_en_flexible_tuned", "tanaka_en_ja_flexible_tuned"]
    table1 = tables.make_table1("small", [], tmp_path, tmp_path / "results")
    assert [of.result_path(row) for row in of.rows] == list(map(table1.result_path, table1.rows))
    points = tables.sweep(results[3], "valid")
    assert [point["threshold"] for point in points] == [*tables.THRESHOLDS, None]
    assert points[2] == {"threshold": 0.8, "window": 3.5, "bleu": 29.6}
    page = tables.sweep_tables(results[3:])[".md"]
    assert "| 0.8 | 3.50 | 29.60 | 4.00 | 30.60 |" in page
    assert "| ∞ | 12.00 | 31.00 | 12.50 | 32.00 |" in page
    drawn = tables.draw_sweeps(results[3:], tmp_path / "small")
    assert list(drawn) == [WORDS]
    assert (tmp_path / f"small_{WORDS}.png").stat().st_size > 5000


def test_the_least_window_is_cut_at_the_ends_of_a_source() -> None:
    def best(length: int, steps: int, scored: float) -> list[Any]:
        found = SimpleNamespace(alignment=np.zeros((steps, length)), positions_scored=scored)
        return [SimpleNamespace(hypothesis=found)]

    translations = [best(5, 3, 4.0), best(1, 1, 1.0), [SimpleNamespace(hypothesis=None)]]
    flexible = ModelConfig(attention="flexible", flexible_sigma=1.5, threshold=0.5)
    # The penalty of a place 1 away is 1 / 4.5, of one 2 away 4 / 4.5: 2, 3, 3, 3, 2 of five.
    expected = {"window": 3.25, "window_floor": (3 * 2.6 + 1) / 4}
    assert windows(translations, flexible) == expected
    without = ModelConfig(attention="flexible")
    assert windows(translations, without) == {"window": 3.25}
    assert windows([[SimpleNamespace(hypothesis=None)]], without) == {"window": 0.0}
