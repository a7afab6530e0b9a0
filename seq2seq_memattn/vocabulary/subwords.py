"""Vocabularies of subwords, from SentencePiece models."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, final

from seq2seq_memattn.packages import needed
from seq2seq_memattn.vocabulary.base import END_ID, NUM_SPECIAL_IDS, PAD_ID, START_ID, UNKNOWN_ID
from seq2seq_memattn.vocabulary.files import FileVocabulary, read_content

SPACE_MARK = "\u2581"  # stands for a space inside SentencePiece's pieces
MAX_CACHED_WORDS = 1 << 17  # in each of two caches, together about 70 MiB
# Longer "words" are text written without spaces, or noise: they hardly ever occur again.
LONGEST_CACHED = 32  # characters


@final
class SubwordVocabulary(FileVocabulary):
    """Vocabulary of subwords: the pieces of a SentencePiece model.

    A model trained by this project has this project's special ids (pad 0, start 1, end 2, unknown
    3), and the vocabulary has the same ids as the model. The ids of any other model come after the
    three special ids: the vocabulary's id is the model's plus 3, and the model's own pad, start and
    end pieces do not occur.

    If the model was trained with byte fallback, a character without a piece is encoded as bytes. A
    newline or carriage return is decoded as a space, because it would end the line in a text file.
    SentencePiece joins repeated spaces, drops spaces at both ends, and treats U+2581 as a space.

    Args:
        model: the bytes of the model file.
        file: name of the model file in the data directory.
        splits_at_spaces: whether no piece spans a space and the model does not normalise text, as
            in the models that `preparation` trains with normalisation "identity". Words can then be
            encoded one by one and cached, which gives the same ids and is three times as fast.

    Attributes:
        id_offset: 0 or 3, the vocabulary's id minus the model's.
        has_byte_fallback: whether each byte has a piece, so that every character can be encoded.

    Raises:
        ValueError: if `model` is not a SentencePiece model.
    """

    KIND = "subwords"

    def __init__(self, model: bytes, file: str, splits_at_spaces: bool = False) -> None:
        with needed():
            import sentencepiece

        super().__init__(model, file)
        try:
            if not model:
                raise RuntimeError("no bytes")
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        except RuntimeError as error:
            raise ValueError(f"{file}: expected a SentencePiece model, got: {error}") from None
        special = ("pad_id", "bos_id", "eos_id", "unk_id")
        found = [getattr(self._processor, name)() for name in special]
        is_ours = found == [PAD_ID, START_ID, END_ID, UNKNOWN_ID]
        self.id_offset = 0 if is_ours else NUM_SPECIAL_IDS
        self.unknown_id = self.id_offset + self._processor.unk_id()
        pieces = range(self._processor.get_piece_size())
        self.has_byte_fallback = sum(map(self._processor.is_byte, pieces)) == 256
        self._splits_at_spaces = splits_at_spaces
        # When the cache is full, it becomes the old cache and a new one is begun. A word that is
        # only in the old cache is copied to the new one when used, so frequent words stay cached.
        self._cache: dict[str, list[int]] = {}
        self._old_cache: dict[str, list[int]] = {}

    @classmethod
    def from_dict(cls, spec: Mapping[str, Any], directory: Path) -> "SubwordVocabulary":
        """Makes the vocabulary from the dict that `to_dict` returned, and its model file."""
        return cls(*read_content(spec, directory), spec.get("splits_at_spaces") is True)

    @property
    def size(self) -> int:
        return self.id_offset + self._processor.get_piece_size()

    def encode(self, text: str) -> list[int]:
        if not self._splits_at_spaces or SPACE_MARK in text:
            return self._encode(text)
        cached = self._cache.get
        ids: list[int] = []
        for word in text.split(" "):  # "", between two spaces, has no ids
            pieces = cached(word)
            ids += self._encode_new(word) if pieces is None else pieces
        return ids

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"splits_at_spaces": self._splits_at_spaces}

    def _encode_new(self, word: str) -> list[int]:
        """Encodes a word that is not in `_cache`, and adds it unless it is too long."""
        if len(word) > LONGEST_CACHED:
            return self._encode(word)
        pieces = self._old_cache.get(word)
        if pieces is None:
            pieces = self._encode(word)
        if len(self._cache) >= MAX_CACHED_WORDS:
            self._old_cache, self._cache = self._cache, {}
        self._cache[word] = pieces
        return pieces

    def _encode(self, text: str) -> list[int]:
        ids = self._processor.encode(text)
        return [i + self.id_offset for i in ids] if self.id_offset else ids

    def _decode_content(self, ids: Sequence[int]) -> str:
        text = self._processor.decode([i - self.id_offset for i in ids])
        return text.replace("\n", " ").replace("\r", " ")
