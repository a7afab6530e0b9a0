"""The references agree with Keras, sacrebleu and cases that a reader can check on paper.

The numbers are chosen so that softmax(ln 2, 0) = (2/3, 1/3), sigmoid(ln 3) = 3/4 and
tanh(ln 3 / 2) = 1/2.
"""

from typing import Any

import keras
import numpy as np
import pytest
import sacrebleu

from tests.reference import attention, beam_search, bleu, decoder, recurrent
from tests.reference.activations import Array, sigmoid, softmax

LN2, LN3, LN4 = np.log([2.0, 3.0, 4.0])
NAN = np.nan


def assert_equal(actual: object, expected: object) -> None:
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=1e-12, atol=1e-15)


# Activations


def test_softmax_and_sigmoid_by_hand() -> None:
    assert_equal(softmax(np.array([LN2, 0.0])), [2 / 3, 1 / 3])
    assert_equal(sigmoid(np.array([LN3, 0.0, -LN3])), [3 / 4, 1 / 2, 1 / 4])


def test_softmax_and_sigmoid_bear_large_energies() -> None:
    assert_equal(softmax(np.array([1000.0, 1000.0 - LN2])), [2 / 3, 1 / 3])
    assert_equal(sigmoid(np.array([1000.0, -1000.0])), [1, 0])
    assert_equal(sigmoid(np.array([-300.0])) / np.exp(-300.0), [1])


# Attention

IDENTITY = np.eye(2)


def test_bahdanau_by_hand() -> None:
    # W_k s + (b_k + W_q h + b_q) is ln 3 / 2 in row 0 and 0 in row 1, so the energies are
    # ln 2 * 1/2 + (-ln 2) * (-1/2) = ln 2, and 0.
    scores = attention.bahdanau_scores(
        query=np.array([3.0]),
        encoder_outputs=np.array([[0.0], [1.0], [NAN]]),
        W_k=np.array([[-LN3 / 2, LN3 / 2]]),
        b_k=np.array([LN3 / 10, -LN3 / 10]),
        W_q=np.array([[LN3 / 10, -LN3 / 10]]),
        b_q=np.array([LN3 / 10, -LN3 / 10]),
        v=np.array([LN2, -LN2]),
        length=2,
    )
    assert_equal(scores, [2 / 3, 1 / 3, 0])


def test_bahdanau_without_bias_by_hand() -> None:
    scores = attention.bahdanau_scores(
        query=np.array([LN3 / 2]),
        encoder_outputs=np.array([[0.0], [-LN3 / 2]]),
        W_k=np.array([[1.0]]),
        b_k=None,
        W_q=np.array([[1.0]]),
        b_q=None,
        v=np.array([2 * LN2]),
        length=2,
    )
    assert_equal(scores, [2 / 3, 1 / 3])


def test_luong_dot_by_hand() -> None:
    encoder_outputs = np.array([[1.0, 0.0], [0.0, 1.0], [NAN, NAN]])
    scores = attention.luong_dot_scores(np.array([LN2, LN3]), encoder_outputs, length=2)
    assert_equal(scores, [2 / 5, 3 / 5, 0])


def test_luong_general_by_hand() -> None:
    # The map gives 5 and 7. Multiplied by the query, ln 2 / 2, the energies differ by ln 2.
    encoder_outputs = np.array([[1.0, 0.0], [0.0, 1.0], [NAN, NAN]])
    to_query = np.array([[5.0], [7.0]])
    scores = attention.luong_general_scores(
        np.array([LN2 / 2]), encoder_outputs, to_query, length=2
    )
    assert_equal(scores, [1 / 3, 2 / 3, 0])


