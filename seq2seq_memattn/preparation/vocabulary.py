"""Makes a vocabulary from a sample of lines: subwords, words or characters."""

import dataclasses
import io
import itertools
import re
from collections import Counter
from pathlib import Path
from typing import Any

from seq2seq_memattn.packages import needed
from seq2seq_memattn.text.files import atomic_binary, iterate_lines
from seq2seq_memattn.vocabulary import (
    END_ID,
    PAD_ID,
    START_ID,
    UNKNOWN_ID,
    CharacterVocabulary,
    FileVocabulary,
    SubwordVocabulary,
    WordVocabulary,
)

FILE_NAMES = {"subwords": "subwords.model", "words": "words.txt", "characters": "characters.txt"}
LISTS: dict[str, type[WordVocabulary] | type[CharacterVocabulary]] = {
    "words": WordVocabulary,
    "characters": CharacterVocabulary,
}
# SentencePiece skips longer lines. Its default is 4,192; its positions have 16 bits.
MAX_LINE_BYTES = (1 << 16) - 1
# SentencePiece's messages about an impossible vocabulary size.
TOO_HIGH = re.compile(r"Please set it to a value <= (\d+)")
TOO_LOW = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")


@dataclasses.dataclass(frozen=True)
class VocabularyOptions:
    """Options of a vocabulary; see `TextOptions` for their meanings."""

    kind: str
    size: int
    normalisation: str
    character_coverage: float


def make_vocabulary(
    options: VocabularyOptions, sample: Path, directory: Path, side: str
) -> dict[str, Any]:
    """Makes a vocabulary and writes its file.

    Args:
        options: `VocabularyOptions`.
        sample: the file with sampled lines.
        directory: the data directory.
        side: "source", "target", or "" for a joint vocabulary.

    Returns:
        The vocabulary's dict.

    Raises:
        ValueError: if the sample is empty, or a vocabulary of this size cannot be made from it. The
            message then names a possible size.
    """
    whose = f"the {side} side" if side else "the corpus"
    if not sample.stat().st_size:
        raise ValueError(f"{whose}: expected a training pair with text on both sides, got none")
    name = f"{side}.{FILE_NAMES[options.kind]}" if side else FILE_NAMES[options.kind]
    try:
        vocabulary = (
            _subwords(options, sample, name)
            if options.kind == "subwords"
            else _listed(options, sample, name)
        )
    except ValueError as error:
        raise ValueError(f"vocab_size: {whose}: {error}") from None
    write_vocabulary(vocabulary, directory)
    return vocabulary.to_dict()


def write_vocabulary(vocabulary: FileVocabulary, directory: Path) -> None:
    """Writes the file of a vocabulary atomically."""
    with atomic_binary(directory / vocabulary.file) as stream:
        stream.write(vocabulary.content)


def _subwords(options: VocabularyOptions, sample: Path, name: str) -> SubwordVocabulary:
    """Trains a SentencePiece model with this project's special ids."""
    with needed():
        import sentencepiece

    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iterate_lines(sample),
            model_writer=model,
            model_type="bpe",
            vocab_size=options.size,
            normalization_rule_name=options.normalisation,
            character_coverage=options.character_coverage,
            byte_fallback=True,
            max_sentence_length=MAX_LINE_BYTES,
            pad_id=PAD_ID,
            bos_id=START_ID,
            eos_id=END_ID,
            unk_id=UNKNOWN_ID,
            num_threads=1,  # gives the same model on every machine
            minloglevel=2,  # only errors
        )
    except RuntimeError as error:
        raise ValueError(_reason(str(error), options.size)) from None
    return SubwordVocabulary(model.getvalue(), name, options.normalisation == "identity")


def _reason(message: str, size: int) -> str:
    """Returns a clear message that says why SentencePiece cannot train a model."""
    if found := TOO_HIGH.search(message):
        return f"expected at most {found[1]}, the number of pieces in its text, got {size}"
    if found := TOO_LOW.search(message):
        return (
            f"expected at least {found[1]}, for the special ids, 256 bytes and its characters, "
            f"got {size}"
        )
    return f"SentencePiece cannot train on it: {message}"


def _listed(
    options: VocabularyOptions, sample: Path, name: str
) -> WordVocabulary | CharacterVocabulary:
    """Makes a vocabulary of the most frequent words or characters; ties are in Unicode order."""
    kind = LISTS[options.kind]
    counts: Counter[str] = Counter()
    for line in iterate_lines(sample):
        counts.update(kind.split(line))
    del counts[kind.UNKNOWN]  # in a text, this string means the unknown token
    possible = UNKNOWN_ID + 1 + len(counts)
    if possible < options.size:
        raise ValueError(
            f"expected at most {possible}, for the special ids and all its different "
            f"{options.kind}, got {options.size}"
        )
    ordered = sorted(counts, key=lambda token: (-counts[token], token))
    return kind(itertools.islice(ordered, options.size - UNKNOWN_ID - 1), name)
