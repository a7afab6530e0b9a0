r"""Prepares parallel text: two files whose lines are translations of each other, a pair a line.

    python -m data_prep.parallel_text \
        --train_source=train.en.gz --train_target=train.de.gz \
        --valid_source=val.en.gz --valid_target=val.de.gz --vocab_size=16000 --output_dir=D

The directory gets the vocabulary, the token ids of all splits in shards, and the text of validation
and test sets, which scores need. Only training pairs are filtered.

The text is read twice: to check it, count it, find duplicates and draw the sample that the
vocabulary is made from; and to encode it, in one process per CPU core. Memory does not grow with
the corpus; on disk, 9 bytes a pair are needed for the time being. A command that was interrupted
goes on when it is repeated; one whose directory is ready does nothing.
"""

import dataclasses
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any, Literal

from data_prep import output
from data_prep.text_corpus import EvaluationText, TextPreparation
from data_prep.text_pairs import check_input
from data_prep.text_shards import FILTERS, Limits
from data_prep.text_vocabulary import VocabularyOptions
from data_prep.workers import num_cores
from experiments import cli
from seq2seq_memattn.config import Options, option
from seq2seq_memattn.data.manifest import MANIFEST_NAME, Manifest, read_manifest
from seq2seq_memattn.vocabulary import UNKNOWN_ID

TASK = "parallel_text"


@dataclasses.dataclass(frozen=True)
class ParallelTextOptions(Options):
    """Options of the command. Text files are UTF-8, plain or `.gz`."""

    train_source: str = option(dataclasses.MISSING, "training text, source side")
    train_target: str = option(dataclasses.MISSING, "training text, target side")
    valid_source: str = option(dataclasses.MISSING, "validation text, source side")
    valid_target: str = option(dataclasses.MISSING, "validation text, target side")
    output_dir: str = option(dataclasses.MISSING, "data directory to make")
    test_source: str = option(
        "", "test sets, source sides, separated by commas; each is called by its file's first part"
    )
    test_target: str = option("", "test sets, target sides, in the same order")
    kind: Literal["subwords", "words", "characters"] = option(
        "subwords", "tokens: SentencePiece BPE pieces, what stands between spaces, or characters"
    )
    vocab_size: int = option(16_000, "ids of a vocabulary, special ones included")
    separate_vocabularies: bool = option(False, "one vocabulary for each side, not one for both")
    model_file: str = option("", "subwords: use this SentencePiece model and train none")
    normalisation: Literal["identity", "nfkc", "nfkc_cf", "nmt_nfkc", "nmt_nfkc_cf"] = option(
        "identity", "subwords: how SentencePiece rewrites text; identity keeps its characters"
    )
    character_coverage: float = option(
        0.9999, "subwords: share of the text whose characters get pieces; others are spelt in bytes"
    )
    vocab_sentences: int = option(
        1_000_000, "a vocabulary is made from at most this many lines, drawn with the seed"
    )
    max_length: int = option(
        100, "leave out training pairs with a side of more tokens, end token included"
    )
    max_length_ratio: float = option(
        9.0, "leave out training pairs with one side more times as long in tokens; 0: keep them"
    )
    remove_duplicates: bool = option(
        True, "leave out training pairs that occurred before, both sides alike"
    )
    shard_pairs: int = option(50_000, "pairs read for each shard")
    processes: int = option(0, "processes that encode; 0: one per CPU core")
    seed: int = option(0, "seed of the sample that vocabularies are made from")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in (
            ("vocab_size", UNKNOWN_ID + 2),
            ("vocab_sentences", 1),
            ("max_length", 2),
            ("max_length_ratio", 0),
            ("shard_pairs", 1),
            ("processes", 0),
            ("seed", 0),
        ):
            if getattr(self, name) < least:
                raise ValueError(f"{name}: expected at least {least}, got {getattr(self, name)}")
        if not 0.98 <= self.character_coverage <= 1.0:
            got = self.character_coverage
            raise ValueError(f"character_coverage: expected 0.98 to 1, got {got}")
        if not self.output_dir:
            raise ValueError("output_dir: expected the name of a directory, got an empty one")
        if self.model_file and (self.kind != "subwords" or self.separate_vocabularies):
            raise ValueError("model_file: expected kind subwords and one vocabulary for both sides")
        test_sets(self)

    def inputs(self) -> dict[str, str]:
        """Returns the names of the files to read, by option; test sets are numbered."""
        names = ("train_source", "train_target", "valid_source", "valid_target")
        files = {name: getattr(self, name) for name in names}
        for i, (source, target) in enumerate(test_sets(self).values(), 1):
            files |= {f"test_source, file {i}": source, f"test_target, file {i}": target}
        return files | ({"model_file": self.model_file} if self.model_file else {})