@pytest.mark.parametrize(
    ("score", "normalise_over", "expected"),
    [
        ("softmax", "slots", [[2 / 3, 1 / 3], [1 / 4, 3 / 4], [0, 0]]),
        ("softmax", "time", [[2 / 3, 1 / 4], [1 / 3, 3 / 4], [0, 0]]),
        ("sigmoid", "slots", [[2 / 3, 1 / 2], [1 / 2, 3 / 4], [0, 0]]),
        ("sigmoid", "time", [[2 / 3, 1 / 2], [1 / 2, 3 / 4], [0, 0]]),
    ],
)
def test_k_memory_alpha_by_hand(
    score: str, normalise_over: str, expected: list[list[float]]
) -> None:
    encoder_outputs = np.array([[1.0, 0.0], [0.0, 1.0], [NAN, NAN]])
    energies = np.array([[LN2, 0.0], [0.0, LN3]])
    alpha = attention.k_memory_alpha(encoder_outputs, 2, energies, score, normalise_over)
    assert_equal(alpha, expected)
    bias = np.array([5.0, -5.0])
    alpha = attention.k_memory_alpha(
        encoder_outputs, 2, energies - bias, score, normalise_over, b_alpha=bias
    )
    assert_equal(alpha, expected)


def test_position_encodings_multiply_the_energies() -> None:
    # L = [[1/2, 1/2], [0, 1/2]] turns these energies, with bias, into those of the case above.
    alpha = attention.k_memory_alpha(
        IDENTITY,
        2,
        np.array([[LN4 - 1, 5.0], [-1.0, 2 * LN3 - 2]]),
        position_encoding="masked",
        max_source_length=2,
        b_alpha=np.array([1.0, 2.0]),
    )
    assert_equal(alpha, [[2 / 3, 1 / 3], [1 / 4, 3 / 4]])


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (None, [[1, 1, 1], [1, 1, 1]]),
        ("masked", [[1 / 2, 1 / 2, 1 / 2], [0, 1 / 4, 1 / 2]]),
        ("sum_to_one", [[1 / 3, 1 / 3, 1 / 3], [0, 1 / 3, 2 / 3]]),
        ("mean_one", [[1, 1, 1], [0, 1, 2]]),
    ],
)
def test_position_encodings_by_hand(mode: str | None, expected: list[list[float]]) -> None:
    assert_equal(attention.position_encodings(2, 4, 3, mode), expected)


def test_position_encodings_of_four_slots_by_hand() -> None:
    encodings = attention.position_encodings(4, 2, 2, "masked")
    assert_equal(encodings, [[3 / 4, 1 / 2], [1 / 2, 1 / 2], [1 / 4, 1 / 2], [0, 1 / 2]])


def test_position_encodings_of_one_token_keep_the_zero_of_the_last_slot() -> None:
    assert_equal(attention.position_encodings(2, 4, 1, "masked"), [[1 / 2], [0]])
    assert_equal(attention.position_encodings(2, 4, 1, "sum_to_one"), [[1], [0]])
    assert_equal(attention.position_encodings(2, 4, 1, "mean_one"), [[1], [0]])


def test_position_encodings_refuse_what_equation_10_does_not_cover() -> None:
    with pytest.raises(ValueError, match="max_source_length"):
        attention.position_encodings(2, 4, 5, "masked")
    with pytest.raises(ValueError, match="max_source_length"):
        attention.position_encodings(2, None, 1, "masked")


def test_k_memory_rows_scores_context_and_alignment_by_hand() -> None:
    alpha = np.array([[2 / 3, 1 / 3], [1 / 4, 3 / 4], [0, 0]])
    rows = attention.k_memory_rows(np.array([[1.0, 0.0], [0.0, 1.0], [7.0, 7.0]]), alpha)
    assert_equal(rows, [[2 / 3, 1 / 4], [1 / 3, 3 / 4]])
    beta = attention.k_memory_beta(np.array([LN2, 0.0]), IDENTITY)
    assert_equal(beta, [2 / 3, 1 / 3])
    assert_equal(attention.context(beta, rows), [5 / 9, 5 / 12])
    assert_equal(attention.k_memory_alignment(beta, alpha), [5 / 9, 5 / 12, 0])


