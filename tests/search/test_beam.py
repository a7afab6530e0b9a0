from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from seq2seq_memattn.search.beam import BeamResult, beam_search
from seq2seq_memattn.search.greedy import greedy_search
from seq2seq_memattn.search.sample import sample
from seq2seq_memattn.search.scores import length_penalty
from seq2seq_memattn.search.step import DEAD
from seq2seq_memattn.vocabulary import END_ID, PAD_ID, START_ID, SymbolVocabulary
from tests.errors import refused
from tests.inputs import run
from tests.marks import slow
from tests.reference import beam_search as reference
from tests.search.models import (
    PrefixModel,
    every_attention,
    one_quick_attention,
    padded,
    random_tables,
    scripted,
    small_model,
    sources_of,
    teacher_forced,
)
from tests.tolerances import as_array, assert_close

A, B = 3, 4  # ids of symbols
EXPONENTS = (0.0, 0.6, 1.0, -0.5)
LIMITS = np.array([6, 1, 5, 6, 3, 6, 2, 6, 4] * 5)
END_BIASES = np.repeat([-np.inf, -3.0, 0.0, 1.0, 3.0], 9)
BATCH = len(LIMITS)


def search(model: Any, batch: int = 1, *arguments: Any, **options: Any) -> BeamResult:
    """Searches with a `PrefixModel`, which ignores sources; returns arrays."""
    source = np.full([batch, 1], END_ID, np.int32)
    return as_arrays(beam_search(model, source, *arguments, **options))


def as_arrays(result: Any) -> Any:
    return keras.tree.map_structure(as_array, result)


def assert_equals_reference(
    result: BeamResult, row: int, expected: list[reference.Hypothesis]
) -> None:
    for rank, hypothesis in enumerate(expected):
        end = [END_ID] if hypothesis.is_finished else []
        written = [*hypothesis.tokens, *end]
        tokens = result.tokens[row, rank]
        assert tokens[: len(written)].tolist() == written
        assert (tokens[len(written) :] == PAD_ID).all()
        assert result.lengths[row, rank] == hypothesis.length
        assert result.is_finished[row, rank] == hypothesis.is_finished
    # Compared together: a reward may bring one score near 0, but hardly all scores.
    ranks = slice(len(expected))
    assert_close(result.log_probs[row, ranks], [h.log_prob for h in expected])
    assert_close(result.normalised_log_probs[row, ranks], [h.score for h in expected])


# Comparison with the reference


@pytest.mark.parametrize("early_stopping", [True, False])
@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize(("beam_size", "n_best"), [(1, 1), *slow((2, 1), (4, 4)), (4, 2), (9, 3)])
def test_a_search_with_pruning_equals_the_reference(
    beam_size: int, n_best: int, exponent: float, early_stopping: bool
) -> None:
    model = PrefixModel(random_tables(100 * beam_size + n_best, END_BIASES))
    result = search(
        model, BATCH, beam_size, n_best, exponent, LIMITS, early_stopping=early_stopping
    )
    num_steps = 0
    for row, limit in enumerate(LIMITS):
        expected, late = (
            reference.beam_search(
                model.log_probs_fn(row),
                START_ID,
                END_ID,
                beam_size,
                int(limit),
                exponent,
                n_best,
                stops,
            )
            for stops in (early_stopping, False)
        )
        assert expected.hypotheses == late.hypotheses
        assert_equals_reference(result, row, expected.hypotheses)
        # The other hypotheses have probability 0 in the model (some here cannot end).
        assert (result.log_probs[row, len(expected.hypotheses) :] < DEAD / 2).all()
        num_steps = max(num_steps, expected.num_steps)
    assert model.num_steps == num_steps == 6
    assert 0.2 < result.is_finished.mean() < 0.9


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_a_search_of_one_sentence_takes_the_steps_of_the_reference(exponent: float) -> None:
    taken = []
    for seed in range(4):
        model = PrefixModel(random_tables(seed, [1.5]))
        search(model, 1, 4, 2, exponent, 6)
        expected = reference.beam_search(
            model.log_probs_fn(0), START_ID, END_ID, 4, 6, exponent, n_best=2
        )
        assert model.num_steps == expected.num_steps
        taken.append(model.num_steps)
    assert len(set(taken)) > 1


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_a_wide_beam_finds_what_exhaustive_enumeration_finds(exponent: float) -> None:
    model = PrefixModel(random_tables(5, [0.0] * 3, vocab_size=7))
    # 4 ** 4 outputs are cut at the limit; 1 + 4 + 16 + 64 end before it.
    result = search(model, 3, 341, 341, exponent, 4)
    for row in range(3):
        expected = reference.exhaustive_search(
            model.log_probs_fn(row), START_ID, END_ID, 4, exponent
        )
        assert len(expected) == 341
        assert_close(result.normalised_log_probs[row], [h.score for h in expected])
        found = {
            (*tokens[:length], finished)
            for tokens, length, finished in zip(
                result.tokens[row].tolist(),
                result.lengths[row],
                result.is_finished[row],
                strict=True,
            )
        }
        assert found == {(*h.tokens, h.is_finished) for h in expected}
        assert_equals_reference(result, row, expected[:5])


