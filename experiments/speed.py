"""Measures speed: python -m experiments.speed --lengths=20,50 --attentions=none,k_memory:64.

Modes: "exact" decodes sources of exactly L tokens, "uniform" sources of 0..L tokens sorted by
length before batching, "train" counts target tokens per second without padding. Weights are
untrained, so every hypothesis is forced to its source's length; the rows say so. Loading,
building and compiling are not measured. Attentions take turns, so that a change of the machine's
speed meets all of them alike.
"""

import dataclasses
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from absl import flags

from experiments import cli
from experiments.machine import Shape, product_rate
from experiments.operations import training_operations
from experiments.profiling import profile
from experiments.records import provenance, write_json
from seq2seq_memattn.config import ModelConfig, TrainingConfig
from seq2seq_memattn.data.batching import make_batch
from seq2seq_memattn.decoding import folds_rows, make_weights

NUM_SYMBOLS = 20
FIRST_SYMBOL = 3
MODES = ("exact", "uniform", "train")


@dataclasses.dataclass(frozen=True)
class Setting:
    """One row to measure.

    Args:
        attention: name of the attention.
        mode: "exact", "uniform" or "train".
        length: int. L, in tokens without the end token.
        batch_size: int > 0.
        beam_size: int > 0; not for training.
        num_sentences: int > 0. Sentences decoded, or batch_size times the updates timed.
        input_feeding: bool.
        jit_compile: bool. Whether XLA compiles the steps of decoding.
    """

    attention: str
    mode: str
    length: int
    batch_size: int
    beam_size: int
    num_sentences: int
    input_feeding: bool = True
    jit_compile: bool = True

    def model_config(self) -> ModelConfig:
        """The toy model of the paper; dot products need encoder outputs as wide as queries."""
        config = ModelConfig(
            attention=self.attention, input_feeding=self.input_feeding, dropout=0.0
        )
        if self.attention != "luong_dot":
            return config
        return dataclasses.replace(config, encoder_projection_units=config.decoder_units)


def make_sources(setting: Setting) -> list[np.ndarray]:
    """Seeded random sources without end tokens, the same for every attention."""
    generator = np.random.default_rng([1234, setting.length, setting.num_sentences])
    if setting.mode == "exact":
        lengths = np.full(setting.num_sentences, setting.length)
    else:
        lengths = generator.integers(0, setting.length + 1, setting.num_sentences)
    symbols = range(FIRST_SYMBOL, FIRST_SYMBOL + NUM_SYMBOLS)
    return [generator.choice(np.array(symbols, np.int32), size) for size in lengths]


class Work(NamedTuple):
    """What is timed.

    Fields:
        run: does it once.
        tokens: int. Target tokens (end tokens included) that it handles.
        shapes: of the products in its loop over steps; see `loop_shapes`.
        operations: float. Of its matrix products; training alone, else 0.
    """

    run: Callable[[], None]
    tokens: int
    shapes: tuple[Shape, ...]
    operations: float = 0.0


def make_work(setting: Setting) -> Work:
    """The work of a setting, built."""
    sources = make_sources(setting)
    lengths = [len(source) + 1 for source in sources]
    if setting.mode != "train":
        run, shapes = _decoding(setting, sources)
        return Work(run, sum(lengths), shapes)
    run, model = _training(setting, sources)
    shapes = loop_shapes(model, setting.batch_size, folded=False)
    return Work(run, sum(lengths), shapes, training_operations(model, lengths))


def _decoding(
    setting: Setting, sources: Sequence[np.ndarray]
) -> tuple[Callable[[], None], tuple[Shape, ...]]:
    from seq2seq_memattn.model import Seq2Seq
    from seq2seq_memattn.search.batch_decoder import sorted_batches
    from seq2seq_memattn.search.chunked import ChunkedSearch

    model = Seq2Seq(setting.model_config())
    batches = [
        (batch, np.array([len(sources[i]) for i in indices], np.int32))
        for indices, batch in sorted_batches(sources, setting.batch_size)
    ]

    folded = folds_rows(model, setting.beam_size, None)
    search = ChunkedSearch(
        model,
        setting.beam_size,
        n_best=1,
        length_penalty_exponent=0.0,
        batch_size=setting.batch_size,
        jit_compile=setting.jit_compile,
        folded=folded,
        force_lengths=True,
    )

    def work() -> None:
        for batch, lengths in batches:
            if not (search(batch, lengths + 1).lengths[:, 0] == lengths).all():
                raise ValueError("a hypothesis has not the length that it was forced to")

    return work, loop_shapes(model, setting.batch_size * setting.beam_size, folded)


def _training(setting: Setting, sources: Sequence[np.ndarray]) -> tuple[Callable[[], None], Any]:
    from seq2seq_memattn.training.parts import make_parts

    config = TrainingConfig(batch_size=setting.batch_size)
    model, _, updater = make_parts(setting.model_config(), config)
    # As drawn: neither sorted nor in buckets.
    groups = [sources[i : i + config.batch_size] for i in range(0, len(sources), config.batch_size)]
    batches = [make_batch(group, group) for group in groups]
    updater(batches[0])

    def work() -> None:
        for batch in batches:
            updater(batch)

    return work, model