def test_k_memory_beta_variants_by_hand() -> None:
    query = np.array([LN2, 0.0])
    assert_equal(attention.k_memory_beta(query, IDENTITY, "sigmoid"), [2 / 3, 1 / 2])
    bias = np.array([0.0, LN2])
    assert_equal(attention.k_memory_beta(query, IDENTITY, "softmax", bias), [1 / 2, 1 / 2])
    assert_equal(attention.k_memory_beta(query, IDENTITY, "sigmoid", bias), [2 / 3, 2 / 3])


# Recurrent layers

# z = 1/2 always and g = tanh(sum of inputs): h' = h / 2 + tanh(sum of inputs) / 2
HALVING_CELL = recurrent.GRUWeights(np.array([[0.0, 0.0, 1.0]]), np.zeros([1, 3]))


def test_lstm_step_by_hand() -> None:
    # i = 3/4, f = 3/4, g = 1/2, o = 1/4; c' = 3/4 c + 3/8 = ln 3 / 2; h' = 1/4 * 1/2.
    weights = recurrent.LSTMWeights(
        kernel=np.array([[LN3, 0.0, 0.0, 0.0]]),
        recurrent_kernel=np.array([[0.0, LN3 / 2, 0.0, -LN3 / 2]]),
        bias=np.array([0.0, 0.0, LN3 / 2, 0.0]),
    )
    c = (LN3 / 2 - 3 / 8) / (3 / 4)
    output, state = recurrent.lstm_step(np.array([1.0]), (np.array([2.0]), np.array([c])), weights)
    assert_equal(output, [1 / 8])
    assert_equal(state, [[1 / 8], [LN3 / 2]])


def test_gru_step_by_hand() -> None:
    # z = 3/4, r = 1/2; input and state contribute ln 3 / 4 each, so g = 1/2;
    # h' = 3/4 * 2 + 1/4 * 1/2.
    state = (np.array([2.0]),)
    reset_after = recurrent.GRUWeights(
        kernel=np.array([[LN3 / 2, 0.0, LN3 / 8]]),
        recurrent_kernel=np.array([[LN3 / 8, 0.0, LN3 / 8]]),
        bias=np.array([[LN3 / 8, 0.0, LN3 / 8], [LN3 / 8, 0.0, LN3 / 4]]),
    )
    output, new_state = recurrent.gru_step(np.array([1.0]), state, reset_after)
    assert_equal(output, [13 / 8])
    assert_equal(new_state, [[13 / 8]])
    reset_before = recurrent.GRUWeights(
        kernel=np.array([[LN3 / 2, 0.0, LN3 / 8]]),
        recurrent_kernel=np.array([[LN3 / 8, 0.0, LN3 / 4]]),
        bias=np.array([LN3 / 4, 0.0, LN3 / 8]),
        reset_after=False,
    )
    output, new_state = recurrent.gru_step(np.array([1.0]), state, reset_before)
    assert_equal(output, [13 / 8])
    assert_equal(new_state, [[13 / 8]])


def test_a_layer_in_both_directions_by_hand() -> None:
    inputs = np.array([[LN3 / 2], [0.0], [NAN]])
    outputs, state = recurrent.run_layer(inputs, 2, HALVING_CELL)
    assert_equal(outputs, [[1 / 4], [1 / 8], [0]])
    assert_equal(state, [[1 / 8]])
    outputs, state = recurrent.run_layer(inputs, 2, HALVING_CELL, backward=True)
    assert_equal(outputs, [[1 / 4], [0], [0]])
    assert_equal(state, [[1 / 4]])
    _, state = recurrent.run_layer(inputs, 2, HALVING_CELL, initial_state=(np.array([1.0]),))
    assert_equal(state, [[3 / 8]])


