"""Times the parts of a step of search separately; XLA normally compiles them together."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from experiments.benchmarks.timed_work import Setting, decoding_pairs, is_folded
from seq2seq_memattn.compute.backend import compiled
from seq2seq_memattn.compute.precision import dtype_policy
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.search.batch_decoder import sorted_batches
from seq2seq_memattn.search.options import SearchOptions
from seq2seq_memattn.search.prepared import PreparedModel, make_weights
from seq2seq_memattn.search.rules import Rules, SourceRules
from seq2seq_memattn.search.step import BeamState, first_beam, select

PARTS = ("cells and attention", "output layer", "selection")
STEPS = 20  # repetitions of a part in one graph, since starting a graph takes longer than a part
REPEATS = 10


def step_parts(setting: Setting) -> dict[str, float]:
    """Milliseconds of each of `PARTS` in one step, for the batch with the longest sources.

    Each part is timed in its own loop, so the sum may be more than the time of a whole step.

    Args:
        setting: `Setting` for decoding with an untrained model.

    Returns:
        The median of `REPEATS` loops of `STEPS`, by part.
    """
    model = Seq2Seq(setting.model_config(), dtype=dtype_policy(setting.precision))
    folded, beam_size = is_folded(setting, model), setting.beam_size
    sources, targets = decoding_pairs(setting)
    _, source = next(sorted_batches(sources, setting.batch_size))
    limits = np.full([len(source), 1], max(targets) + 1, np.int32)
    parts = _Parts(model, folded, Rules(SearchOptions(beam_size), SourceRules(limits)))

    weights = compiled(model, lambda: make_weights(model, folded))()
    memory, state = compiled(model, parts.start)(weights, source)
    beam = first_beam(len(source), parts.rules.options)
    mixed, logits, (beam, state) = compiled(model, parts.step)(weights, memory, beam, state)
    works = (
        (parts.step_below_logits, (weights, memory, beam.tokens), (mixed, state)),
        (parts.to_logits, (weights,), mixed),
        (parts.choose, (logits,), (beam, state)),
    )
    loops = [compiled(model, _repeated(part), setting.jit_compile) for part, *_ in works]
    seconds = [_timed(loop, *given) for loop, (_, *given) in zip(loops, works, strict=True)]
    return {name: round(1000 * value, 3) for name, value in zip(PARTS, seconds, strict=True)}


class _Parts:
    """The parts of a step: each takes fixed values, and its own result from the previous step.

    Args:
        model: `Seq2Seq`.
        folded: see `PreparedModel`.
        rules: rules of the search.
    """

    def __init__(self, model: Seq2Seq, folded: bool, rules: Rules) -> None:
        self._model = model
        self._folded = folded
        self.rules = rules

    def start(self, weights: Any, source: Any) -> Any:
        """Memory and state before the first step."""
        decoding = self._decoding(weights)
        memory, state = decoding.start(source, self.rules.options.beam_size)
        return decoding.without_sources(memory), state

    def step(self, weights: Any, memory: Any, beam: Any, state: Any) -> Any:
        """A whole step: the input of the output layer, the logits, and the result of `choose`."""
        mixed, state = self.step_below_logits((weights, memory, beam.tokens), (None, state))
        logits = self._decoding(weights).to_logits(mixed)
        return mixed, logits, self.choose((logits,), (beam, state))

    def step_below_logits(self, fixed: Any, made: Any) -> Any:
        weights, memory, tokens = fixed
        mixed, _, state = self._decoding(weights).step_below_logits(tokens, memory, made[1])
        return mixed, state

    def to_logits(self, fixed: Any, mixed: Any) -> Any:
        logits = self._decoding(*fixed).to_logits(mixed)
        # The result must change from step to step, or the compiler moves the part out of the loop.
        return mixed + ops.cast(1e-30 * ops.max(logits, axis=-1, keepdims=True), mixed.dtype)

    def choose(self, fixed: Any, made: Any) -> Any:
        (logits,), (beam, state) = fixed, made
        # As in `to_logits`: the compiler would move out what depends only on the logits.
        logits = logits + 1e-30 * ops.cast(ops.max(beam.tokens), logits.dtype)
        carried = BeamState(state)
        beam, arrays, _ = select(beam, logits, carried, np.int32(0), self.rules)
        return beam, keras.tree.pack_sequence_as(state, arrays)

    def _decoding(self, weights: Any) -> PreparedModel:
        return PreparedModel(self._model, self._folded, weights)


def _repeated(part: Callable[..., Any]) -> Callable[..., Any]:
    """A loop that runs a part `STEPS` times."""

    def run(fixed: Any, made: Any) -> Any:
        def body(number: Any, flat: Any) -> Any:
            found = part(fixed, keras.tree.pack_sequence_as(made, flat))
            return number + 1, keras.tree.flatten(found)

        start = (ops.zeros((), "int32"), keras.tree.flatten(made))
        found = ops.while_loop(lambda number, _: number < STEPS, body, start)[1]
        return keras.tree.pack_sequence_as(made, found)

    return run


def _timed(loop: Callable[..., Any], *arguments: Any) -> float:
    """The median seconds of a step, without compilation."""
    seconds = []
    for _ in range(REPEATS + 1):
        started = time.perf_counter()
        _finished(loop(*arguments))
        seconds.append((time.perf_counter() - started) / STEPS)
    return statistics.median(seconds[1:])


def _finished(result: Any) -> None:
    """Waits for a result, since backends may return before they have computed it."""
    np.asarray(min(keras.tree.flatten(result), key=lambda array: int(np.prod(array.shape))))
