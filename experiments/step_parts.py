"""What a step of search takes, part by part, where XLA would make one program of all."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from experiments.timed_work import Setting, decoding_pairs, is_folded
from seq2seq_memattn.search.compiled import compiled

PARTS = ("cells and attention", "output layer", "selection")
STEPS = 20  # of a part in one graph: starting a graph takes longer than a part of a small batch
REPEATS = 10


def step_parts(setting: Setting) -> dict[str, float]:
    """Milliseconds that each of `PARTS` takes in one step of the batch of the longest sources.

    Each is a loop of its own, so that their sum may be more than a step takes as a whole.

    Args:
        setting: `Setting`. Of decoding with an untrained model.

    Returns:
        The median of `REPEATS` loops of `STEPS`, by part.
    """
    from seq2seq_memattn.decoding import DecodingModel, make_weights
    from seq2seq_memattn.model import Seq2Seq
    from seq2seq_memattn.precision import dtype_policy
    from seq2seq_memattn.search.batch_decoder import sorted_batches
    from seq2seq_memattn.search.hypotheses import Rules, first_beam, select

    model = Seq2Seq(setting.model_config(), dtype=dtype_policy(setting.precision))
    folded, beam_size = is_folded(setting, model), setting.beam_size
    sources, targets = decoding_pairs(setting)
    _, source = next(sorted_batches(sources, setting.batch_size))
    limits = np.full([len(source), 1], max(targets) + 1, np.int32)
    rules = Rules(beam_size, 1, 0.0, True, limits, ())

    def start(weights: Any, source: Any) -> Any:
        decoding = DecodingModel(model, folded, weights)
        memory, state = decoding.start(source, beam_size)
        return decoding.without_sources(memory), state

    def step(weights: Any, memory: Any, beam: Any, state: Any) -> Any:
        decoding = DecodingModel(model, folded, weights)
        mixed, _, state = decoding.advance(beam.tokens, memory, state)
        logits = decoding.to_logits(mixed)
        return mixed, logits, choose((logits,), (beam, state))

    # Each part takes what stays the same, and what it made the step before.
    def advance(fixed: Any, made: Any) -> Any:
        weights, memory, tokens = fixed
        mixed, _, state = DecodingModel(model, folded, weights).advance(tokens, memory, made[1])
        return mixed, state

    def to_logits(fixed: Any, mixed: Any) -> Any:
        logits = DecodingModel(model, folded, *fixed).to_logits(mixed)
        # Of what does not change from step to step, the loop would be relieved.
        return mixed + ops.cast(1e-30 * ops.max(logits, axis=-1, keepdims=True), mixed.dtype)

    def choose(fixed: Any, made: Any) -> Any:
        (logits,), (beam, state) = fixed, made
        beam, arrays, _ = select(beam, logits, state, np.int32(0), rules)
        return beam, keras.tree.pack_sequence_as(state, arrays)

    weights = compiled(model, lambda: make_weights(model, folded))()
    memory, state = compiled(model, start)(weights, source)
    beam = first_beam(len(source), beam_size)
    mixed, logits, (beam, state) = compiled(model, step)(weights, memory, beam, state)
    works = (
        (advance, (weights, memory, beam.tokens), (mixed, state)),
        (to_logits, (weights,), mixed),
        (choose, (logits,), (beam, state)),
    )
    loops = [compiled(model, _repeated(part), setting.jit_compile) for part, *_ in works]
    seconds = [_timed(loop, *given) for loop, (_, *given) in zip(loops, works, strict=True)]
    return {name: round(1000 * value, 3) for name, value in zip(PARTS, seconds, strict=True)}


def _repeated(part: Callable[..., Any]) -> Callable[..., Any]:
    """A part `STEPS` times."""

    def run(fixed: Any, made: Any) -> Any:
        def body(number: Any, flat: Any) -> Any:
            found = part(fixed, keras.tree.pack_sequence_as(made, flat))
            return number + 1, keras.tree.flatten(found)

        start = (ops.zeros((), "int32"), keras.tree.flatten(made))
        found = ops.while_loop(lambda number, _: number < STEPS, body, start)[1]
        return keras.tree.pack_sequence_as(made, found)

    return run


def _timed(loop: Callable[..., Any], *arguments: Any) -> float:
    """The median of a step's seconds, compilation apart."""
    seconds = []
    for _ in range(REPEATS + 1):
        started = time.perf_counter()
        _finished(loop(*arguments))
        seconds.append((time.perf_counter() - started) / STEPS)
    return statistics.median(seconds[1:])


def _finished(result: Any) -> None:
    """Waits for a result: backends may return before they are done."""
    np.asarray(min(keras.tree.flatten(result), key=lambda array: int(np.prod(array.shape))))