@one_quick_attention
def test_a_wide_beam_over_a_model_finds_what_exhaustive_enumeration_finds(attention: str) -> None:
    model, max_length = small_model(attention), 4
    sources = sources_of(5, 0, 2)
    symbols = range(A, 6)
    outputs: list[list[int]] = [[]]
    finished = []
    for _ in range(max_length):
        finished += [[*output, END_ID] for output in outputs]
        outputs = [[*output, symbol] for output in outputs for symbol in symbols]
    outputs += finished
    assert len(outputs) == 1 + 3 + 9 + 27 + 81
    exponent = 0.6
    result = as_arrays(beam_search(model, padded(sources), 121, 121, exponent, max_length))
    for row, source in enumerate(sources):
        log_probs = teacher_forced(model, padded([source])[0], outputs)
        lengths = np.array([len(output) - (output[-1] == END_ID) for output in outputs])
        scores = log_probs / ((5 + lengths) / 6) ** exponent
        order = np.argsort(-scores)
        assert_close(result.normalised_log_probs[row], scores[order])
        found = [
            tokens[: length + is_finished].tolist()
            for tokens, length, is_finished in zip(
                result.tokens[row], result.lengths[row], result.is_finished[row], strict=True
            )
        ]
        assert sorted(found) == sorted(outputs)
        assert found[0] == outputs[order[0]]
        of_output = dict(zip(map(tuple, outputs), log_probs, strict=True))
        assert_close(result.log_probs[row], [of_output[tuple(output)] for output in found])


# Cases by hand


def test_a_script_gives_the_string_that_greedy_search_misses() -> None:
    # The likelier first symbol leads to a less likely output: 0.6 * 0.4 < 0.4 * 0.9.
    model = scripted(
        {
            (): {A: 0.6, B: 0.4},
            (A,): {END_ID: 0.4, A: 0.3, B: 0.3},
            (B,): {END_ID: 0.9, A: 0.1},
            (A, A): {END_ID: 1.0},
            (A, B): {END_ID: 1.0},
            (B, A): {END_ID: 1.0},
        },
        vocab_size=5,
    )
    vocabulary = SymbolVocabulary(["a", "b"])
    result = search(model, 1, 2, 2)
    assert [vocabulary.decode(tokens) for tokens in result.tokens[0]] == ["b", "a"]
    assert_close(np.exp(result.log_probs), [[0.36, 0.24]])
    assert vocabulary.decode(search(model, 1, 1).tokens[0, 0]) == "a"


