"""Translates lines of text with a trained run."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from seq2seq_memattn.checks import MAX_SEED, check_int
from seq2seq_memattn.runs.directory import Run
from seq2seq_memattn.search.batch_decoder import (
    DEFAULT_LENGTHS,
    DEFAULT_OPTIONS,
    BatchDecoder,
    Hypothesis,
)
from seq2seq_memattn.search.options import Lengths, SearchOptions
from seq2seq_memattn.vocabulary import Vocabulary


class Translation(NamedTuple):
    """One hypothesis of one line.

    Fields:
        text: str.
        hypothesis: `Hypothesis`, or None for an empty line, which is not decoded.
    """

    text: str
    hypothesis: Hypothesis | None


class SourceReader:
    """Encodes lines as sources for a run's model, and cuts sources that are too long.

    Args:
        run: `Run`.
        max_source_length: int > 0 or None. Sources are cut to this many tokens, end token included;
            None: no limit. If the model has its own limit, for example because of its position
            encodings, sources are cut to that, too.

    Attributes:
        limit: int or None. The maximum number of tokens in a source, end token included.
        num_cut: int. Sources cut so far.
    """

    def __init__(self, run: Run, max_source_length: int | None = None) -> None:
        self._vocabulary = run.source_vocabulary
        limits = [max_source_length, run.model.longest_source]
        self.limit = min((limit for limit in limits if limit), default=None)
        self.num_cut = 0

    def __call__(self, lines: Sequence[str], name: str, first_line: int = 1) -> list[np.ndarray]:
        """Encodes lines.

        Args:
            lines: text.
            name: what error messages call the lines, such as a file's name.
            first_line: int > 0. Number of the first line in error messages.

        Returns:
            int32 [length] for each line, without the end token; length 0 for an empty line.

        Raises:
            ValueError: for a line that the vocabulary cannot encode. The message names the line.
        """
        found = encode_lines(self._vocabulary, lines, name, first_line)
        return [self._cut(source) for source in found]

    def _cut(self, source: np.ndarray) -> np.ndarray:
        if not self.limit or len(source) < self.limit:
            return source
        self.num_cut += 1
        return source[: self.limit - 1]


def encode_lines(
    vocabulary: Vocabulary, lines: Sequence[str], name: str, first_line: int = 1
) -> list[np.ndarray]:
    """Encodes lines, each as int32 [length]; ValueError names a line that cannot be encoded."""
    encoded = []
    for number, line in enumerate(lines, first_line):
        try:
            encoded.append(np.asarray(vocabulary.encode(line), np.int32))
        except ValueError as error:
            raise ValueError(f"{name}, line {number}: {error}") from None
    return encoded


class Translator:
    """Translates lines with one run.

    Args:
        run: `Run`. Its weights must not change afterwards.
        options: `SearchOptions`.
        lengths: `Lengths`.
        max_source_length: int or None. Longer sources are cut to this number of tokens, end token
            included, and the cuts are counted. None: the model's own limit, if it has one.
        return_alignments: see `beam_search`.
        seed: int in 0..2**31-1. Seed of the samples; beam search does not use it.

    Raises:
        ValueError: if `seed` is out of range.

    Attributes:
        sources: reads the sources; `sources.num_cut` is the number of sources that were cut.
    """

    def __init__(
        self,
        run: Run,
        options: SearchOptions = DEFAULT_OPTIONS,
        lengths: Lengths = DEFAULT_LENGTHS,
        max_source_length: int | None = None,
        return_alignments: bool = False,
        seed: int = 0,
    ) -> None:
        check_int("seed", seed, 0, MAX_SEED)
        self._run = run
        self._n_best = options.n_best
        self._seed = None if options.sampling is None else seed
        self.sources = SourceReader(run, max_source_length)
        self._decoder = BatchDecoder(
            run.model, options, lengths, return_alignments=return_alignments, is_frozen=True
        )

    def __call__(
        self,
        lines: Sequence[str],
        batch_size: int,
        name: str = "source",
        on_batch: Callable[[int], None] | None = None,
        first_line: int = 1,
        prefixes: Sequence[str] | None = None,
        prefixes_name: str = "prefix",
    ) -> list[list[Translation]]:
        """Translates lines.

        Args:
            lines: sources; an empty line gives an empty translation.
            batch_size: int > 0. Sources decoded at a time.
            name: what error messages call the lines, such as a file's name.
            on_batch: called after each batch with its number of sources.
            first_line: int > 0. Number of the first line, in error messages and as part of the seed
                of each line's samples.
            prefixes: for each line, the beginning of its translations; "" sets none. None: no line
                has a prefix. An empty line has an empty translation, whatever its prefix.
            prefixes_name: what error messages call the prefixes.

        Returns:
            For each line its n_best translations, best first, or its samples.

        Raises:
            ValueError: for a line or prefix that the vocabulary cannot encode; the message names
                it. Also if there are not as many prefixes as lines.
        """
        sources = self.sources(lines, name, first_line)
        beginnings = None
        if prefixes is not None:
            if len(prefixes) != len(lines):
                expected = f"expected as many lines as {name}, {len(lines)}"
                raise ValueError(f"{prefixes_name}: {expected}; got {len(prefixes)}")
            target = self._run.target_vocabulary
            beginnings = encode_lines(target, prefixes, prefixes_name, first_line)
        chosen = [i for i, source in enumerate(sources) if len(source)]
        seeds = None
        if self._seed is not None:
            # Lines are numbered like the rows of one batch, so batch size does not change samples.
            rows = first_line - 1 + np.array(chosen, np.int64)
            seeds = np.stack([np.full_like(rows, self._seed), rows], axis=1).astype(np.uint32)
        found = self._decoder(
            [sources[i] for i in chosen],
            batch_size,
            on_batch,
            None if beginnings is None else [beginnings[i] for i in chosen],
            seeds,
        )
        results = [[Translation("", None)] * self._n_best for _ in lines]
        for index, hypotheses in zip(chosen, found, strict=True):
            results[index] = [self._translation(hypothesis) for hypothesis in hypotheses]
        return results

    def _translation(self, hypothesis: Hypothesis) -> Translation:
        return Translation(self._run.target_vocabulary.decode(hypothesis.tokens), hypothesis)
