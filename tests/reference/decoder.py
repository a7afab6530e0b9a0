"""The decoder of google/seq2seq for one sentence: one step, and the teacher-forced loop over it.

Source: Britz, Guan and Luong (2017), section 2.1, equation 3, and the code that the paper builds
on, which adds input feeding of the raw context and a tanh mixing layer. With `read="before"`, the
context is read with the state before the step, as in Bahdanau et al. (2014).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tests.reference.activations import Array
from tests.reference.recurrent import CellWeights, State, stack_step, zero_state

# query [units], embedding fed back [embedding_dim] -> scores [rows], context [n]; may keep a state
Attend = Callable[[Array, Array], tuple[Array, Array]]


class DecoderWeights(NamedTuple):
    """Weights of the decoder in Keras's layout; the mixing layer is optional."""

    cells: Sequence[CellWeights]  # lowest first
    logits_kernel: Array  # [mixing_units, target_vocab_size]
    logits_bias: Array | None = None  # [target_vocab_size]
    mixing_kernel: Array | None = None  # [units (+ memory_units), mixing_units]
    mixing_bias: Array | None = None  # [mixing_units]


class DecoderOptions(NamedTuple):
    """The variants of the decoder; the defaults are google/seq2seq's."""

    read: str = (
        "after"  # "after": query = top output of this step; "before": h of the top cell before
    )
    input_feeding: bool = True  # False: the context enters only the output
    mixing_inputs: str = "output_and_context"  # or "output"; also used without a mixing layer
    mixing_activation: str = "tanh"  # or "linear"


REFERENCE_OPTIONS = DecoderOptions()


class DecoderState(NamedTuple):
    """The state that passes from step to step."""

    cells: list[State]
    context: Array  # [memory_units]. The last raw context; zeros at first


class StepResult(NamedTuple):
    """The results of one step."""

    logits: Array  # [target_vocab_size]
    output: Array  # [mixing_units]. The input of the output layer
    scores: Array  # [rows]
    state: DecoderState


def initial_state(
    cells: Sequence[CellWeights], memory_units: int, cell_states: Sequence[State] | None = None
) -> DecoderState:
    """The first state: zeros (google/seq2seq's zero bridge), or the given states of the cells."""
    if cell_states is None:
        cell_states = [zero_state(weights) for weights in cells]
    return DecoderState(list(cell_states), np.zeros(memory_units))


def decoder_step(
    embedding: Array,
    state: DecoderState,
    weights: DecoderWeights,
    attend: Attend,
    options: DecoderOptions = REFERENCE_OPTIONS,
) -> StepResult:
    """One decoder step.

    With `read="after"`, the step's input is [embedding; previous context] and the query is the top
    output. With `read="before"`, the query is h of the top cell before the step, and the input is
    [embedding; context] with the context of this step. In both cases, the output is
    tanh(W [output; context] + b) with the context of this step.

    Args:
        embedding: float [embedding_dim]. Of the token fed back.
        state: The state before the step.
        weights: The decoder's weights.
        attend: Maps a query and the embedding to scores and context.
        options: The variant.

    Returns:
        StepResult of this step.
    """
    if options.read not in ("after", "before"):
        raise ValueError(f"unknown read {options.read!r}")
    scores, context = np.zeros(0), state.context
    if options.read == "before":
        scores, context = attend(state.cells[-1][0], embedding)
    inputs = embedding
    if options.input_feeding:
        inputs = np.concatenate([embedding, context])
    cell_output, cell_states = stack_step(inputs, state.cells, weights.cells)
    if options.read == "after":
        scores, context = attend(cell_output, embedding)
    output = _mix(cell_output, context, weights, options)
    logits = output @ weights.logits_kernel
    if weights.logits_bias is not None:
        logits = logits + weights.logits_bias
    return StepResult(logits, output, scores, DecoderState(cell_states, context))


def teacher_forced(
    embeddings: Array,
    state: DecoderState,
    weights: DecoderWeights,
    attend: Attend,
    options: DecoderOptions = REFERENCE_OPTIONS,
) -> tuple[Array, Array, DecoderState]:
    """All steps of one target sentence, fed with the true previous tokens.

    Args:
        embeddings: float [target_length, embedding_dim]. Of the target inputs.
        state: The state before the first step.
        weights: The decoder's weights.
        attend: Maps a query and the embedding to scores and context.
        options: The variant.

    Returns:
        logits: float [target_length, target_vocab_size].
        scores: float [target_length, rows].
        state: After the last step.
    """
    logits, scores = [], []
    for embedding in embeddings:
        result = decoder_step(embedding, state, weights, attend, options)
        logits.append(result.logits)
        scores.append(result.scores)
        state = result.state
    return np.stack(logits), np.stack(scores), state


def _mix(output: Array, context: Array, weights: DecoderWeights, options: DecoderOptions) -> Array:
    if options.mixing_inputs == "output_and_context":
        mixed = np.concatenate([output, context])
    elif options.mixing_inputs == "output":
        mixed = output
    else:
        raise ValueError(f"unknown mixing_inputs {options.mixing_inputs!r}")
    if weights.mixing_kernel is None:
        return mixed
    mixed = mixed @ weights.mixing_kernel
    if weights.mixing_bias is not None:
        mixed = mixed + weights.mixing_bias
    if options.mixing_activation == "tanh":
        return np.asarray(np.tanh(mixed))
    if options.mixing_activation == "linear":
        return mixed
    raise ValueError(f"unknown mixing_activation {options.mixing_activation!r}")
