"""The protocol of the comparison: the sentences, the work, and how the work is timed.

Each system has a script that makes a `System` and calls `run`. `run` prints one JSON row for each
pair of `--lengths` and `--batch`. The README in this folder describes the measurements. The scripts
run in environments of their own, so this file needs only Python and NumPy.
"""

import argparse
import dataclasses
import json
import os
import platform
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.benchmarks.machine_load import QUIET, Stopwatch

SEED = 2017
LENGTHS = re.compile(r"[1-9]\d*(\+-\d+)?")  # L or MEAN+-DEVIATION
LONGEST_NORMAL = 100  # tokens; normally distributed lengths are clipped to this
MORE_PASSES = 3  # limit on passes that are repeated because other programs disturbed them


@dataclasses.dataclass(frozen=True)
class Setting:
    """The setting of one measurement; every field appears in its row.

    Args:
        lengths: "L" for lengths uniform in 1..L, or "MEAN+-DEVIATION" for normally distributed
            lengths; in tokens without the end token.
        batch: int > 0. Sentences per batch.
        beam: int > 0. Hypotheses per sentence; unused in training.
        n: int > 0. Number of sentences.
        units: int > 0. Width of embeddings, of each encoder direction, of the decoder and of the
            hidden layer of attention.
        vocab: int > 0. Number of symbols, without the special ones.
        attention: name of the attention.
        option: names of the system's own options.
        threads: int > 0. Number of compute threads.
    """

    lengths: str
    batch: int
    beam: int
    n: int
    units: int
    vocab: int
    attention: str
    option: tuple[str, ...]
    threads: int


class Batch:
    """A batch of sentences, the longest first.

    Args:
        sentences: int64 arrays of symbols, numbered from 0.
    """

    def __init__(self, sentences: Iterable[np.ndarray]) -> None:
        self.sentences = sorted(sentences, key=len, reverse=True)
        self.lengths = np.array([len(sentence) for sentence in self.sentences])

    def ids(self, num_special: int, padding: int) -> np.ndarray:
        """The ids in a system with `num_special` special ids: int64 [batch, source_length]."""
        ids = np.full([len(self.sentences), self.lengths[0]], padding)
        for row, sentence in zip(ids, self.sentences, strict=True):
            row[: len(sentence)] = sentence + num_special
        return ids


Decode = Callable[[Batch], Sequence[Sequence[int]]]  # returns best hypotheses without end tokens
Update = Callable[[Batch], float]  # performs one update; returns the loss


class System(NamedTuple):
    """A system that the protocol can measure.

    Fields:
        name: the system's name in its rows.
        versions: versions of its packages, by package.
        make_decoder, make_trainer: build a model; return the function that decodes a batch or that
            updates the model on a batch.
        attentions: names of its attentions, the default first.
        options: names that `--option` accepts.
        any_attention: whether `--attention` accepts other names too, which the system then checks.
    """

    name: str
    versions: Mapping[str, str]
    make_decoder: Callable[[Setting], Decode]
    make_trainer: Callable[[Setting], Update]
    attentions: Sequence[str]
    options: Sequence[str] = ()
    any_attention: bool = False


def draw_sentences(lengths: str, number: int, vocab: int) -> list[np.ndarray]:
    """Random sentences, the same for every system."""
    mean, _, deviation = lengths.partition("+-")
    generator = np.random.default_rng([SEED, number, vocab, *lengths.encode()])
    if deviation:
        drawn = generator.normal(int(mean), int(deviation), number)
        sizes = np.clip(np.rint(drawn), 1, LONGEST_NORMAL).astype(int)
    else:
        sizes = generator.integers(1, int(mean), number, endpoint=True)
    return [generator.integers(0, vocab, size) for size in sizes]


def make_batches(sentences: Sequence[np.ndarray], size: int, is_sorted: bool) -> list[Batch]:
    """Batches of the sentences in their order, or sorted, the longest first."""
    if is_sorted:
        sentences = sorted(sentences, key=len, reverse=True)
    return [Batch(sentences[i : i + size]) for i in range(0, len(sentences), size)]


