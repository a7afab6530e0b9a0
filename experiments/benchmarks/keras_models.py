"""Times user-built Keras models: python -m experiments.benchmarks.keras_models --lengths=50.

A functional model around `AttentionDecoder` is timed in turns with a `Seq2Seq` of the same sizes,
with the loop over `AttentionCell` that `AttentionDecoder` replaces, and with attention in plain
Keras (`plain_keras.py`). All have one LSTM layer on each side and the same encoder layer. Training
is `fit`. Decoding uses untrained weights and writes exactly as many tokens as the source has. A
ratio is the time of the other model divided by the time of the functional model: above 1, the
functional model is faster.
"""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import seq2seq_memattn  # imports its layers only when they are used: --help needs no Keras
from experiments.benchmarks.timed_work import endless
from experiments.reproduction.results import provenance, write_json
from seq2seq_memattn.commands.shared import cli
from seq2seq_memattn.compute.hardware import processor
from seq2seq_memattn.config import ModelConfig
from seq2seq_memattn.notes import print_note
from seq2seq_memattn.vocabulary import END_ID, NUM_SPECIAL_IDS, START_ID

ATTENTIONS = {
    "k_memory:64": lambda units: seq2seq_memattn.KMemoryAttention(64),
    "bahdanau": lambda units: seq2seq_memattn.BahdanauAttention(units),
}
Work = Callable[[], float]  # does some work and returns the seconds it took


class Parts:
    """The layers of a user's own model, with the encoder of `Seq2Seq`.

    Args:
        units: int > 0. Units of all layers.
        vocab_size: int > 0. Number of ids on each side.
    """

    def __init__(self, units: int, vocab_size: int) -> None:
        import keras

        self.source = keras.Input((None,), dtype="int32")
        self.target = keras.Input((None,), dtype="int32")
        embedded = keras.layers.Embedding(vocab_size, units, mask_zero=True)(self.source)
        self.encoded = seq2seq_memattn.Encoder(units)(embedded).outputs
        self.encode = keras.Model(self.source, self.encoded)
        self.embedding = keras.layers.Embedding(vocab_size, units, mask_zero=True)
        self.logits = keras.layers.Dense(vocab_size)


class Data:
    """Random sources and their copies.

    Args:
        batch_size, length, vocab_size: int > 0.
        num_batches: int > 0. Batches in an epoch.
    """

    def __init__(self, batch_size: int, length: int, vocab_size: int, num_batches: int) -> None:
        shape = (batch_size * num_batches, length)
        symbols = np.random.default_rng(0).integers(NUM_SPECIAL_IDS, vocab_size, shape)
        self.batch_size, self.length = batch_size, length
        self.source = symbols.astype(np.int32)
        self.targets_in = np.pad(self.source, [(0, 0), (1, 0)], constant_values=START_ID)
        self.targets_out = np.pad(self.source, [(0, 0), (0, 1)], constant_values=END_ID)

    def fit(self, model: Any, inputs: Any) -> Work:
        """The work of one epoch, without the end of `fit`, which may wait seconds for tf.data."""
        import keras

        model.compile("adam", seq2seq_memattn.TokenCrossEntropy())
        times: list[float] = []
        clock = keras.callbacks.LambdaCallback(
            on_epoch_begin=lambda epoch, logs: times.append(time.perf_counter()),
            on_epoch_end=lambda epoch, logs: times.append(time.perf_counter()),
        )
        options = {"batch_size": self.batch_size, "verbose": 0, "shuffle": False}

        def work() -> float:
            model.fit(inputs, self.targets_out, callbacks=[clock], **options)
            return times[-1] - times[-2]

        return work

    @property
    def batch(self) -> Any:
        """The sources of the first batch."""
        return self.source[: self.batch_size]


def functional(attention: str, data: Data, units: int, vocab_size: int) -> dict[str, Work]:
    """The work of a functional model around `AttentionDecoder`."""
    import keras

    parts = Parts(units, vocab_size)
    decoder = seq2seq_memattn.AttentionDecoder(
        keras.layers.LSTMCell(units), ATTENTIONS[attention](units), mixing_units=units
    )
    decoded = decoder(parts.embedding(parts.target), parts.encoded)
    model = keras.Model([parts.source, parts.target], parts.logits(decoded))
    searchable = seq2seq_memattn.Searchable(parts.encode, parts.embedding, decoder, parts.logits)
    training = data.fit(model, [data.source, data.targets_in])
    return {"training": training, **_searches(searchable, data)}


def reference(attention: str, data: Data, units: int, vocab_size: int) -> dict[str, Work]:
    """The work of a `Seq2Seq` of the same sizes."""
    config = ModelConfig(
        source_vocab_size=vocab_size,
        target_vocab_size=vocab_size,
        embedding_dim=units,
        encoder_units=units,
        encoder_layers=1,
        decoder_units=units,
        decoder_layers=1,
        attention=attention,
        attention_units=units,
        dropout=0.0,
    )
    model = seq2seq_memattn.Seq2Seq(config)
    training = data.fit(model, {"source": data.source, "target_inputs": data.targets_in})
    return {"training": training, **_searches(model, data)}


