"""Vocabularies from a list of words or characters; all others become the unknown token."""

import abc
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, final

from seq2seq_memattn.vocabulary.base import UNKNOWN, UNKNOWN_ID
from seq2seq_memattn.vocabulary.files import FileVocabulary, read_content

UNKNOWN_CHARACTER = "\N{REPLACEMENT CHARACTER}"


class ListedVocabulary(FileVocabulary):
    """A vocabulary given by a list of tokens; its file has one per line, in the order of ids.

    The unknown token has id 3 and is not in the list. A subclass defines how a line is split and
    joined, and which text stands for the unknown token.

    Args:
        tokens: the tokens in the order of their ids, from id 4 on. They are distinct, not empty,
            have no newline, and differ from the text that stands for the unknown token.
        file: name of the file in the data directory.

    Raises:
        ValueError: if a token breaks these rules.
    """

    UNKNOWN: ClassVar[str]
    unknown_id = UNKNOWN_ID

    def __init__(self, tokens: Iterable[str], file: str) -> None:
        self._tokens = (self.UNKNOWN, *tokens)
        for token in self._tokens[1:]:
            if token == self.UNKNOWN or not self._is_token(token):
                raise ValueError(f"{file}: expected {self.KIND}, one per line, got {token!r}")
        self._ids = {token: i for i, token in enumerate(self._tokens, UNKNOWN_ID)}
        if len(self._ids) != len(self._tokens):
            raise ValueError(f"{file}: expected distinct {self.KIND}, got one of them twice")
        super().__init__("".join(f"{token}\n" for token in self._tokens[1:]).encode(), file)

    @classmethod
    def from_dict(cls, spec: Mapping[str, Any], directory: Path) -> Self:
        """Makes the vocabulary from the dict that `to_dict` returned, and its file."""
        content, file = read_content(spec, directory)
        return cls(content.decode().split("\n")[:-1], file)

    @property
    def size(self) -> int:
        return UNKNOWN_ID + len(self._tokens)

    def encode(self, text: str) -> list[int]:
        ids = self._ids
        return [ids.get(token, UNKNOWN_ID) for token in self.split(text)]

    def _decode_content(self, ids: Sequence[int]) -> str:
        return self._join([self._tokens[i - UNKNOWN_ID] for i in ids])

    @staticmethod
    @abc.abstractmethod
    def split(text: str) -> Iterable[str]:
        """Returns the tokens of one line, known or not."""

    @staticmethod
    @abc.abstractmethod
    def _join(tokens: Sequence[str]) -> str:
        """Undoes `split`."""

    @staticmethod
    @abc.abstractmethod
    def _is_token(token: str) -> bool:
        """Returns whether `split` can return this token."""


@final
class WordVocabulary(ListedVocabulary):
    """Vocabulary of words, separated by spaces; an unknown word is decoded as `<unk>`.

    Args:
        tokens: the words in the order of their ids, from id 4 on. They are distinct, not empty,
            have no space or newline, and differ from `<unk>`, which has id 3.
        file: name of its file in a data directory. Making a vocabulary writes no file.

    Raises:
        ValueError: if a word breaks these rules.

    Example:
    >>> from seq2seq_memattn.vocabulary import WordVocabulary
    >>> vocabulary = WordVocabulary(["a", "cat"], "words.txt")
    >>> vocabulary.size, vocabulary.encode("a  black cat")
    (6, [4, 3, 5])
    >>> vocabulary.decode([4, 3, 5, 2])
    'a <unk> cat'
    """

    KIND = "words"
    UNKNOWN = UNKNOWN

    @staticmethod
    def split(text: str) -> Iterable[str]:
        return filter(None, text.split(" "))

    @staticmethod
    def _join(tokens: Sequence[str]) -> str:
        return " ".join(tokens)

    @staticmethod
    def _is_token(token: str) -> bool:
        return bool(token) and " " not in token and "\n" not in token


@final
class CharacterVocabulary(ListedVocabulary):
    r"""Vocabulary of characters (code points), including space; unknown ones are decoded as U+FFFD.

    Args:
        tokens: the characters in the order of their ids, from id 4 on. They are distinct, and none
            is a newline or U+FFFD, which has id 3.
        file: name of its file in a data directory. Making a vocabulary writes no file.

    Raises:
        ValueError: if a character breaks these rules.

    Example:
    >>> from seq2seq_memattn.vocabulary import CharacterVocabulary
    >>> vocabulary = CharacterVocabulary("ab ", "characters.txt")
    >>> vocabulary.encode("b ä")
    [5, 6, 3]
    >>> vocabulary.decode([5, 6, 4, 2])
    'b a'
    """

    KIND = "characters"
    UNKNOWN = UNKNOWN_CHARACTER

    @staticmethod
    def split(text: str) -> Iterable[str]:
        return text

    @staticmethod
    def _join(tokens: Sequence[str]) -> str:
        return "".join(tokens)

    @staticmethod
    def _is_token(token: str) -> bool:
        return len(token) == 1 and token != "\n"