@pytest.mark.parametrize(("exponent", "expected"), [(0.0, ""), (1.0, "a a"), (-1.0, "")])
def test_a_length_penalty_prefers_longer_outputs(exponent: float, expected: str) -> None:
    # ln 0.5 / (5/6) = -0.83 for the empty output, and ln 0.45 / (7/6) = -0.68 for two symbols.
    model = scripted(
        {(): {END_ID: 0.5, A: 0.45}, (A,): {A: 1.0}, (A, A): {END_ID: 1.0}}, vocab_size=4
    )
    result = search(model, 1, 2, 1, exponent)
    assert SymbolVocabulary(["a"]).decode(result.tokens[0, 0]) == expected


def test_a_finished_hypothesis_keeps_its_score_and_its_place() -> None:
    model = scripted(
        {
            (): {END_ID: 0.3, A: 0.7},
            (A,): {A: 1.0},
            (A, A): {A: 1.0},
            (A, A, A): {END_ID: 0.5, A: 0.25, B: 0.25},
        },
        vocab_size=5,
    )
    result = search(model, 1, 2, 2, 0.0, 4, early_stopping=False)
    assert_close(np.exp(result.log_probs), [[0.35, 0.3]])
    assert result.lengths.tolist() == [[3, 0]]
    assert result.is_finished.all()


def test_hypotheses_that_the_model_rules_out_come_last_with_next_to_no_probability() -> None:
    model = scripted({(): {END_ID: 0.75, A: 0.25}, (A,): {END_ID: 1.0}}, vocab_size=4)
    result = search(model, 1, 5, 3)
    assert_close(np.exp(result.log_probs), [[0.75, 0.25, 0.0]])
    assert result.log_probs[0, 2] < DEAD / 2


# Stopping


def test_early_stopping_saves_steps() -> None:
    script: dict[tuple[int, ...], dict[int, float]] = {
        (A,) * n: {END_ID: 0.4, A: 0.6} for n in range(21)
    }
    script[()] = {END_ID: 0.9, A: 0.1}
    early, late = scripted(script, 4), scripted(script, 4)
    first = search(early, 1, 2, 1, 0.0, 20)
    second = search(late, 1, 2, 1, 0.0, 20, early_stopping=False)
    # "end" has 0.9 after the first step; the live hypothesis has 0.1, 0.06, 0.036, ...
    assert (early.num_steps, late.num_steps) == (1, 20)
    keras.tree.map_structure(np.testing.assert_array_equal, first, second)


def test_early_stopping_waits_for_n_best_hypotheses_and_for_every_sentence() -> None:
    tables = random_tables(9, [1.0, 1.0])
    together = PrefixModel(tables)
    result = search(together, 2, 4, 3, 0.0, 12)
    alone = [PrefixModel(tables[row : row + 1]) for row in range(2)]
    for row, model in enumerate(alone):
        assert (search(model, 1, 4, 3, 0.0, 12).tokens[0] == result.tokens[row]).all()
    assert together.num_steps == max(model.num_steps for model in alone) < 12
    one_best = PrefixModel(tables)
    search(one_best, 2, 4, 1, 0.0, 12)
    assert one_best.num_steps < together.num_steps


@pytest.mark.parametrize("exponent", [-0.5, 0.0])
def test_without_a_limit_a_sentence_takes_twice_its_source_and_ten_more(exponent: float) -> None:
    endless = PrefixModel(random_tables(3, [-np.inf] * 2))
    source = padded(sources_of(4, 0))
    result = as_arrays(beam_search(endless, source, 3, 2, exponent))
    assert result.tokens.shape[-1] == endless.num_steps == 2 * 5 + 10
    assert result.lengths.tolist() == [[20, 20], [12, 12]]
    assert not result.is_finished.any()
    assert (result.tokens[1, :, 12:] == PAD_ID).all()


# With models