def random_lstm(rng: np.random.Generator, inputs: int, units: int) -> recurrent.LSTMWeights:
    return recurrent.LSTMWeights(
        rng.normal(size=[inputs, 4 * units]),
        rng.normal(size=[units, 4 * units]),
        rng.normal(size=[4 * units]),
    )


def random_gru(
    rng: np.random.Generator, inputs: int, units: int, reset_after: bool
) -> recurrent.GRUWeights:
    return recurrent.GRUWeights(
        rng.normal(size=[inputs, 3 * units]),
        rng.normal(size=[units, 3 * units]),
        rng.normal(size=[2, 3 * units] if reset_after else [3 * units]),
        reset_after,
    )


@pytest.mark.parametrize("kind", ["lstm", "gru_reset_after", "gru_reset_before"])
def test_layers_agree_with_keras(kind: str) -> None:
    rng = np.random.default_rng(0)
    inputs, lengths = rng.normal(size=[2, 5, 3]), [5, 2]
    mask = np.arange(5) < np.array(lengths)[:, None]
    options: dict[str, Any] = {"return_sequences": True, "return_state": True, "dtype": "float64"}
    options |= {"zero_output_for_mask": True, "seed": 0}
    options |= {"kernel_initializer": "zeros", "recurrent_initializer": "zeros"}
    weights: recurrent.CellWeights
    if kind == "lstm":
        layer, weights = keras.layers.LSTM(7, **options), random_lstm(rng, 3, 7)
    else:
        reset_after = kind == "gru_reset_after"
        layer = keras.layers.GRU(7, reset_after=reset_after, **options)
        weights = random_gru(rng, 3, 7, reset_after)
    layer.build([2, 5, 3])
    layer.set_weights([weights.kernel, weights.recurrent_kernel, weights.bias])
    outputs, *state = layer(inputs, mask=mask)
    result = recurrent.unidirectional_stack(inputs, lengths, [weights])
    assert_equal(result.outputs, keras.ops.convert_to_numpy(outputs))
    for ours, keras_part in zip(result.forward_states[0], state, strict=True):
        assert_equal(ours, keras.ops.convert_to_numpy(keras_part))


def test_the_stack_inside_each_direction_is_two_stacks_joined_at_the_top() -> None:
    rng = np.random.default_rng(1)
    inputs, lengths = rng.normal(size=[2, 5, 3]), [5, 3]
    forward = [random_lstm(rng, 3, 7), random_lstm(rng, 7, 7)]
    backward = [random_lstm(rng, 3, 7), random_lstm(rng, 7, 7)]
    result = recurrent.bidirectional_stack(inputs, lengths, forward, backward)
    assert result.outputs.shape == (2, 5, 14)
    assert [part.shape for part in result.backward_states[1]] == [(2, 7), (2, 7)]
    alone = recurrent.unidirectional_stack(inputs, lengths, forward)
    assert_equal(result.outputs[..., :7], alone.outputs)
    reversed_sentence = inputs[1:, 2::-1]  # its three real tokens in reverse
    alone = recurrent.unidirectional_stack(reversed_sentence, [3], backward)
    assert_equal(result.outputs[1, :3, 7:], alone.outputs[0, ::-1])
    assert_equal(result.outputs[1, 3:], np.zeros([2, 14]))
    # The forward direction ends at the last real token, the backward direction at the first.
    assert_equal(result.forward_states[1][0][1], result.outputs[1, 2, :7])
    assert_equal(result.backward_states[1][0], result.outputs[:, 0, 7:])


def test_layers_joined_between_see_both_directions() -> None:
    rng = np.random.default_rng(2)
    inputs, lengths = rng.normal(size=[2, 5, 3]), [5, 3]
    forward = [random_gru(rng, 3, 7, True), random_gru(rng, 14, 7, True)]
    backward = [random_gru(rng, 3, 7, True), random_gru(rng, 14, 7, True)]
    result = recurrent.bidirectional_concatenated(inputs, lengths, forward, backward)
    lower = recurrent.bidirectional_stack(inputs, lengths, forward[:1], backward[:1])
    upper = recurrent.bidirectional_stack(lower.outputs, lengths, forward[1:], backward[1:])
    assert_equal(result.outputs, upper.outputs)
    assert_equal(result.forward_states[0], lower.forward_states[0])
    assert_equal(result.backward_states[1], upper.backward_states[0])


