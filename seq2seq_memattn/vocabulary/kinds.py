"""The kinds of vocabularies: makes the vocabulary that a dict in a manifest describes."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from seq2seq_memattn.vocabulary.base import Vocabulary
from seq2seq_memattn.vocabulary.listed import CharacterVocabulary, WordVocabulary
from seq2seq_memattn.vocabulary.subwords import SubwordVocabulary
from seq2seq_memattn.vocabulary.symbols import SymbolVocabulary

_KINDS: dict[str, Callable[[Mapping[str, Any], Path], Vocabulary]] = {
    CharacterVocabulary.KIND: CharacterVocabulary.from_dict,
    SubwordVocabulary.KIND: SubwordVocabulary.from_dict,
    SymbolVocabulary.KIND: SymbolVocabulary.from_dict,
    WordVocabulary.KIND: WordVocabulary.from_dict,
}


def vocabulary_from_dict(spec: Mapping[str, Any], directory: Path | str) -> Vocabulary:
    """Makes the vocabulary that `Vocabulary.to_dict` described.

    Args:
        spec: the dict, with the kind's name in "kind".
        directory: the data directory, with the kind's own files.

    Returns:
        The vocabulary.

    Raises:
        ValueError: if the kind is unknown, the dict is invalid for its kind, or the kind's file is
            missing or belongs to another vocabulary.
    """
    kind = spec.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"kind of vocabulary: expected one of {sorted(_KINDS)}, got {kind!r}")
    return _KINDS[kind](spec, Path(directory))


def vocabulary_files(*specs: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the names of the files that the dicts of vocabularies refer to, without repeats."""
    return tuple(dict.fromkeys(spec["file"] for spec in specs if "file" in spec))


def have_same_ids(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether the vocabularies of two dicts have the same ids for every text."""
    # Equal checksums mean equal files under any name; `splits_at_spaces` affects only speed.
    first, second = (
        {k: v for k, v in spec.items() if k not in ("file", "splits_at_spaces")}
        for spec in (first, second)
    )
    return first == second
