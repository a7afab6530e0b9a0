"""Computes what the library's layers should return, by `tests.reference` with their weights."""

import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from seq2seq_memattn.attention.additive import BahdanauAttention
from seq2seq_memattn.attention.constant import ConstantAttention
from seq2seq_memattn.attention.flexible import FlexibleAttention
from seq2seq_memattn.attention.k_memory import KMemoryAttention
from seq2seq_memattn.attention.linear import LinearAttention
from seq2seq_memattn.attention.local import LocalAttention
from seq2seq_memattn.attention.multiplicative import LuongAttention
from seq2seq_memattn.attention.no_attention import NoAttention
from seq2seq_memattn.layers.attention_cell import AttentionCell
from seq2seq_memattn.layers.encoder import Encoder
from seq2seq_memattn.layers.tied_dense import TiedDense
from tests.reference import attention as reference
from tests.reference import decoder, recurrent, windows
from tests.reference.activations import Array
from tests.tolerances import as_array

Ids = npt.NDArray[np.int32]


def cell_weights(cell: Any) -> recurrent.CellWeights:
    """The weights of an `LSTMCell` or a `GRUCell`."""
    arrays = [as_array(weight) for weight in cell.weights]
    if isinstance(cell, keras.layers.LSTMCell):
        return recurrent.LSTMWeights(*arrays)
    kernel, recurrent_kernel, bias = arrays
    return recurrent.GRUWeights(kernel, recurrent_kernel, bias, cell.reset_after)


def encode(encoder: Encoder, inputs: Array, lengths: Sequence[int]) -> recurrent.EncoderResult:
    """What `encoder` should return for a batch."""
    directions = [
        [cell_weights(layer.cell) for layer in encoder.layers[index :: len(encoder.directions)]]
        for index in range(len(encoder.directions))
    ]
    if not encoder.bidirectional:
        return recurrent.unidirectional_stack(inputs, lengths, directions[0])
    if encoder.stacking == "concatenated":
        return recurrent.bidirectional_concatenated(inputs, lengths, *directions)
    return recurrent.bidirectional_stack(inputs, lengths, *directions)


def scores_of(attention: Any, query: Array, outputs: Array, length: int) -> tuple[Array, Array]:
    """The scores of one query over one source, and the rows that they weight."""
    if isinstance(attention, NoAttention):
        return np.zeros(0), np.zeros([0, 0])
    if isinstance(attention, KMemoryAttention):
        W_alpha, *b_alpha = [as_array(weight) for weight in attention.encoder_energy.weights]
        W_beta, *b_beta = [as_array(weight) for weight in attention.decoder_energy.weights]
        alpha = reference.k_memory_alpha(
            outputs,
            length,
            W_alpha,
            attention.encoder_score,
            attention.normalise_over,
            attention.position_encoding,
            attention.max_source_length,
            *b_alpha,
        )
        beta = reference.k_memory_beta(query, W_beta, attention.decoder_score, *b_beta)
        return beta, reference.k_memory_rows(outputs, alpha)
    if isinstance(attention, BahdanauAttention):
        W_k, b_k = [as_array(weight) for weight in attention.key_projection.weights]
        W_q, b_q = [as_array(weight) for weight in attention.query_projection.weights]
        v = as_array(attention.energy.kernel)[:, 0]
        return (
            reference.bahdanau_scores(query, outputs, W_k, b_k, W_q, b_q, v, length),
            outputs,
        )
    if isinstance(attention, LinearAttention):
        W_k = as_array(attention.key_projection.kernel)
        W_q = as_array(attention.query_projection.kernel)
        return query @ W_q, reference.linear_memory(outputs, W_k, length)
    if isinstance(attention, ConstantAttention):
        half = outputs.shape[1] // 2 if attention.is_bidirectional else outputs.shape[1]
        row = np.concatenate([outputs[length - 1, :half], outputs[0, half:]])
        return np.ones(1), row[None]
    if not isinstance(attention, LuongAttention):
        raise TypeError(f"no reference for {attention}")
    if attention.score_name == "dot":
        return reference.luong_dot_scores(query, outputs, length), outputs
    if attention.score_name == "concat":
        W_h, W_s, v = concat_weights(attention)
        return reference.luong_concat_scores(query, outputs, W_h, W_s, v, length), outputs
    kernel = as_array(attention.weights[0])
    if attention.score_name == "location":
        return reference.luong_location_scores(query, outputs, kernel, length), outputs
    return reference.luong_general_scores(query, outputs, kernel, length), outputs


def concat_weights(attention: Any) -> tuple[Array, Array, Array]:
    """The weights of a concat score: of the query, of the source, and the vector."""
    W_h = as_array(attention.query_projection.kernel)
    W_s = as_array(attention.key_projection.kernel)
    return W_h, W_s, as_array(attention.energy.kernel)[:, 0]


def local_centre(attention: LocalAttention, step: int, query: Array, length: int) -> float:
    """The centre of a local attention's window."""
    if attention.centre == "monotonic":
        return windows.local_centre(step, length)
    layers: Any = (attention.centre_hidden, attention.centre_energy)
    W_p, v_p = (as_array(layer.kernel) for layer in layers)
    return windows.predicted_centre(query, W_p, v_p[:, 0], length)