def loop_shapes(model: Any, rows: int, folded: bool) -> tuple[Shape, ...]:
    """The products with weights in one decoder step: cells, mixing layer, logits.

    What the attention adds (keys, rows) depends on the source and is not among them.

    Args:
        model: `Seq2Seq`.
        rows: int. Sentences or hypotheses that take the step.
        folded: bool. Whether the context's maps are folded into the memory's rows.
    """
    weights = make_weights(model, folded)
    kernels = list(weights.products.values())
    if weights.folds:
        kernels.append(weights.folds.output)
    elif model.cell.mixing is not None:
        kernels.append(model.cell.mixing.kernel)
    kernels.append(model.logits.kernel)
    return tuple((rows, *kernel.shape) for kernel in kernels if kernel.shape[1])


def measure(
    settings: Sequence[Setting], repeats: int, profiled: bool = False
) -> list[dict[str, Any]]:
    """Times settings in turns; returns one row each, with its profile if that is wanted."""
    works = []
    for setting in settings:
        cli.print_note(f"building {setting.mode} L={setting.length} {setting.attention}")
        works.append(make_work(setting))
    seconds: list[list[float]] = [[] for _ in settings]
    for turn in range(repeats + 1):
        for index, work in enumerate(works):
            started = time.perf_counter()
            work.run()
            if turn:  # the first is warm-up
                seconds[index].append(time.perf_counter() - started)
        cli.print_note(f"turn {turn} of {repeats}")
    rates = {shapes: product_rate(shapes) for shapes in {work.shapes for work in works}}
    rows = [
        _row(setting, work, times, rates[work.shapes])
        for setting, work, times in zip(settings, works, seconds, strict=True)
    ]
    if profiled:
        for row, work in zip(rows, works, strict=True):
            shares = profile(work.run)
            row["profile"] = {kind: round(share, 3) for kind, share in shares.items()}
    return rows


def _row(setting: Setting, work: Work, seconds: Sequence[float], rate: float) -> dict[str, Any]:
    median = statistics.median(seconds)
    made = dataclasses.asdict(setting)
    if setting.mode == "train":  # neither shapes an update
        del made["beam_size"], made["jit_compile"]
    row = {
        **made,
        "weights": "untrained, lengths forced" if setting.mode != "train" else "untrained",
        "seconds": round(median, 4),
        "all_seconds": [round(value, 4) for value in seconds],
        "target_tokens": work.tokens,
        "target_tokens_per_second": round(work.tokens / median, 1),
        "product_gflops_at_loop_shapes": round(rate / 1e9, 1),
    }
    if work.operations:
        row["product_gflops"] = round(work.operations / median / 1e9, 1)
        row["share_of_product_rate"] = round(work.operations / median / rate, 3)
    return row


def main(arguments: list[str]) -> None:
    """Measures from flags."""
    del arguments
    options = flags.FLAGS
    for mode in options.modes:
        if mode not in MODES:
            raise ValueError(f"--modes: expected some of {', '.join(MODES)}; got {mode!r}")
    if options.profile and options.modes != ["train"]:
        raise ValueError(
            "--profile: expected --modes=train, whose operations TensorFlow runs one by one; "
            f"got {','.join(options.modes)}"
        )
    lengths = [_length(text) for text in options.lengths]
    rows = []
    for mode in options.modes:
        for length in lengths:
            settings = [
                Setting(
                    attention,
                    mode,
                    length,
                    options.batch_size,
                    options.beam_size,
                    options.num_sentences,
                    options.input_feeding,
                    options.jit_compile,
                )
                for attention in options.attentions
            ]
            rows += measure(settings, options.repeats, options.profile)
    if options.output:
        write_json(Path(options.output), {**provenance(), "rows": rows})
    cli.print_result({"rows": rows})


def _length(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"--lengths: expected numbers of tokens; got {text!r}")
    return int(text)


if __name__ == "__main__":
    flags.DEFINE_list("lengths", ["20", "50", "100", "200"], "source lengths L, in tokens")
    flags.DEFINE_list("attentions", ["none", "k_memory:64", "bahdanau"], "attentions, in turns")
    flags.DEFINE_list("modes", ["exact", "uniform"], "some of exact, uniform, train")
    flags.DEFINE_integer("beam_size", 10, "hypotheses kept per source", lower_bound=1)
    flags.DEFINE_integer("batch_size", 128, "sentences at a time", lower_bound=1)
    flags.DEFINE_integer("num_sentences", 1000, "sentences decoded or trained on", lower_bound=1)
    flags.DEFINE_integer("repeats", 3, "timed turns, after one that is not", lower_bound=1)
    flags.DEFINE_bool("input_feeding", True, "feed the context back")
    flags.DEFINE_bool("jit_compile", True, "compile the steps of decoding with XLA")
    flags.DEFINE_bool("profile", False, "add the share of each kind of work; with --modes=train")
    flags.DEFINE_string("output", None, "JSON file for the rows")
    cli.run(main)
