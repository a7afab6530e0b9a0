"""Search works with any model that has `start` and `step`."""

from typing import Any

import keras
import numpy as np
import pytest
from keras import ops

from seq2seq_memattn.search.beam import beam_search
from seq2seq_memattn.search.greedy import greedy_search
from tests.errors import refused
from tests.search.models import PrefixModel, assert_same_search, padded, random_tables, sources_of
from tests.tolerances import as_array

SOURCE = padded(sources_of(4, 2))
TABLES = random_tables(5, [0.5, 0.0])


class SteppedModel(keras.Model):
    """A `keras.Model` that looks up log-probabilities like `PrefixModel`; shows no alignments."""

    def __init__(self) -> None:
        super().__init__()
        self.prefixes = PrefixModel(TABLES)

    def start(self, source: Any, num_queries: int) -> tuple[Any, Any]:
        return self.prefixes.start(source, num_queries)

    def step(self, tokens: Any, memory: Any, state: Any) -> tuple[Any, Any, Any]:
        return self.prefixes.step(tokens, memory, state)


class OwnModel(SteppedModel):
    """A `SteppedModel` with alignments."""

    def alignment(self, scores: Any, memory: Any) -> Any:
        return scores[:, :, : SOURCE.shape[1]]

    def positions_scored(self, scores: Any, memory: Any) -> Any:
        return ops.ones_like(scores[:, :, 0])


def test_a_keras_model_with_start_and_step_is_searched() -> None:
    model, same = OwnModel(), PrefixModel(TABLES)
    ours, theirs = (beam_search(each, SOURCE, beam_size=3, n_best=2) for each in (model, same))
    assert_same_search(ours, theirs)
    greedy = greedy_search(model, SOURCE)
    np.testing.assert_array_equal(
        as_array(greedy.tokens), as_array(greedy_search(same, SOURCE).tokens)
    )


def test_its_alignments_come_with_its_own_memory() -> None:
    found = beam_search(OwnModel(), SOURCE, beam_size=2, max_length=4, return_alignments=True)
    assert tuple(found.alignments.shape) == (2, 1, 4, SOURCE.shape[1])
    np.testing.assert_array_equal(as_array(found.memory), TABLES)


def test_alignments_of_a_model_that_has_none_are_refused() -> None:
    message = refused(beam_search, SteppedModel(), SOURCE, return_alignments=True)
    assert message.startswith("`return_alignments`: expected a model with methods `alignment(")
    assert message.endswith("; got SteppedModel, which lacks `alignment`, `positions_scored`.")


@pytest.mark.parametrize("search", [beam_search, greedy_search])
def test_a_model_without_start_and_step_is_refused(search: Any) -> None:
    model = keras.Sequential([keras.layers.Dense(3)])
    with pytest.raises(ValueError, match=r"methods `start\(source.*`step\(.*got Sequential"):
        search(model, SOURCE)


def test_banned_ids_that_it_does_not_have_are_refused() -> None:
    message = refused(beam_search, OwnModel(), SOURCE, beam_size=2, banned=[50])
    assert message == "`banned`: expected ids in 0..6; got 50."


@pytest.mark.parametrize("max_length", [None, 4])
def test_no_sources_have_no_targets(max_length: int | None) -> None:
    model = PrefixModel(TABLES[:0])
    found = beam_search(model, SOURCE[:0], beam_size=3, max_length=max_length)
    assert tuple(found.log_probs.shape) == (0, 1)