@every_attention
def test_hypotheses_rescored_with_teacher_forcing_agree(attention: str) -> None:
    model = small_model(attention)
    sources = sources_of(6, 3, 0, 8)
    result = as_arrays(beam_search(model, padded(sources), 5, 5, 0.6, np.array([6, 2, 5, 6])))
    assert 0 < np.count_nonzero(result.is_finished) < result.is_finished.size
    for row, source in enumerate(sources):
        targets = [
            tokens[: length + finished].tolist()
            for tokens, length, finished in zip(
                result.tokens[row], result.lengths[row], result.is_finished[row], strict=True
            )
        ]
        assert len({tuple(target) for target in targets}) == 5
        assert_close(result.log_probs[row], teacher_forced(model, padded([source])[0], targets))
    penalties = as_array(length_penalty(result.lengths, 0.6))
    assert_close(result.normalised_log_probs, result.log_probs / penalties)
    assert (np.diff(result.normalised_log_probs, axis=1) <= 0).all()


@every_attention
def test_batch_composition_and_padding_change_nothing(attention: str) -> None:
    model = small_model(attention)
    sources = sources_of(6, 0, 3)
    together = as_arrays(beam_search(model, padded(sources, extra=3), 3, 2, 0.0, 5))
    for row, source in enumerate(sources):
        alone = as_arrays(beam_search(model, padded([source]), 3, 2, 0.0, 5))
        assert (together.tokens[row] == alone.tokens[0]).all()
        assert (together.lengths[row] == alone.lengths[0]).all()
        assert_close(together.log_probs[row], alone.log_probs[0])


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["k_memory", "none", "bahdanau"])
def test_eager_graph_and_xla_agree(attention: str) -> None:
    model = small_model(attention)
    source = padded(sources_of(6, 0, 3))

    def find(source: Any) -> BeamResult:
        return beam_search(model, source, 3, 2, 0.6, 5, return_alignments=True)

    eager = run("eager", find, source)
    for mode in ("graph", "xla"):
        result = run(mode, find, source)
        for name in ("tokens", "lengths", "is_finished"):
            np.testing.assert_array_equal(getattr(result, name), getattr(eager, name))
        for name in ("log_probs", "normalised_log_probs", "alignments", "positions_scored"):
            assert_close(getattr(result, name), as_array(getattr(eager, name)))


# Alignments and scores of the attention


@one_quick_attention
def test_alignments_are_those_of_the_steps_that_were_taken(attention: str) -> None:
    model = small_model(attention)
    lengths, limits = [6, 0, 3], np.array([7, 4, 1], np.int32)
    source = padded(sources_of(*lengths))
    result = as_arrays(beam_search(model, source, 4, 3, 0.0, limits, return_alignments=True))
    memory, cell_states = model.encode(source)
    keras.tree.map_structure(assert_close, result.memory, as_arrays(memory))
    assert result.alignments.shape == (3, 3, 7, 7)
    is_windowed = attention in ("local_m", "local_p", "flexible_window")
    assert result.scores == () if is_windowed else result.scores.shape[:3] == (3, 3, 7)
    assert 0 < np.count_nonzero(result.is_finished) < result.is_finished.size

    inputs = np.concatenate([np.full([3, 3, 1], START_ID), result.tokens[:, :, :-1]], axis=2)
    state = model.cell.initial_state(memory, 3, cell_states)
    looked = []
    for step in range(7):
        embedded = model.target_embedding(inputs[:, :, step].astype(np.int32))
        _, scores, state = model.cell(embedded, memory, state)
        real = step < result.lengths + result.is_finished
        if not is_windowed:
            assert_close(result.scores[:, :, step], real[:, :, None] * as_array(scores))
        alignment = as_array(model.cell.attention.alignment(scores, memory))
        assert_close(result.alignments[:, :, step], real[:, :, None] * alignment)
        if attention not in ("none", "k_memory_sigmoid", "linear", "local_p"):
            weights = result.alignments if is_windowed else result.scores
            assert_close(weights[:, :, step].sum(axis=-1), real.astype(float))
        looked += (as_array(model.cell.attention.positions_scored(scores, memory))[real]).tolist()
    steps = result.lengths + result.is_finished
    found = (result.positions_scored * steps).sum() / steps.sum()
    assert_close(found, np.array(np.mean(looked)))
    for row, length in enumerate(lengths):
        assert not result.alignments[row, :, :, length + 1 :].any()