def spread(number: int, every: int) -> list[int]:
    """Indices of about one in `every` of `number` sorted batches, symmetric around the middle.

    The mean time of such batches is about the mean time of all batches.
    """
    kept = max(1, number // every)
    middles = (np.arange(kept) + 0.5) * number / kept - 0.5
    first = np.floor(middles[: (kept + 1) // 2]).astype(int)
    return sorted({*first.tolist(), *(number - 1 - first).tolist()})


def until_end(rows: Iterable[Sequence[int]], end: int, num_special: int) -> list[list[int]]:
    """Converts rows of ids to symbols, up to the end token of each row.

    Raises:
        ValueError: if a row has no end token.
    """
    return [[id_ - num_special for id_ in row[: row.index(end)]] for row in map(list, rows)]


def check_lengths(batch: Batch, hypotheses: Sequence[Sequence[int]]) -> None:
    """Raises ValueError unless every hypothesis is as long as its source."""
    found = [len(hypothesis) for hypothesis in hypotheses]
    if found != batch.lengths.tolist():
        raise ValueError(
            f"hypotheses have the lengths {found[:5]}..., sources {batch.lengths[:5].tolist()}..."
        )


def time_passes(work: Callable[[], Any], repeats: int) -> dict[str, Any]:
    """Times passes of some work, after one pass that is not timed, in which systems compile.

    Passes disturbed by other programs are discarded and repeated, at most `MORE_PASSES` times. If
    all passes are disturbed, all of them count, and "clean" is false.
    """
    work()
    passes: list[Stopwatch] = []
    while len(passes) < repeats + MORE_PASSES and len(_quiet(passes)) < repeats:
        with Stopwatch() as watch:
            work()
        passes.append(watch)
    kept = _quiet(passes) or passes
    return {
        "all_seconds": [watch.seconds for watch in kept],
        "other_cores": [round(watch.elsewhere, 2) for watch in kept],
        "clean": bool(_quiet(passes)),
        "discarded": len(passes) - len(kept),
    }


def _quiet(passes: Sequence[Stopwatch]) -> list[Stopwatch]:
    return [watch for watch in passes if watch.elsewhere <= QUIET]


def measure_decoding(system: System, setting: Setting, every: int, repeats: int) -> dict[str, Any]:
    """Measures decoding; returns the row.

    Args:
        system: the system.
        setting: the model and the sentences.
        every: int > 0. Decodes about one batch in `every`, and scales the seconds up.
        repeats: int > 0. Number of timed passes.
    """
    everything = make_batches(
        draw_sentences(setting.lengths, setting.n, setting.vocab), setting.batch, is_sorted=True
    )
    batches = [everything[index] for index in spread(len(everything), every)]
    decode = system.make_decoder(setting)

    def work() -> None:
        for batch in batches:
            check_lengths(batch, decode(batch))

    made = {"kind": "decode", "order": "sorted", "every": every}
    timed = time_passes(work, repeats)
    return _row(system, setting, made, batches, timed, len(everything) / len(batches))


def measure_training(system: System, setting: Setting, repeats: int) -> dict[str, Any]:
    """Measures training; returns the row. `repeats` is the number of timed passes."""
    batches = make_batches(
        draw_sentences(setting.lengths, setting.n, setting.vocab), setting.batch, is_sorted=False
    )
    update = system.make_trainer(setting)
    losses: list[float] = []

    def work() -> None:
        losses.extend(update(batch) for batch in batches)

    timed = time_passes(work, repeats)
    if not np.isfinite(losses).all():
        raise ValueError("a loss is not finite")
    made = {"kind": "train", "order": "random", "loss": [round(losses[i], 3) for i in (0, -1)]}
    return _row(system, setting, made, batches, timed, 1.0)


def _row(
    system: System,
    setting: Setting,
    made: Mapping[str, Any],
    batches: Sequence[Batch],
    timed: dict[str, Any],
    scale: float,
) -> dict[str, Any]:
    """Makes a row.

    Tokens and speed are those of the measured batches; seconds are scaled up to all batches.
    """
    seconds = statistics.median(timed["all_seconds"])
    tokens = int(sum(batch.lengths.sum() for batch in batches))
    return {
        "peer": system.name,
        "versions": dict(system.versions),
        "python": platform.python_version(),
        **dataclasses.asdict(setting),
        "load": [round(load, 2) for load in os.getloadavg()],
        **made,
        "tokens": tokens,
        "seconds": round(seconds * scale, 3),
        **timed,
        "all_seconds": [round(one * scale, 3) for one in timed["all_seconds"]],
        "tokens_per_s": round(tokens / seconds, 1),
    }


def make_parser(system: System) -> argparse.ArgumentParser:
    """Makes the flags. Systems differ only in the names of attentions and options."""
    parser = argparse.ArgumentParser(
        description=f"Measures {system.name}. Prints one JSON row per line."
    )
    add = parser.add_argument
    add("--train", action="store_true", help="measure training instead of decoding")
    add(
        "--lengths",
        type=_lengths,
        default="20,50,100,200",
        help="lengths of sources: L or MEAN+-DEVIATION, several separated by commas",
    )
    add(
        "--batch",
        type=lambda words: [_positive(word) for word in words.split(",")],
        default="128",
        help="sentences per batch, several numbers separated by commas",
    )
    choices = None if system.any_attention else system.attentions
    add("--attention", default=system.attentions[0], choices=choices, help="name of the attention")
    add(
        "--option",
        action="append",
        default=[],
        choices=system.options,
        help="option of this system; may be repeated",
    )
    numbers = {
        "beam": (10, "hypotheses per sentence"),
        "n": (1000, "number of sentences"),
        "units": (256, "width of all layers"),
        "vocab": (20, "number of symbols, without the special ones"),
        "threads": (2, "number of compute threads"),
        "every": (1, "decode about one batch in EVERY, and scale the seconds up"),
        "repeats": (3, "timed passes, after one that is not timed"),
    }
    for name, (default, meaning) in numbers.items():
        add(f"--{name}", type=_positive, default=default, help=meaning)
    return parser


def _positive(word: str) -> int:
    if not (word.isascii() and word.isdigit() and int(word)):
        raise argparse.ArgumentTypeError(f"expected a whole number above 0; got {word!r}")
    return int(word)


def _lengths(words: str) -> list[str]:
    for lengths in words.split(","):
        if not LENGTHS.fullmatch(lengths):
            raise argparse.ArgumentTypeError(f"expected L or MEAN+-DEVIATION; got {lengths!r}")
    return words.split(",")


def run(system: System, words: Sequence[str] | None = None) -> None:
    """Measures a system with the given flags, by default those in `sys.argv`; prints the rows."""
    flags = make_parser(system).parse_args(words)
    names = ("beam", "n", "units", "vocab", "attention", "threads")
    shared = {name: getattr(flags, name) for name in names}
    for lengths in flags.lengths:
        for batch in flags.batch:
            setting = Setting(lengths=lengths, batch=batch, option=tuple(flags.option), **shared)
            if flags.train:
                row = measure_training(system, setting, flags.repeats)
            else:
                row = measure_decoding(system, setting, flags.every, flags.repeats)
            print(json.dumps(row), flush=True)
