"""Options shared by all commands that prepare parallel text."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar, Literal

from seq2seq_memattn.config import Options, option
from seq2seq_memattn.vocabulary import UNKNOWN_ID


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextOptions(Options):
    """Options of vocabularies, filters and shards."""

    # Options that do not change the content of the files.
    FREE: ClassVar[tuple[str, ...]] = ("output_dir", "processes")
    # Options that only train vocabularies.
    TRAINING: ClassVar[tuple[str, ...]] = (
        *("vocab_size", "normalisation", "character_coverage", "vocab_sentences", "seed"),
    )

    output_dir: str = option(dataclasses.MISSING, "data directory to make", group="Files")
    kind: Literal["subwords", "words", "characters"] = option(
        "subwords",
        "what a token is: a SentencePiece BPE piece, a word between spaces, or a character",
        group="Vocabulary",
    )
    vocab_size: int = option(
        16_000, "size of a vocabulary, special tokens included", group="Vocabulary"
    )
    separate_vocabularies: bool = option(
        False, "make one vocabulary per side instead of a joint one", group="Vocabulary"
    )
    model_file: str = option(
        "", "subwords: use this SentencePiece model instead of training one", group="Vocabulary"
    )
    normalisation: Literal["identity", "nfkc", "nfkc_cf", "nmt_nfkc", "nmt_nfkc_cf"] = option(
        "identity",
        "subwords: rule by which SentencePiece normalises text; identity changes nothing",
        group="Vocabulary",
    )
    character_coverage: float = option(
        0.9999,
        "subwords: share of the characters in the text that get pieces; the rest become bytes",
        group="Vocabulary",
    )
    vocab_sentences: int = option(
        1_000_000,
        "train a vocabulary on at most this many lines, sampled at random with the seed",
        group="Vocabulary",
    )
    max_length: int = option(
        0,
        "drop training pairs with more tokens than this on a side, end token included; 0: the "
        "limit is 100 tokens, or 500 for kind characters",
        group="Filters",
    )
    max_length_ratio: float = option(
        9.0,
        "drop training pairs in which one side is more than this many times as long as the other; "
        "0: no limit",
        group="Filters",
    )
    remove_duplicates: bool = option(
        True,
        "drop training pairs that repeat an earlier pair",
        group="Filters",
    )
    shard_pairs: int = option(50_000, "pairs per shard, before filtering", group="Work")
    processes: int = option(0, "encoding processes; 0: one per CPU core", group="Work")
    seed: int = option(0, "seed of the sample for vocabularies", group="Vocabulary")
    unescape: bool = option(
        False, "undo the escapes of Moses's scripts, such as &apos;", group="Form of the text"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in (
            ("vocab_size", UNKNOWN_ID + 2),
            ("vocab_sentences", 1),
            ("max_length", 0),
            ("max_length_ratio", 0),
            ("shard_pairs", 1),
            ("processes", 0),
            ("seed", 0),
        ):
            if getattr(self, name) < least:
                raise ValueError(f"{name}: expected at least {least}, got {getattr(self, name)}")
        if 0 < self.max_length_ratio < 1:
            got = self.max_length_ratio
            raise ValueError(f"max_length_ratio: expected 0 or at least 1, got {got}")
        if self.max_length == 1:
            raise ValueError("max_length: expected at least 2, a token and the end token, got 1")
        if not 0.98 <= self.character_coverage <= 1.0:
            got = self.character_coverage
            raise ValueError(f"character_coverage: expected 0.98 to 1, got {got}")
        if not self.output_dir:
            raise ValueError("output_dir: expected the name of a directory, got an empty one")
        if self.model_file and (self.kind != "subwords" or self.separate_vocabularies):
            raise ValueError("model_file: expected kind subwords and one vocabulary for both sides")
        if self.kind != "subwords" or self.model_file:
            other = "model_file" if self.model_file else f"kind {self.kind}"
            of_subwords = ("normalisation", "character_coverage")
            self.refuse(self.TRAINING if self.model_file else of_subwords, f"with {other}")

    def refuse(self, names: Sequence[str], where: str) -> None:
        """Raises ValueError if one of these options, without effect here, is not its default."""
        for name in names:
            if getattr(self, name) != getattr(type(self), name):
                raise ValueError(f"{name}: has no effect {where}, so leave it out")

    @property
    def most_tokens(self) -> int:
        """The maximum number of tokens on either side of a training pair, end token included."""
        return self.max_length or (500 if self.kind == "characters" else 100)

    def kept(self) -> dict[str, object]:
        """The options that shape the files; the manifest stores them."""
        values = {**self.to_dict(), "max_length": self.most_tokens}
        left_out = {*self.FREE, *(self.TRAINING if self.model_file else ())}
        return {name: value for name, value in values.items() if name not in left_out}