# Decoder

FED_CELL = HALVING_CELL._replace(kernel=np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]))
FED_WEIGHTS = decoder.DecoderWeights(
    cells=[FED_CELL],
    logits_kernel=np.array([[2.0, -2.0]]),
    logits_bias=np.array([0.0, 1.0]),
    mixing_kernel=np.array([[-4.0], [1.0]]),
    mixing_bias=np.array([0.0]),
)


def attend(query: Array, embedding: Array) -> tuple[Array, Array]:
    """Returns the only row, ln 3 / 2, as context, and the query as score."""
    return query, np.array([LN3 / 2])


def test_decoder_that_reads_after_the_cell_by_hand() -> None:
    first = decoder.decoder_step(
        np.zeros(1), decoder.initial_state([FED_CELL], 1), FED_WEIGHTS, attend
    )
    assert_equal(first.scores, [0])  # no context was fed, so h = 0
    assert_equal(first.output, [1 / 2])  # tanh(-4 * 0 + ln 3 / 2)
    assert_equal(first.logits, [1, 0])
    assert_equal(first.state.context, [LN3 / 2])
    second = decoder.decoder_step(np.zeros(1), first.state, FED_WEIGHTS, attend)
    assert_equal(second.scores, [1 / 4])  # the context was fed: h = 1/2 * tanh(ln 3 / 2)
    assert_equal(second.output, [np.tanh(-1 + LN3 / 2)])
    assert_equal(second.state.cells, [[[1 / 4]]])


def test_decoder_that_reads_before_the_cell_by_hand() -> None:
    options = decoder.DecoderOptions(read="before")
    start = decoder.initial_state([FED_CELL], 1, cell_states=[(np.array([1 / 2]),)])
    result = decoder.decoder_step(np.zeros(1), start, FED_WEIGHTS, attend, options)
    assert_equal(result.scores, [1 / 2])  # the state before the step
    assert_equal(result.state.cells, [[[1 / 2]]])  # 1/2 * 1/2 + 1/2 * tanh(ln 3 / 2)
    assert_equal(result.output, [np.tanh(-2 + LN3 / 2)])


def test_decoder_without_input_feeding_by_hand() -> None:
    weights = FED_WEIGHTS._replace(cells=[HALVING_CELL])
    options = decoder.DecoderOptions(input_feeding=False)
    embeddings = np.array([[LN3 / 2], [0.0]])
    logits, scores, state = decoder.teacher_forced(
        embeddings, decoder.initial_state([HALVING_CELL], 1), weights, attend, options
    )
    assert_equal(scores, [[1 / 4], [1 / 8]])
    mixed = np.tanh([-1 + LN3 / 2, -1 / 2 + LN3 / 2])
    assert_equal(logits, np.stack([2 * mixed, 1 - 2 * mixed], axis=-1))
    assert_equal(state.cells, [[[1 / 8]]])


@pytest.mark.parametrize(
    ("options", "mixing_kernel", "expected"),
    [
        (decoder.DecoderOptions(), [[2.0], [1.0]], [np.tanh(1 / 2 + LN3 / 2)]),
        (decoder.DecoderOptions(mixing_activation="linear"), [[2.0], [1.0]], [1 / 2 + LN3 / 2]),
        (decoder.DecoderOptions(mixing_inputs="output"), [[2 * LN3]], [1 / 2]),
        (decoder.DecoderOptions(), None, [1 / 4, LN3 / 2]),
        (decoder.DecoderOptions(mixing_inputs="output"), None, [1 / 4]),
    ],
)
def test_mixing_layers_by_hand(
    options: decoder.DecoderOptions, mixing_kernel: list[list[float]] | None, expected: list[float]
) -> None:
    weights = decoder.DecoderWeights(
        cells=[FED_CELL],
        logits_kernel=np.eye(len(expected)),
        mixing_kernel=None if mixing_kernel is None else np.array(mixing_kernel),
    )
    start = decoder.initial_state([FED_CELL], 1)
    result = decoder.decoder_step(np.array([LN3 / 2]), start, weights, attend, options)
    assert_equal(result.output, expected)
    assert_equal(result.logits, expected)


