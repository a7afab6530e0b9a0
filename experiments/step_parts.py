"""What a step of search takes, part by part, where XLA would make one program of all."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from experiments.timed_work import Setting, decoding_pairs, is_folded
from seq2seq_memattn.search.compiled import compiled

PARTS = ("cells and attention", "output layer", "selection")
REPEATS = 30


def step_parts(setting: Setting) -> dict[str, float]:
    """Milliseconds that each of `PARTS` takes in one step of the batch of the longest sources.

    Each is compiled by itself, so that their sum may be more than a step takes as a whole.

    Args:
        setting: `Setting`. Of decoding with an untrained model.

    Returns:
        The median of `REPEATS` runs, by part.
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

    def advance(weights: Any, memory: Any, state: Any, tokens: Any) -> Any:
        return DecodingModel(model, folded, weights).advance(tokens, memory, state)

    def to_logits(weights: Any, mixed: Any) -> Any:
        return DecodingModel(model, folded, weights).to_logits(mixed)

    def choose(beam: Any, logits: Any, state: Any) -> Any:
        return select(beam, logits, state, np.int32(0), rules)

    weights = compiled(model, lambda: make_weights(model, folded))()
    memory, state = compiled(model, start)(weights, source)
    parts = [compiled(model, part, setting.jit_compile) for part in (advance, to_logits, choose)]
    beam = first_beam(len(source), beam_size)
    (mixed, _, after), advancing = _timed(parts[0], weights, memory, state, beam.tokens)
    logits, mapping = _timed(parts[1], weights, mixed)
    beam = parts[2](beam, logits, after)[0]  # the first has one hypothesis alone
    _, choosing = _timed(parts[2], beam, logits, after)
    seconds = (advancing, mapping, choosing)
    return {name: round(1000 * value, 3) for name, value in zip(PARTS, seconds, strict=True)}


def _timed(part: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """What a part returns, and the median of its seconds, compilation apart."""
    result, seconds = _finished(part(*arguments)), []
    for _ in range(REPEATS):
        started = time.perf_counter()
        _finished(part(*arguments))
        seconds.append(time.perf_counter() - started)
    return result, statistics.median(seconds)


def _finished(result: Any) -> Any:
    """Waits for a result: backends may return before they are done."""
    np.asarray(min(keras.tree.flatten(result), key=lambda array: int(np.prod(array.shape))))
    return result
