"""The copy task: the target is the source, a sequence of random symbols.

Source: Britz, Guan and Luong (2017), section 4.1: 100,000 training and 1,000 validation examples,
    20 symbols, lengths "randomly chosen between 0 to L".
Differs from the paper: nothing. (The paper's code draws lengths from 5 on; we follow its text.)
"""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seq2seq_memattn.config import Options, option
from seq2seq_memattn.data.manifest import Manifest, Split, describe_file
from seq2seq_memattn.notes import print_note
from seq2seq_memattn.packages import versions
from seq2seq_memattn.preparation import write_once
from seq2seq_memattn.text.files import open_output
from seq2seq_memattn.vocabulary import SymbolVocabulary

TASK = "copy_task"
SPLITS = ("train", "valid")  # the order gives each split its own stream of random numbers

Symbols = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class CopyTaskOptions(Options):
    """Options of the command; a length counts symbols, without the end token."""

    max_length: int = option(dataclasses.MISSING, "longest example in symbols (L in the paper)")
    output_dir: str = option(dataclasses.MISSING, "data directory to make")
    num_train: int = option(100_000, "training examples")
    num_valid: int = option(1_000, "validation examples")
    vocab_size: int = option(20, "different symbols")
    seed: int = option(0, "random seed; each split gets its own stream of random numbers")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("max_length", "num_train", "num_valid", "vocab_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: expected at least 1, got {getattr(self, name)}")
        if self.seed < 0:
            raise ValueError(f"seed: expected at least 0, got {self.seed}")
        if not self.output_dir:
            raise ValueError("output_dir: expected the name of a directory, got an empty one")


def generate(
    num_examples: int, max_length: int, vocab_size: int, seed: int | np.random.SeedSequence
) -> list[Symbols]:
    """Draws sequences whose lengths and symbols are uniformly distributed.

    Args:
        num_examples: sequences to draw.
        max_length: longest length in symbols; lengths are uniform in 0..max_length inclusive.
        vocab_size: symbols are uniform in 0..vocab_size - 1.
        seed: an int, or the `SeedSequence` of one split.

    Returns:
        One int array [length] per example.
    """
    generator = np.random.default_rng(seed)
    lengths = generator.integers(0, max_length, size=num_examples, endpoint=True)
    symbols = generator.integers(0, vocab_size, size=int(lengths.sum()))
    return np.split(symbols, np.cumsum(lengths)[:-1])


def prepare(options: CopyTaskOptions) -> tuple[Manifest, bool]:
    """Makes the data directory of the copy task, unless it exists already.

    Returns:
        The manifest, and whether the directory is new.

    Raises:
        ValueError: if the directory holds something else, or was made with other options.
    """
    kept = {name: value for name, value in options.to_dict().items() if name != "output_dir"}

    def write(directory: Path) -> Manifest:
        streams = np.random.SeedSequence(options.seed).spawn(len(SPLITS))
        splits = {}
        for name, num_examples, stream in zip(
            SPLITS, (options.num_train, options.num_valid), streams, strict=True
        ):
            print_note(f"writing {num_examples} examples for {name}")
            examples = generate(num_examples, options.max_length, options.vocab_size, stream)
            splits[name] = _write_split(directory, name, examples)
        vocabulary = SymbolVocabulary(map(str, range(options.vocab_size))).to_dict()
        return Manifest(TASK, vocabulary, vocabulary, splits, kept, versions("numpy"))

    return write_once.prepare_once(options.output_dir, TASK, kept, options.defaults(), write)


def _write_split(directory: Path, name: str, examples: list[Symbols]) -> Split:
    """Writes both sides of a split, one example per line, and returns its record."""
    files = []
    for role in ("source", "target"):
        path = f"{name}.{role}.txt"
        with open_output(directory / path) as stream:
            stream.writelines(" ".join(map(str, symbols.tolist())) + "\n" for symbols in examples)
        files.append(describe_file(directory, path, role))
    lengths = [len(symbols) + 1 for symbols in examples]  # with the end token
    return Split("text", tuple(files), len(examples), max(lengths), max(lengths), sum(lengths))


def summary(manifest: Manifest) -> dict[str, Any]:
    """The figures that the command prints: sizes of the splits."""
    found: dict[str, Any] = {}
    for name, split in manifest.splits.items():
        found[f"num_{name}"] = split.num_examples
        found[f"{name}_target_tokens"] = split.num_target_tokens
        found[f"{name}_max_source_length"] = split.max_source_length
    return found