def test_a_stack_of_cells_feeds_upwards_and_queries_with_its_top() -> None:
    weights = FED_WEIGHTS._replace(cells=[FED_CELL, HALVING_CELL])
    start = decoder.initial_state(weights.cells, 1)
    result = decoder.decoder_step(np.array([LN3 / 2]), start, weights, attend)
    top = np.tanh(1 / 4) / 2
    assert_equal(result.state.cells, [[[1 / 4]], [[top]]])
    assert_equal(result.scores, [top])
    options = decoder.DecoderOptions(read="before")
    start = decoder.initial_state(weights.cells, 1, [(np.array([1 / 2]),), (np.array([1 / 4]),)])
    result = decoder.decoder_step(np.zeros(1), start, weights, attend, options)
    assert_equal(result.scores, [1 / 4])


# Beam search

END, A, B, START = 0, 1, 2, 3


def scripted(prefix: tuple[int, ...]) -> Array:
    """A model whose likeliest first token, A, has no likely successor, while B ends at once."""
    probabilities = {
        (START,): [0.0, 0.6, 0.4],
        (START, A): [0.4, 0.3, 0.3],
        (START, B): [0.9, 0.05, 0.05],
    }.get(prefix, [1.0, 0.0, 0.0])
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probabilities))


def random_model(seed: int, vocab_size: int = 3) -> beam_search.LogProbsFn:
    """A model in which each prefix has its own random distribution."""

    def log_probs(prefix: tuple[int, ...]) -> Array:
        rng = np.random.default_rng([seed, *prefix])
        return np.log(softmax(2 * rng.normal(size=vocab_size)))

    return log_probs


def test_length_penalty_by_hand() -> None:
    assert_equal(beam_search.length_penalty(1, 0.7), 1)
    assert_equal(beam_search.length_penalty(7, 2.0), 4)
    assert_equal(beam_search.length_penalty(7, 0.0), 1)


def test_beam_search_by_hand() -> None:
    (best,), num_steps = beam_search.beam_search(scripted, START, END, 1, max_length=4)
    assert best.tokens == (A,)
    assert_equal(np.exp(best.log_prob), 0.6 * 0.4)
    # Beam 2: {A 0.6, B 0.4} -> {B end 0.36, A end 0.24}. No hypothesis is live, so search stops.
    hypotheses, num_steps = beam_search.beam_search(scripted, START, END, 2, max_length=4, n_best=2)
    assert [h.tokens for h in hypotheses] == [(B,), (A,)]
    assert [h.is_finished for h in hypotheses] == [True, True]
    assert_equal(np.exp([h.log_prob for h in hypotheses]), [0.36, 0.24])
    assert num_steps == 2
    # Beam 3 keeps A A 0.18 (A B has a higher index). A A ends with certainty in step 3.
    for early_stopping, steps in [(True, 3), (False, 4)]:
        hypotheses, num_steps = beam_search.beam_search(
            scripted, START, END, 3, max_length=4, n_best=3, early_stopping=early_stopping
        )
        assert [h.tokens for h in hypotheses] == [(B,), (A,), (A, A)]
        assert_equal(np.exp([h.score for h in hypotheses]), [0.36, 0.24, 0.18])
        assert num_steps == steps


