"""The pages of Flexible Attention: the chosen thresholds, and the tables."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from experiments.studies import _flexible, _flexible_claims
from seq2seq_memattn.commands.evaluate import windows
from seq2seq_memattn.config import ModelConfig
from tests.experiments.studies.flexible_results import made_up_results


@pytest.fixture
def results() -> list[dict[str, Any]]:
    return made_up_results()


def test_the_threshold_is_that_with_the_smallest_window_which_costs_little(
    results: list[dict[str, Any]],
) -> None:
    flexible, tuned = results[2:]
    assert _flexible.chosen_threshold(flexible, needed=29.5) == 1.2
    assert _flexible.chosen_threshold(tuned, needed=29.5) == 0.8
    assert _flexible.chosen_threshold(flexible, needed=29.9) == 1.4
    assert _flexible.chosen_threshold(flexible, needed=30.1) is None
    flexible["tests"]["valid_1.6"]["window"] = 5.5  # windows need not grow with the threshold
    assert _flexible.chosen_threshold(flexible, needed=29.5) == 1.6


def test_a_table_has_the_five_rows_of_the_paper(results: list[dict[str, Any]]) -> None:
    page = _flexible.tables(results)
    assert page.startswith("## Multi30k, German-English, words")
    lines = [line for line in page.split("\n") if line.startswith("| ")][1:]
    assert lines == [
        "| Global | - | 20.7 | 20.62 | 12.50 | - | 31.00 | 0.800 | 12.00 | 30.00 |",
        "| Local | - | 15.7 | 21.09 | 9.50 | - | 31.00 | 0.800 | 9.00 | 30.00 |",
        "| Flexible | ∞ | 20.7 | 21.31 | 12.50 | - | 31.00 | 0.800 | 12.00 | 30.00 |",
        "| Flexible | 1.2 | 7.8 | 21.11 | 6.50 | 3.00 | 30.50 | 0.800 | 6.00 | 29.50 |",
        "| + fine-tuning | 0.8 | 7.4 | 20.79 | 4.00 | 3.00 | 30.60 | 0.800 | 3.50 | 29.60 |",
    ]
    assert "multi30k_de_en_global: 1,200; multi30k_de_en_local: 1,200;" in page
    assert page.endswith("Trained on: H (commit 0123456789).\n")
    assert "* `signature of BLEU`" in page and "* `signature of RIBES`" in page


def test_rows_that_are_not_there_yet_are_left_out(results: list[dict[str, Any]]) -> None:
    # Flexible Attention has one row without and one row with a threshold.
    for there, expected in ((results[:2], 2), (results[:3], 4), (results[3:], 1)):
        table = [line for line in _flexible.tables(there).split("\n") if line[:1] == "|"]
        assert len(table) - 2 == expected  # without the two lines of the header


def test_without_a_row_to_measure_it_against_there_is_no_threshold(
    results: list[dict[str, Any]],
) -> None:
    assert results[3][_flexible.THRESHOLD] == 0.8
    _flexible.add_thresholds(results[3:])
    assert results[3][_flexible.THRESHOLD] is None
    *_, window = _flexible_claims.claims(results[3:], ["multi30k_de_en"])
    assert window.verdict == "not run here"
    *_, window = _flexible_claims.claims(made_up_results(), ["multi30k_de_en"])
    assert window.verdict == "reproduced"


def test_fine_tuning_begins_with_the_trained_row_and_has_equation_9() -> None:
    for name, corpus in _flexible.CORPORA.items():
        *_, flexible, tuned = _flexible.corpus_rows(name)
        assert tuned.init_from == flexible.name
        assert tuned.options["strength_weight"] == 0.1
        if corpus.epoch:
            assert tuned.options["num_updates"] == corpus.epoch
            assert flexible.options["num_updates"] == corpus.epochs * corpus.epoch
        assert tuned.options["num_updates"] == tuned.options["validate_every"]


def test_the_least_window_is_cut_at_the_ends_of_a_source() -> None:
    def best(length: int, steps: int, scored: float) -> list[Any]:
        found = SimpleNamespace(alignment=np.zeros((steps, length)), positions_scored=scored)
        return [SimpleNamespace(hypothesis=found)]

    translations = [best(5, 3, 4.0), best(1, 1, 1.0), [SimpleNamespace(hypothesis=None)]]
    flexible = ModelConfig(attention="flexible", flexible_sigma=1.5, threshold=0.5)
    # Penalties: 1 / 4.5 at distance 1, 4 / 4.5 at distance 2. Windows: 2, 3, 3, 3, 2 of 5 places.
    expected = {"window": 3.25, "window_floor": (3 * 2.6 + 1) / 4}
    assert windows(translations, flexible) == expected
    without = ModelConfig(attention="flexible")
    assert windows(translations, without) == {"window": 3.25}
    assert windows([[SimpleNamespace(hypothesis=None)]], without) == {"window": 0.0}
    assert windows([best(5, 0, 0.0)], without) == {"window": 0.0}  # dead