def test_sets(options: ParallelTextOptions) -> dict[str, tuple[str, str]]:
    """Returns the source and target files of the test sets, by name."""
    sources, targets = (
        side.split(",") if side else [] for side in (options.test_source, options.test_target)
    )
    if len(sources) != len(targets):
        raise ValueError(
            "test_source and test_target: expected as many files, "
            f"got {len(sources)} and {len(targets)}"
        )
    sets: dict[str, tuple[str, str]] = {}
    for source, target in zip(sources, targets, strict=True):
        name = PurePath(source).name.partition(".")[0]
        if not name or name in ("train", "valid", *sets):
            raise ValueError(f"test_source: expected a name of its own for {source}, got {name!r}")
        sets[name] = (source, target)
    return sets


def prepare(options: ParallelTextOptions, task: str = TASK) -> tuple[Manifest, bool]:
    """Makes the data directory unless it is there.

    Args:
        options: `ParallelTextOptions`.
        task: name of the preparation, for scripts that prepare one corpus with this function.

    Returns:
        Its manifest, and whether it was made now.

    Raises:
        ValueError: if an input file or an option is not as it should be, or the directory holds
            something else, or was made with other options or from files of other sizes.
        OSError: if the disk is full or a worker process died. What is done is kept.
    """
    kept = {
        name: value
        for name, value in options.to_dict().items()
        if name not in ("output_dir", "processes")  # which do not change the files
    }
    kept["input_bytes"] = _input_bytes(options)

    def write(directory: Path) -> Manifest:
        preparation = TextPreparation(
            directory=directory,
            train=(options.train_source, options.train_target),
            evaluation=_evaluation_texts(options),
            vocabulary=VocabularyOptions(
                options.kind,
                options.vocab_size,
                options.normalisation,
                options.character_coverage,
            ),
            is_separate=options.separate_vocabularies,
            model_file=options.model_file,
            vocab_sentences=options.vocab_sentences,
            limits=Limits(options.max_length, options.max_length_ratio),
            remove_duplicates=options.remove_duplicates,
            shard_pairs=options.shard_pairs,
            processes=options.processes or num_cores(),
            seed=options.seed,
        )
        source, target, splits = preparation.run()
        versions = output.versions("sentencepiece")
        return Manifest(task, source, target, splits, kept, versions)

    return output.prepare_resumably(options.output_dir, task, kept, _stamps(options), write)


def _evaluation_texts(options: ParallelTextOptions) -> list[EvaluationText]:
    sets = {"valid": (options.valid_source, options.valid_target), **test_sets(options)}
    return [EvaluationText(name, *files) for name, files in sets.items()]


def _input_bytes(options: ParallelTextOptions) -> dict[str, int]:
    """Returns the sizes of the input files, by option.

    Where the directory is ready, a file that is gone counts as it was: it is not needed any more.
    """
    recorded: Mapping[str, int] = {}
    if (Path(options.output_dir) / MANIFEST_NAME).exists():
        manifest = read_manifest(options.output_dir, check_files=False)
        recorded = manifest.options.get("input_bytes", {})
    sizes = {}
    for name, path in options.inputs().items():
        if name in recorded and not os.path.exists(path):
            sizes[name] = recorded[name]
        else:
            check_input(name, path)
            sizes[name] = os.path.getsize(path)
    return sizes


def _stamps(options: ParallelTextOptions) -> dict[str, Any]:
    """Returns the times of change of the input files, in nanoseconds, by option."""
    inputs = options.inputs().items()
    return {name: os.stat(path).st_mtime_ns for name, path in inputs if os.path.exists(path)}


def _figures(manifest: Manifest, output_dir: str, is_new: bool) -> dict[str, Any]:
    """Returns what the command prints of a data directory."""
    figures: dict[str, Any] = {"command": "data_prep.parallel_text", "output_dir": output_dir}
    for name, split in manifest.splits.items():
        figures[f"num_{name}"] = split.num_examples
        figures[f"{name}_target_tokens"] = split.num_target_tokens
    left_out = Counter(manifest.split("train").left_out)
    return figures | {f"left_out_{name}": left_out[name] for name in FILTERS} | {"is_new": is_new}


def main(arguments: list[str]) -> None:
    """Runs the command."""
    del arguments
    options = cli.options_from_flags(ParallelTextOptions)
    manifest, is_new = prepare(options)
    if not is_new:
        cli.print_note(f"{options.output_dir}: already prepared with these options; nothing to do")
    cli.print_result(_figures(manifest, options.output_dir, is_new))


if __name__ == "__main__":
    cli.define_flags(ParallelTextOptions)
    cli.run(main)