def test_what_has_not_ended_at_the_limit_is_returned_as_it_is() -> None:
    (best,), num_steps = beam_search.beam_search(scripted, START, END, 2, max_length=1)
    assert best.tokens == (A,)
    assert best.length == 1
    assert not best.is_finished
    assert num_steps == 1


def test_the_length_penalty_decides_by_hand() -> None:
    # "end" scores -1 / (5/6)^a = -1.2^a. "A end", whose end is certain, scores -1.2 / 1^a, so the
    # longer one wins if a > 1.
    log_probs = np.array([-1.0, -1.2, -np.inf])
    certain_end = np.array([0.0, -np.inf, -np.inf])

    def model(prefix: tuple[int, ...]) -> Array:
        return log_probs if len(prefix) == 1 else certain_end

    for factor, tokens in [(0.0, ()), (0.9, ()), (1.1, (A,)), (-3.0, ())]:
        (best,), _ = beam_search.beam_search(
            model, START, END, 2, max_length=3, length_penalty_factor=factor
        )
        assert best.tokens == tokens
        assert_equal(best.score, best.log_prob / ((5 + len(tokens)) / 6) ** factor)


def test_stopping_by_hand() -> None:
    finished = beam_search.Hypothesis((A,), -1.0, -1.0, True)
    live = beam_search.Hypothesis((A, B), -1.5, -1.5 * 6 / 7, False)
    can_stop = beam_search.can_stop
    assert can_stop([finished, live], 1, 10, 0.0)
    assert not can_stop([finished, live], 2, 10, 0.0)
    assert can_stop([finished, finished, live], 2, 10, 0.0)
    # a = 1: with 4 tokens, the live hypothesis reaches -1.5 * 6/9 = -1; with 3, only -1.5 * 6/8.
    assert can_stop([finished, live], 1, 3, 1.0)
    assert not can_stop([finished, live], 1, 4, 1.0)
    # a = -1: the shortest length is the most favourable: -1.5 * 7/6.
    assert can_stop([finished, live], 1, 10, -1.0)
    assert can_stop([finished], 2, 10, 0.0)
    assert not can_stop([live], 1, 10, 0.0)


def test_a_finished_hypothesis_can_be_pushed_out() -> None:
    def model(prefix: tuple[int, ...]) -> Array:
        # "end" has 0.3 and A has 0.7. A continues to A A and A B with 1/2 each, 0.35 twice.
        probabilities = {1: [0.3, 0.7, 0.0], 2: [0.0, 0.5, 0.5]}.get(len(prefix), [1.0, 0.0, 0.0])
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(probabilities))

    hypotheses, _ = beam_search.beam_search(model, START, END, 2, max_length=5, n_best=2)
    assert [h.tokens for h in hypotheses] == [(A, A), (A, B)]


def test_equal_scores_go_to_the_lower_beam_and_token() -> None:
    def uniform(prefix: tuple[int, ...]) -> Array:
        return np.full(4, -LN4)

    last_is_end = 3
    hypotheses, _ = beam_search.beam_search(uniform, START, last_is_end, 3, max_length=2, n_best=3)
    assert [h.tokens for h in hypotheses] == [(0, 0), (0, 1), (0, 2)]


@pytest.mark.parametrize("factor", [-1.0, 0.0, 0.6, 1.0, 2.0])
def test_early_stopping_changes_the_steps_alone(factor: float) -> None:
    saved = 0
    for seed in range(10):
        results = [
            beam_search.beam_search(
                random_model(seed, 5), START, END, 3, 8, factor, n_best, early_stopping
            )
            for n_best in (1, 2)
            for early_stopping in (True, False)
        ]
        assert results[0].hypotheses == results[1].hypotheses
        assert results[2].hypotheses == results[3].hypotheses
        assert results[1].num_steps == results[3].num_steps == 8
        saved += 8 - results[0].num_steps
    assert saved > 0


