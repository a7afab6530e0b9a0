import functools
from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.attention.additive import BahdanauAttention
from seq2seq_memattn.search.beam import beam_search
from seq2seq_memattn.search.compiled_search import CompiledSearch
from seq2seq_memattn.search.ensemble import MEANS, Ensemble, _check_same
from seq2seq_memattn.search.options import SearchOptions
from seq2seq_memattn.search.sample import sample
from seq2seq_memattn.vocabulary import END_ID, PAD_ID, START_ID
from tests.errors import refused
from tests.marks import quick
from tests.reference import beam_search as reference
from tests.search import own_parts
from tests.search.models import Array, assert_same_search, padded, small_model, sources_of
from tests.search.own_parts import SOURCE
from tests.search.test_beam import as_arrays, assert_equals_reference
from tests.tolerances import as_array, assert_close

SOURCES = padded(sources_of(5, 0, 3))
LIMIT = 5
RULES: dict[str, Any] = {"no_repeat_ngram": 1, "coverage_penalty": 0.3}


@functools.cache
def models() -> list[Any]:
    return [small_model("k_memory"), small_model("bahdanau", seed=2, decoder_units=6)]


def log_probs_of(row: int, mean: str) -> Any:
    """The mean of the models' predictions, computed by teacher forcing and NumPy."""

    def log_probs(prefix: tuple[int, ...]) -> Array:
        inputs = {"source": SOURCES[row : row + 1], "target_inputs": np.array([prefix], np.int32)}
        logits = np.array([as_array(model(inputs))[0, -1] for model in models()])
        logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
        if mean == "probabilities":
            found = np.log(np.exp(logits).mean(axis=0))
        else:
            found = logits.mean(axis=0)
            found -= np.log(np.exp(found).sum())
        found[[PAD_ID, START_ID]] = -np.inf
        return found

    return functools.cache(log_probs)


@pytest.mark.parametrize("mean", quick(MEANS, "probabilities"))
def test_search_with_an_ensemble_is_search_with_the_mean(mean: str) -> None:
    found = as_arrays(beam_search(Ensemble(models(), mean), SOURCES, 3, 2, 0.6, LIMIT))
    for row in range(len(SOURCES)):
        expected = reference.beam_search(
            log_probs_of(row, mean), START_ID, END_ID, 3, LIMIT, 0.6, 2
        )
        assert_equals_reference(found, row, expected.hypotheses)


@pytest.mark.slow
def test_alignments_are_averaged_and_positions_added() -> None:
    both = as_arrays(beam_search(Ensemble(models()), SOURCES, 2, 1, 0.0, LIMIT, True, True))
    assert len(both.memory) == 2
    alignments, positions = 0.0, 0.0
    for model in models():
        # The best target of both as a prefix: a model then follows it.
        tokens = np.where(both.tokens[:, 0] > END_ID, both.tokens[:, 0], PAD_ID).astype(np.int32)
        alone = as_arrays(beam_search(model, SOURCES, 1, 1, 0.0, LIMIT, True, True, prefix=tokens))
        alignments += 0.5 * alone.alignments
        positions += alone.positions_scored
    written = both.tokens[:, 0] > END_ID
    assert_close(both.alignments[:, 0][written], alignments[:, 0][written])
    assert_close(both.positions_scored, positions)


@pytest.mark.slow
@pytest.mark.parametrize("jit_compile", [False, True])
def test_compiled_search_finds_the_same_under_constraints(jit_compile: bool) -> None:
    model = Ensemble(models())
    options = SearchOptions(4, 2, coverage_penalty=0.3, no_repeat_ngram=1)
    limits = np.array([LIMIT, 3, LIMIT], np.int32)
    expected = beam_search(model, SOURCES, 4, 2, 0.0, limits, **RULES, prefix=[[3], [0], [4]])
    found = CompiledSearch(model, options, 3, jit_compile=jit_compile)(
        SOURCES, limits, prefix=np.array([[3], [0], [4]], np.int32)
    )
    assert_same_search(found, expected)
    free = beam_search(model, SOURCES, 4, 2, 0.0, limits)
    assert (as_array(free.tokens) != as_array(expected.tokens)).any()


@pytest.mark.slow
def test_samples_are_drawn_from_the_mean() -> None:
    drawn = as_arrays(sample(Ensemble(models()), SOURCES[:1], 400, seed=1, max_length=2))
    first = np.bincount(drawn.tokens[0, :, 0].astype(int), minlength=6) / 400
    expected = np.exp(log_probs_of(0, "probabilities")((START_ID,)))
    # Padding and the start token cannot be drawn.
    np.testing.assert_allclose(first, expected / expected.sum(), atol=0.08)


def test_a_member_without_attention_does_not_dilute_the_alignment() -> None:
    attentive = models()[0]
    model = Ensemble([small_model("none", vocab_size=attentive.vocab_size), attentive])
    found = as_arrays(beam_search(model, SOURCES, 2, 1, 0.0, LIMIT, True, True))
    written = found.tokens[:, 0] != PAD_ID
    total = found.alignments[:, 0].sum(axis=2)[written]
    assert_close(total, np.ones_like(total))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda: models()[0], "`models`: expected a list of models; got Seq2Seq."),
        (lambda: [models()[0]], "`models`: expected two or more; got 1."),
        (
            lambda: [models()[0], "a"],
            "`models`: expected each to be a `Seq2Seq` or a `Searchable`; got str.",
        ),
        (
            lambda: [models()[0], small_model("none", vocab_size=7)],
            "`models`: expected the same vocabularies; `vocab_size` is 6 in model 1 and 7 in model "
            "2.",
        ),
        (
            lambda: [own_parts.make().searchable(), own_parts.make().searchable(end_id=4)],
            "`models`: expected the same ids of padding, start and end token; those of model 2 "
            "differ from those of model 1.",
        ),
    ],
)
def test_what_cannot_search_together_is_refused(given: Any, message: str) -> None:
    assert refused(Ensemble, given()) == message


def test_sizes_are_compared_even_if_the_first_models_is_unknown() -> None:
    _check_same("source_vocab_size", [None, 9, None, 9])
    assert refused(_check_same, "source_vocab_size", [None, 9, None, 12]) == (
        "`models`: expected the same vocabularies; `source_vocab_size` is 9 in model 2 and 12 in "
        "model 4."
    )


def test_models_of_ones_own_search_together() -> None:
    first, second = own_parts.make(), own_parts.make(attention=BahdanauAttention(3))
    found = as_arrays(
        beam_search(Ensemble([first.searchable(), second.searchable()]), SOURCE, 4, 3)
    )
    log_probs = [
        as_array(own_parts.rescored(own.trained, SOURCE, found.tokens.astype(np.int32)))
        for own in (first, second)
    ]
    written = np.arange(found.tokens.shape[2]) < as_array(found.steps)[:, :, None]
    together = np.log(np.exp(log_probs).mean(axis=0))
    assert_close(found.log_probs, (together * written).sum(axis=2))
    ensemble = Ensemble([first.searchable(), second.searchable()])
    assert ensemble.count_params() == sum(own.trained.count_params() for own in (first, second))


def test_another_mean_is_refused() -> None:
    expected = "`mean` must be one of probabilities, log_probabilities; got 'max'."
    assert refused(Ensemble, models(), "max") == expected


def test_the_mean_stays_as_it_was_made() -> None:
    ensemble = Ensemble(models(), "log_probabilities")
    with pytest.raises(AttributeError):
        ensemble.mean = "probabilities"  # type: ignore[misc]
    assert ensemble.mean == "log_probabilities"