@pytest.mark.parametrize(
    ("attention", "expected"), [("bahdanau", 7.0), ("k_memory", 0.0), ("none", 0.0)]
)
def test_positions_scored_are_counted(attention: str, expected: float) -> None:
    source = padded(sources_of(6))
    result = beam_search(small_model(attention), source, 2, max_length=3, return_alignments=True)
    assert as_array(result.positions_scored).tolist() == [[expected]]


def test_alignments_come_on_request_alone() -> None:
    result = beam_search(small_model(), padded(sources_of(2)), 2, max_length=3)
    assert result.alignments == result.scores == result.memory == result.positions_scored == ()


# Arguments


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 0}, "`beam_size` must be an int >= 1; got 0."),
        ({"beam_size": 2.0}, "`beam_size` must be an int >= 1; got 2.0."),
        ({"beam_size": True}, "`beam_size` must be an int >= 1; got True."),
        ({"n_best": 0}, "`n_best` must be an int >= 1; got 0."),
        ({"n_best": 1.5}, "`n_best` must be an int >= 1; got 1.5."),
        ({"beam_size": 3, "n_best": 4}, "`n_best` must be at most `beam_size`, 3; got 4."),
        (
            {"length_penalty_exponent": "0.6"},
            "`length_penalty_exponent` must be a finite number; got '0.6'.",
        ),
        ({"max_length": 0}, "`max_length` must be an int >= 1; got 0."),
        ({"max_length": 2.5}, "`max_length` must be an int >= 1; got 2.5."),
        ({"max_length": "5"}, "`max_length` must be an int >= 1; got '5'."),
        ({"max_length": [2.5]}, "`max_length` must be an int >= 1; got [2.5]."),
        ({"max_length": [[3]]}, "`max_length` must be an int >= 1; got [[3]]."),
        ({"max_length": [3, 4]}, "`max_length`: expected batch 1; got 2."),
        ({"max_length": [-1]}, "`max_length`: expected lengths of at least 1; got -1."),
        ({"max_length": np.array([0])}, "`max_length`: expected lengths of at least 1; got 0."),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    model, source = PrefixModel(random_tables(0, [0.0])), np.array([[END_ID]])
    assert refused(beam_search, model, source, **options) == message


@pytest.mark.parametrize("search", [beam_search, greedy_search, sample])
def test_a_source_of_wrong_rank_is_refused_in_a_graph_too(search: Any) -> None:
    @tf.function  # type: ignore[untyped-decorator]
    def in_graph(source: Any) -> Any:
        return search(PrefixModel(random_tables(0, [0.0])), source, max_length=2)

    with pytest.raises(ValueError, match=r"`source`: expected shape \[batch, source_length\]"):
        in_graph(tf.constant([END_ID]))


def test_limits_in_a_graph_are_checked_when_it_runs() -> None:
    model, source = PrefixModel(random_tables(8, [0.0, 0.0])), np.full([2, 1], END_ID)
    graph = tf.function(lambda limits: beam_search(model, source, 2, max_length=limits).lengths)
    assert graph(tf.constant([4, 1])).shape == (2, 1)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="`max_length`: expected lengths of at least 1"
    ):
        graph(tf.constant([4, 0]))


def test_a_limit_may_be_one_number_or_one_for_each_sentence() -> None:
    tables = random_tables(8, [0.0, 0.0])
    one = search(PrefixModel(tables), 2, 3, 2, 0.0, 4)
    each = search(PrefixModel(tables), 2, 3, 2, 0.0, np.array([4, 4]))
    keras.tree.map_structure(np.testing.assert_array_equal, one, each)