def test_beam_one_is_greedy() -> None:
    for seed in range(10):
        model = random_model(seed, 5)
        (best,), _ = beam_search.beam_search(model, START, END, 1, max_length=6)
        assert best == beam_search.greedy_search(model, START, END, max_length=6)


@pytest.mark.parametrize("factor", [-0.5, 0.0, 1.0])
def test_a_beam_as_wide_as_all_outputs_is_exhaustive(factor: float) -> None:
    for seed in range(3):
        model = random_model(seed)
        everything = beam_search.exhaustive_search(model, START, END, 4, factor)
        # 1 + 2 + 4 + 8 outputs end after 0 to 3 tokens; 16 do not end within 4 steps.
        assert len(everything) == 31
        assert_equal(np.sum(np.exp([h.log_prob for h in everything])), 1)
        hypotheses, _ = beam_search.beam_search(model, START, END, 31, 4, factor, n_best=31)
        assert hypotheses == everything


# BLEU


def test_bleu_by_hand() -> None:
    # Precisions 5/6, 3/5, 2/4, 1/3, whose product is 1/12.
    result = bleu.corpus_bleu(["a b c d e f"], ["a b c d x f"])
    assert_equal(result.precisions, [5 / 6, 3 / 5, 2 / 4, 1 / 3])
    assert_equal(result.score, 100 * (1 / 12) ** 0.25)
    assert_equal(bleu.corpus_bleu(["a b c d"], ["a b c d e"]).score, 100 * np.exp(-1 / 4))
    assert_equal(bleu.corpus_bleu(["a b c d", "e"], ["a b c d", "e"]).score, 100)


def test_bleu_counts_over_the_corpus_and_clips_by_line() -> None:
    # The references have one and four "the", so 1 of 4 and 3 of 3 count.
    result = bleu.corpus_bleu(["the the the the", "the the the"], ["the cat", "the the the the"])
    assert_equal(result.precisions, [4 / 7, 2 / 5, 1 / 3, 0])
    assert (result.system_length, result.reference_length) == (7, 6)
    assert result.score == 0
    assert result.brevity_penalty == 1


def test_bleu_of_nothing_is_zero() -> None:
    assert bleu.corpus_bleu([""], ["a b c d"]).score == 0
    assert bleu.corpus_bleu(["a b c d"], [""]).score == 0
    assert bleu.corpus_bleu([], []).score == 0


def test_bleu_refuses_different_numbers_of_lines() -> None:
    with pytest.raises(ValueError, match="1 hypotheses with 2 references"):
        bleu.corpus_bleu(["a"], ["a", "b"])


def test_bleu_splits_at_ascii_white_space_alone() -> None:
    assert bleu.corpus_bleu([" a\tb  c d\n"], ["a b c d"]).score == pytest.approx(100)
    assert bleu.corpus_bleu(["a b c d\u00a0e"], ["a b c d e"]).system_length == 4


@pytest.mark.parametrize("seed", range(8))
def test_bleu_agrees_with_sacrebleu(seed: int) -> None:
    rng = np.random.default_rng(seed)
    references, hypotheses = [], []
    for _ in range(20):
        tokens = [str(token) for token in rng.integers(20, size=rng.integers(0, 12))]
        references.append(" ".join(tokens))
        keep = rng.random(len(tokens)) > 0.02 * seed
        insert = [str(token) for token in rng.integers(20, size=rng.integers(0, 3))]
        kept = [token for token, is_kept in zip(tokens, keep, strict=True) if is_kept]
        hypotheses.append(" ".join(kept + (insert if seed % 2 else [])))
    expected = sacrebleu.corpus_bleu(
        hypotheses, [references], tokenize="none", smooth_method="none", force=True
    )
    result = bleu.corpus_bleu(hypotheses, references)
    assert round(result.score, 2) == round(expected.score, 2)
    assert_equal(result.precisions, np.array(expected.precisions) / 100)
    assert (result.system_length, result.reference_length) == (expected.sys_len, expected.ref_len)