def strength(attention: FlexibleAttention, query: Array, embedding: Array) -> float:
    """The strength of a Flexible Attention's penalty of distance."""
    v_g, b_g = (as_array(weight) for weight in attention.strength_energy.weights)
    W_g = as_array(attention.strength_hidden.kernel)
    return windows.flexible_strength(query, embedding, W_g, v_g[:, 0], float(b_g[0]))


def attend(attention: Any, outputs: Array, length: int) -> decoder.Attend:
    """The function through which the reference decoder reads one source, from its first step."""
    step, focus = 0, 0.0

    def read(query: Array, embedding: Array) -> tuple[Array, Array]:
        nonlocal step, focus
        step += 1
        rows = outputs
        if isinstance(attention, LocalAttention):
            centre = local_centre(attention, step - 1, query, length)
            half, sigma = attention.half_window, attention.sigma or attention.half_window / 2
            spread = sigma if attention.centre == "predictive" else None
            weights = concat_weights(attention.content)
            scores = windows.local_scores(query, outputs, *weights, length, centre, half, spread)
        elif isinstance(attention, FlexibleAttention):
            g, tau = strength(attention, query, embedding), attention.threshold or math.inf
            weights = concat_weights(attention.content)
            scores, focus, _ = windows.flexible_scores(
                query, outputs, *weights, length, focus, g, attention.sigma, tau
            )
        else:
            scores, rows = scores_of(attention, query, outputs, length)
        return scores, reference.context(scores, rows)

    return read


def decoder_weights(
    cell: AttentionCell, logits_kernel: Array, logits_bias: Array | None = None
) -> decoder.DecoderWeights:
    """The weights of a decoder; with a kernel of `np.eye`, its logits are the cell's outputs."""
    cells = [cell_weights(inner) for inner in cell.cells]
    mixing = [as_array(weight) for weight in cell.mixing.weights] if cell.mixing else [None, None]
    return decoder.DecoderWeights(cells, logits_kernel, logits_bias, *mixing)


def decoder_options(cell: AttentionCell) -> decoder.DecoderOptions:
    """The options of the reference decoder that match `cell`."""
    return decoder.DecoderOptions(
        cell.read, cell.input_feeding, cell.mixing_from, cell.mixing_activation
    )


def bridge(bridge: Any, encoded: recurrent.EncoderResult, row: int) -> list[recurrent.State]:
    """The decoder's first states for one sentence, as a bridge makes them."""
    layers = [
        [tuple(part[row] for part in states) for states in directions if states]
        for directions in zip(
            encoded.forward_states,
            encoded.backward_states or [()] * len(encoded.forward_states),
            strict=True,
        )
    ]
    if bridge.kind == "zero":
        return [tuple(np.zeros(width) for width in units) for units in bridge.state_units]
    if bridge.kind == "copy":
        return [
            tuple(np.concatenate(parts) for parts in zip(*directions, strict=True))
            for directions in layers
        ]
    chosen = {"all": layers, "top": layers[-1:], "backward": [layers[-1][-1:]]}[bridge.states]
    joined = np.concatenate([part for layer in chosen for way in layer for part in way])
    kernel, bias = [as_array(weight) for weight in bridge.dense.weights]
    mapped = joined @ kernel + bias
    if bridge.activation == "tanh":
        mapped = np.tanh(mapped)
    states: list[recurrent.State] = []
    for units in bridge.state_units:
        states.append(tuple(np.split(mapped[: sum(units)], np.cumsum(units)[:-1])))
        mapped = mapped[sum(units) :]
    return states


def output_weights(model: Any) -> tuple[Array, Array]:
    """Kernel and bias of the output layer; a tied layer's kernel is the target embeddings."""
    if isinstance(model.logits, TiedDense):
        return as_array(model.target_embedding.embeddings).T, as_array(model.logits.bias)
    kernel, bias = [as_array(weight) for weight in model.logits.weights]
    return kernel, bias


def context_units(model: Any, encoder_units: int) -> int:
    """The width of a model's contexts."""
    attention = model.cell.attention
    if isinstance(attention, NoAttention):
        return 0
    return attention.units if isinstance(attention, LinearAttention) else encoder_units


def teacher_forced_logits(
    model: Any, source: Ids, lengths: Sequence[int], target_inputs: Ids
) -> Array:
    """The logits of a `Seq2Seq` by the reference: float [batch, target_length, vocab_size]."""
    encoded = encode(model.encoder, as_array(model.source_embedding.embeddings)[source], lengths)
    outputs = encoded.outputs
    if model.encoder_projection is not None:
        kernel, bias = [as_array(weight) for weight in model.encoder_projection.weights]
        outputs = outputs @ kernel + bias
    embedded = as_array(model.target_embedding.embeddings)[target_inputs]
    weights = decoder_weights(model.cell, *output_weights(model))
    logits = []
    for row, length in enumerate(lengths):
        attention = attend(model.cell.attention, outputs[row], length)
        context = context_units(model, outputs.shape[-1])
        start = decoder.initial_state(weights.cells, context, bridge(model.bridge, encoded, row))
        result = decoder.teacher_forced(
            embedded[row], start, weights, attention, decoder_options(model.cell)
        )
        logits.append(result[0])
    return np.stack(logits)