def _searches(model: Any, data: Data) -> dict[str, Work]:
    def never_ending(search: Callable[[], Any]) -> Work:
        def tokens() -> Any:
            endless(model)
            return np.asarray(search().tokens)

        return _timed(tokens)

    length = data.length
    return {
        "beam search": never_ending(
            lambda: seq2seq_memattn.beam_search(model, data.batch, beam_size=10, max_length=length)
        ),
        "greedy search": never_ending(
            lambda: seq2seq_memattn.greedy_search(model, data.batch, max_length=length)
        ),
    }


def plain_keras(attention: str, data: Data, units: int, vocab_size: int) -> dict[str, Work]:
    """The work of a model with additive attention in plain Keras."""
    from experiments.benchmarks.plain_keras import PlainKeras

    del attention
    parts = Parts(units, vocab_size)
    layers = (parts.encode, parts.embedding, parts.logits)
    model = PlainKeras(*layers, units, data.length, 2 * units)
    return {
        "training": data.fit(model, [data.source, data.targets_in]),
        "greedy search": _timed(lambda: model.greedy(data.batch, data.length, START_ID)),
    }


def loop_over_cells(attention: str, data: Data, units: int, vocab_size: int) -> dict[str, Work]:
    """The work of a Python loop over `AttentionCell`: only training, as the model cannot search."""
    from experiments.benchmarks.plain_keras import LoopOverCells

    parts = Parts(units, vocab_size)
    layers = (parts.encode, parts.embedding, parts.logits)
    model = LoopOverCells(*layers, ATTENTIONS[attention](units), units)
    return {"training": data.fit(model, [data.source, data.targets_in])}


OTHERS = {"seq2seq": reference, "plain keras": plain_keras, "loop over cells": loop_over_cells}


def compare(
    attention: str, other: str, data: Data, units: int, vocab_size: int, rounds: int
) -> list[dict[str, Any]]:
    """Times a functional model and another model; returns one row for each task that both have."""
    ours, theirs = (
        make(attention, data, units, vocab_size) for make in (functional, OTHERS[other])
    )
    rows = []
    for name in (name for name in ours if name in theirs):
        works = (ours[name], theirs[name])
        for work in works:
            work()  # compiles
        seconds = [[work() for work in works] for _ in range(rounds)]
        ratios = [round(their / our, 4) for our, their in seconds]
        row = {
            "work": name,
            "attention": attention,
            "length": data.length,
            "against": other,
            "ratio": statistics.median(ratios),
            "ratios": ratios,
            "seconds": round(statistics.median(our for our, _ in seconds), 4),
        }
        print_note(f"{row}")
        rows.append(row)
    return rows


def _timed(call: Callable[[], Any]) -> Work:
    def work() -> float:
        started = time.perf_counter()
        call()
        return time.perf_counter() - started

    return work


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.items("against", list(OTHERS), f"other models: one or more of {', '.join(OTHERS)}")
    flags.items(
        "attentions",
        list(ATTENTIONS),
        f"attentions of the functional model: one or more of {', '.join(ATTENTIONS)}",
    )
    flags.items("lengths", ["50"], "lengths of sources and targets, in tokens")
    flags.integer("units", 256, "units of all layers", lower_bound=1)
    flags.integer("vocab_size", 4000, "ids on each side", lower_bound=NUM_SPECIAL_IDS + 1)
    flags.integer("batch_size", 128, "sentences at a time", lower_bound=1)
    flags.integer("num_batches", 4, "training batches in a turn", lower_bound=1)
    flags.integer("rounds", 5, "timed turns, after one that compiles", lower_bound=1)
    flags.string("output", None, "JSON file for the rows")


def main(arguments: cli.Arguments) -> None:
    """Measures the models that the flags name."""
    for name, known in (("against", OTHERS), ("attentions", ATTENTIONS)):
        if unknown := sorted(set(getattr(arguments, name)) - set(known)):
            raise ValueError(f"--{name}: expected some of {', '.join(known)}; got {unknown[0]!r}")
    rows = []
    for length in cli.positive_numbers("lengths", arguments.lengths):
        sizes = (arguments.batch_size, length, arguments.vocab_size, arguments.num_batches)
        for other in arguments.against:
            for attention in arguments.attentions:
                options = (arguments.units, arguments.vocab_size, arguments.rounds)
                rows += compare(attention, other, Data(*sizes), *options)
                if arguments.output:
                    write_json(Path(arguments.output), {**provenance(processor()), "rows": rows})
    cli.print_result({"rows": rows})


if __name__ == "__main__":
    cli.launch(sys.modules[__name__])
