"""The options of one search that are the same for all sources."""

from dataclasses import dataclass
from typing import Any

from seq2seq_memattn.checks import check_int, check_number, plain_ids
from seq2seq_memattn.vocabulary import END_ID

# Rules of search that are off by default, as flags and exports name them.
RULES = (
    "length_reward",
    "coverage_penalty",
    "min_length_ratio",
    "max_length_ratio",
    "no_repeat_ngram",
    "banned",
)
CHANGING = (*RULES, "threshold", "max_source_length")  # stated by evaluations, if given

MOST_PENALTY = 10.0  # above, powers of lengths are infinite in float32
MOST_NGRAM = 32
MOST_WEIGHT = 100.0  # of terms added to scores; above it, log-probabilities would lose precision
LEAST_RATIO, MOST_RATIO = 0.01, 100.0  # of lengths; memory grows with the maximum number of steps


@dataclass(frozen=True)
class Sampling:
    """Which tokens may be drawn, and how probable each is; see `sample`.

    Raises:
        ValueError: if an argument is not a number or is out of range.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        # Outside this range, logits divided by the temperature could be 0 or infinite.
        check_number("temperature", self.temperature, 1e-4, 1e4)
        check_int("top_k", self.top_k, least=0)
        check_number("top_p", self.top_p)
        if not 0.0 < self.top_p <= 1.0:
            raise ValueError(f"`top_p` must be above 0 and at most 1; got {self.top_p}.")


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search; see `beam_search`.

    Fields:
        beam_size, n_best, length_reward, coverage_penalty, no_repeat_ngram, early_stopping: see
            `beam_search`.
        length_penalty: float. The exponent of the length penalty.
        banned: tokens that are never written, by number. Search numbers tokens from 0: padding,
            start, end, then all others. For a `Seq2Seq`, these numbers are the ids.
        sampling: `Sampling`, to draw beam_size = n_best targets of each source independently; None:
            beam search.

    Raises:
        ValueError: if a numeric option has the wrong type or is out of range.
    """

    beam_size: int = 10
    n_best: int = 1
    length_penalty: float = 0.0
    length_reward: float = 0.0
    coverage_penalty: float = 0.0
    no_repeat_ngram: int = 0
    banned: tuple[int, ...] = ()
    early_stopping: bool = True
    sampling: Any = None

    def __post_init__(self) -> None:
        check_int("beam_size", self.beam_size)
        check_int("n_best", self.n_best)
        if self.n_best > self.beam_size:
            raise ValueError(
                f"`n_best` must be at most `beam_size`, {self.beam_size}; got {self.n_best}."
            )
        check_number("length_penalty", self.length_penalty, -MOST_PENALTY, MOST_PENALTY)
        check_number("length_reward", self.length_reward, -MOST_WEIGHT, MOST_WEIGHT)
        check_number("coverage_penalty", self.coverage_penalty, 0.0, MOST_WEIGHT)
        check_int("no_repeat_ngram", self.no_repeat_ngram, 0, MOST_NGRAM)
        # Plain numbers, because a compiled search is found again by its options.
        object.__setattr__(self, "banned", plain_ids("banned", self.banned))
        if any(token <= END_ID for token in self.banned):
            raise ValueError("`banned`: expected no padding, start token or end token.")

    @property
    def num_live(self) -> int:
        """Live hypotheses at the first step: all samples, but only one hypothesis of a beam."""
        return 1 if self.sampling is None else self.beam_size


@dataclass(frozen=True)
class Lengths:
    """How long targets may be, in tokens.

    Fields:
        max_length: int > 0 or None. Steps that a hypothesis may take, end token included. If this
            and `max_length_ratio` are None: twice the source's length plus 10, plus the length of
            the prefix, but at least 10 more than the minimum length, if there is one.
        min_length: int. The minimum number of tokens before the end token.
        max_length_ratio: float or None. A limit on the steps, as a multiple of the source's length,
            both with the end token; rounded down, but at least one step.
        min_length_ratio: float or None. A minimum length, as a multiple of the source's length,
            both without the end token; rounded up. If a length and a ratio are both given, the
            tighter limit holds.

    Raises:
        ValueError: if a limit has the wrong type or is out of range, or if a minimum is above a
            maximum for every source.
    """

    max_length: int | None = None
    min_length: int = 0
    max_length_ratio: float | None = None
    min_length_ratio: float | None = None

    def __post_init__(self) -> None:
        if self.max_length is not None:
            check_int("max_length", self.max_length)
        check_int("min_length", self.min_length, least=0)
        for name, least in (("max_length_ratio", LEAST_RATIO), ("min_length_ratio", 0.0)):
            if (ratio := getattr(self, name)) is not None:
                check_number(name, ratio, least, MOST_RATIO)
        if self.max_length is not None and self.min_length_ratio is not None:
            check_number("min_length_ratio", self.min_length_ratio, 0.0, self.max_length)
        for kind in ("length", "length_ratio"):
            least, most = getattr(self, f"min_{kind}"), getattr(self, f"max_{kind}")
            if None not in (least, most) and least > most:
                raise ValueError(f"`min_{kind}` must be at most `max_{kind}`, {most}; got {least}.")


def samples(num_samples: int, sampling: Sampling, **options: Any) -> SearchOptions:
    """The options for drawing samples."""
    check_int("num_samples", num_samples)
    sizes = (int(num_samples), int(num_samples))
    return SearchOptions(*sizes, early_stopping=False, sampling=sampling, **options)


def options_of(
    given: Any, banned: tuple[int, ...], n_best: int, sampling: Sampling | None = None
) -> SearchOptions:
    """Makes `SearchOptions` from the flags of a command or from `ExportOptions`.

    Args:
        given: has the fields of `SearchOptions` that this function reads.
        banned: tokens by their numbers in search.
        n_best: targets to return, or to draw.
        sampling: `Sampling`, or None for beam search.
    """
    if sampling is not None:
        return samples(n_best, sampling, no_repeat_ngram=given.no_repeat_ngram, banned=banned)
    return SearchOptions(
        beam_size=given.beam_size,
        n_best=n_best,
        length_penalty=given.length_penalty,
        length_reward=given.length_reward,
        coverage_penalty=given.coverage_penalty,
        no_repeat_ngram=given.no_repeat_ngram,
        banned=banned,
    )
