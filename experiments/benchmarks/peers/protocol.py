"""The protocol of the comparison: which sentences, which work, and how it is timed.

The script of a system makes a `System` and calls `run`, which prints a JSON row for each pair of
`--lengths` and `--batch`. The README beside this file says what is measured. Scripts run in
environments of their own, so this file needs NumPy and Python alone.
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
LONGEST_NORMAL = 100  # tokens: where lengths around a mean are clipped
MORE_PASSES = 3  # at most, in place of disturbed ones


@dataclasses.dataclass(frozen=True)
class Setting:
    """What a row measures; every field is part of the row.

    Args:
        lengths: "L" for lengths uniform in 1..L, or "MEAN+-DEVIATION" for normal ones; in tokens
            without the end token.
        batch: int > 0. Sentences handled together.
        beam: int > 0. Hypotheses of each sentence; unused in training.
        n: int > 0. Sentences.
        units: int > 0. Width of embeddings, of each encoder direction, of the decoder and of the
            hidden layer of attention.
        vocab: int > 0. Symbols beside the special ones.
        attention: name of the attention.
        option: names of the system's own options.
        threads: int > 0. Threads that compute.
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
    """Sentences that are handled together, the longest first.

    Args:
        sentences: int64 arrays of symbols, which count from 0.
    """

    def __init__(self, sentences: Iterable[np.ndarray]) -> None:
        self.sentences = sorted(sentences, key=len, reverse=True)
        self.lengths = np.array([len(sentence) for sentence in self.sentences])

    def ids(self, num_special: int, padding: int) -> np.ndarray:
        """Ids int64 [batch, source_length] behind a system's special ones, filled with padding."""
        ids = np.full([len(self.sentences), self.lengths[0]], padding)
        for row, sentence in zip(ids, self.sentences, strict=True):
            row[: len(sentence)] = sentence + num_special
        return ids


Decode = Callable[[Batch], Sequence[Sequence[int]]]  # symbols of the best hypotheses, without end
Update = Callable[[Batch], float]  # one update; returns the loss


class System(NamedTuple):
    """A system as the protocol sees it.

    Fields:
        name: of the system, in its rows.
        versions: of its packages, by their names.
        make_decoder, make_trainer: build a model and return what decodes or trains on a batch.
        attentions: those that it has, the default first.
        options: what `--option` may name.
        any_attention: whether it has other attentions too and checks their names itself.
    """

    name: str
    versions: Mapping[str, str]
    make_decoder: Callable[[Setting], Decode]
    make_trainer: Callable[[Setting], Update]
    attentions: Sequence[str]
    options: Sequence[str] = ()
    any_attention: bool = False


def draw_sentences(lengths: str, number: int, vocab: int) -> list[np.ndarray]:
    """Random sentences, the same ones for every system.

    Raises:
        ValueError: if `lengths` has neither form.
    """
    form = re.fullmatch(r"([1-9]\d*)(?:\+-(\d+))?", lengths)
    if not form:
        raise ValueError(f"--lengths: expected L or MEAN+-DEVIATION; got {lengths!r}")
    generator = np.random.default_rng([SEED, number, vocab, *lengths.encode()])
    if form[2] is None:
        sizes = generator.integers(1, int(form[1]), number, endpoint=True)
    else:
        drawn = generator.normal(int(form[1]), int(form[2]), number)
        sizes = np.clip(np.rint(drawn), 1, LONGEST_NORMAL).astype(int)
    return [generator.integers(0, vocab, size) for size in sizes]


def make_batches(sentences: Sequence[np.ndarray], size: int, is_sorted: bool) -> list[Batch]:
    """Batches of sentences as they were drawn, or sorted, the longest first."""
    if is_sorted:
        sentences = sorted(sentences, key=len, reverse=True)
    return [Batch(sentences[i : i + size]) for i in range(0, len(sentences), size)]


def spread(number: int, every: int) -> list[int]:
    """About one in `every` of so many sorted batches: indices that mirror each other.

    Batches that lie symmetrically around the middle take about the mean time of all.
    """
    kept = max(1, number // every)
    middles = (np.arange(kept) + 0.5) * number / kept - 0.5
    first = np.floor(middles[: (kept + 1) // 2]).astype(int)
    return sorted({*first.tolist(), *(number - 1 - first).tolist()})


def until_end(rows: Iterable[Sequence[int]], end: int, num_special: int) -> list[list[int]]:
    """Symbols of hypotheses, of ids that have an end token.

    Raises:
        ValueError: if a row has none.
    """
    return [[id_ - num_special for id_ in row[: row.index(end)]] for row in map(list, rows)]


def check_lengths(batch: Batch, hypotheses: Sequence[Sequence[int]]) -> None:
    """Every hypothesis must be as long as its source: ValueError otherwise."""
    found = [len(hypothesis) for hypothesis in hypotheses]
    if found != batch.lengths.tolist():
        raise ValueError(
            f"hypotheses have the lengths {found[:5]}..., sources {batch.lengths[:5].tolist()}..."
        )


def time_passes(work: Callable[[], Any], repeats: int) -> dict[str, Any]:
    """Times some work, after it has been done once, which compiles.

    Disturbed passes are discarded, and up to `MORE_PASSES` are done in their place. When all are
    disturbed, all count, and the row says so.
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
    """The row of decoding; `every` leaves out batches and scales the seconds up."""
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
    """The row of training."""
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
    """All fields. Tokens and speed are of the batches that were handled, seconds scaled to all."""
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
    """The flags, which all systems share but for the names of attentions and options."""
    parser = argparse.ArgumentParser(description=f"Measures {system.name}; one JSON row a line.")
    add = parser.add_argument
    add("--train", action="store_true", help="measure updates in place of decoding")
    add(
        "--lengths", default="20,50,100,200", help="of sources: some L or MEAN+-DEVIATION, by comma"
    )
    add("--batch", default="128", help="sentences at a time: some numbers, by comma")
    add("--beam", type=int, default=10, help="hypotheses of each sentence")
    add("--n", type=int, default=1000, help="sentences")
    add("--units", type=int, default=256, help="of every width")
    add("--vocab", type=int, default=20, help="symbols beside the special ones")
    choices = None if system.any_attention else system.attentions
    add("--attention", default=system.attentions[0], choices=choices, help="name of the attention")
    add("--option", action="append", default=[], choices=system.options, help="of this system")
    add("--threads", type=int, default=2, help="threads that compute")
    add("--every", type=int, default=1, help="decode about one batch in so many; scale the seconds")
    add("--repeats", type=int, default=3, help="timed passes, after one that compiles")
    return parser


def run(system: System, words: Sequence[str] | None = None) -> None:
    """Measures by flags, by default those of the process; prints the rows."""
    flags = make_parser(system).parse_args(words)
    names = ("beam", "n", "units", "vocab", "attention", "threads")
    shared = {name: getattr(flags, name) for name in names}
    for lengths in flags.lengths.split(","):
        for batch in map(int, flags.batch.split(",")):
            setting = Setting(lengths=lengths, batch=batch, option=tuple(flags.option), **shared)
            if flags.train:
                row = measure_training(system, setting, flags.repeats)
            else:
                row = measure_decoding(system, setting, flags.every, flags.repeats)
            print(json.dumps(row), flush=True)
