"""Made-up parallel text, and data directories prepared from it."""

import gzip
import io
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seq2seq_memattn.preparation.parallel_text import ParallelTextOptions, prepare

SYLLABLES = ("ba", "dö", "ki", "lu", "más", "ne", "po", "rüh", "ša", "te")
STRANGE = (  # lines with unusual characters, which must be preserved and end no line
    "a\u00a0b",
    "a\u2028b",
    "日本 語",
    "\U0001f600",
    "tab\there",
    "<s> </s> <unk> <0x41>",
    "a\0b",
    "e\u0301 é",
)
OURS = {
    "byte_fallback": True,
    "normalization_rule_name": "identity",
    "pad_id": 0,
    "bos_id": 1,
    "eos_id": 2,
    "unk_id": 3,
}


def sentences(count: int, seed: int, longest: int = 12) -> list[str]:
    """Sentences of 1 to `longest` frequent and rare words."""
    generator = random.Random(seed)
    words = ["".join(generator.choices(SYLLABLES, k=generator.randint(1, 4))) for _ in range(300)]
    weights = [1 / rank for rank in range(1, 301)]
    return [
        " ".join(generator.choices(words, weights, k=generator.randint(1, longest)))
        for _ in range(count)
    ]


def write_lines(path: Path, lines: Sequence[str]) -> Path:
    """Writes a text file."""
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


def pairs(count: int, seed: int) -> tuple[list[str], list[str]]:
    """Distinct pairs whose target is the source with its words in reverse order."""
    sources = [f"{line} {i}" for i, line in enumerate(sentences(count, seed))]
    return sources, [" ".join(reversed(line.split(" "))) for line in sources]


def sentencepiece_model(**options: Any) -> bytes:
    """A SentencePiece model of such sentences; `OURS` are the options that `data_prep` uses."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(500, seed=3)),
        model_writer=model,
        minloglevel=2,
        **({"model_type": "bpe", "vocab_size": 420} | options),
    )
    return model.getvalue()


def text_options(
    folder: Path,
    train: tuple[Sequence[str], Sequence[str]],
    valid: tuple[Sequence[str], Sequence[str]],
    **options: Any,
) -> ParallelTextOptions:
    """Writes the text of the splits into a folder; returns options that prepare it there."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for split, sides in (("train", train), ("valid", valid)):
        for side, lines in zip(("source", "target"), sides, strict=True):
            files[f"{split}_{side}"] = str(write_lines(folder / f"{split}.{side}", lines))
    given: dict[str, Any] = {
        "output_dir": str(folder / "data"),
        **({} if "model_file" in options else {"vocab_size": 400}),
        "processes": 1,
        **files,
    }
    return ParallelTextOptions(**(given | options))


def make_text_data(folder: Path, num_train: int = 300, **options: Any) -> Path:
    """A data directory of made-up pairs."""
    prepare(text_options(folder, pairs(num_train, 1), pairs(20, 2), **options))
    return folder / "data"


def make_multi30k(folder: Path) -> None:
    """Made-up text under the names of Multi30k's files, plain and tokenised."""
    splits = {"train": 300, "val": 12, "test_2016_flickr": 11, "test_2017_mscoco": 10}
    _make_corpus(folder, splits, ("en", "de"))
    tokenised = {f"{name}.lc.norm.tok": count for name, count in splits.items()}
    _make_corpus(folder, tokenised, ("en", "de"))


def make_tanaka(folder: Path) -> None:
    """Made-up text under the names of small_parallel_enja's files."""
    _make_corpus(folder, {"train": 300, "dev": 12, "test": 11}, ("en", "ja"))


def make_wmt_news(folder: Path) -> None:
    """Made-up text under the names of the test sets of the news tasks."""
    years = (*range(2008, 2016), 2017)
    _make_corpus(folder, {f"newstest{year}": year - 1948 for year in years}, ("en", "de"))


def _make_corpus(folder: Path, splits: dict[str, int], languages: tuple[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in splits.items():
        for language, lines in zip(languages, pairs(count, count), strict=True):
            with gzip.open(folder / f"{name}.{language}.gz", "wt", encoding="utf-8") as stream:
                stream.writelines(f"{line}\n" for line in lines)
