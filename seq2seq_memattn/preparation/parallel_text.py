"""Prepares parallel text from files that the user names, and defines the options for this."""

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path, PurePath

from seq2seq_memattn.config import option
from seq2seq_memattn.data.manifest import MANIFEST_NAME, Manifest, read_manifest
from seq2seq_memattn.notes import print_note
from seq2seq_memattn.preparation.line_pairs import check_input
from seq2seq_memattn.preparation.options import TextOptions
from seq2seq_memattn.preparation.prepare_text import prepare_text
from seq2seq_memattn.preparation.stages import FilePair, TextFiles
from seq2seq_memattn.text.form import TextForm

TASK = "parallel_text"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParallelTextOptions(TextForm, TextOptions):
    """Options of the command parallel_text. Text files are UTF-8, plain or `.gz`."""

    train_source: str = option(
        dataclasses.MISSING,
        "training text, source side; comma-separated if there are several files",
        group="Files",
    )
    train_target: str = option(
        dataclasses.MISSING, "training text, target side, files in the same order", group="Files"
    )
    valid_source: str = option(dataclasses.MISSING, "validation text, source side", group="Files")
    valid_target: str = option(dataclasses.MISSING, "validation text, target side", group="Files")
    test_source: str = option(
        "",
        "test sets, source sides, comma-separated; the name of a set is the name of its file up to "
        "the first dot",
        group="Files",
    )
    test_target: str = option("", "test sets, target sides, in the same order", group="Files")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.is_tokenised:
            of_tokenizer = ("splits_hyphens", "has_escapes", "has_normalised_punctuation")
            self.refuse(of_tokenizer, "without is_tokenised")
        if self.is_truecased and self.is_lowercased:
            raise ValueError("is_truecased: expected without is_lowercased")
        self.files()

    def files(self) -> TextFiles:
        """The files to read.

        Raises:
            ValueError: if the source and the target side have different numbers of files, a file
                has no name, or two splits have the same name.
        """
        train = _file_pairs("train", self.train_source, self.train_target)
        sets = {"valid": (self.valid_source, self.valid_target)}
        for name, pairs in (("train", train), ("valid", tuple(sets.values()))):
            if not all(map(all, pairs)) or not pairs:
                raise ValueError(
                    f"{name}_source and {name}_target: expected files, got an empty name"
                )
        for pair in _file_pairs("test", self.test_source, self.test_target):
            name = PurePath(pair[0]).name.partition(".")[0]
            if not name or name in ("train", *sets):
                raise ValueError(
                    f"test_source: expected a unique set name for {pair[0]}, got {name!r}"
                )
            sets[name] = pair
        form = {field.name: getattr(self, field.name) for field in dataclasses.fields(TextForm)}
        return TextFiles(train, sets, TextForm(**form))

    def inputs(self) -> dict[str, str]:
        """Returns the input files by option name.

        For test sets, and if an option names several files, ", file N" follows the option name.
        """
        files = {}
        for option_name in ("train", "valid", "test"):
            for side in ("source", "target"):
                given = getattr(self, f"{option_name}_{side}")
                names = [given] if option_name == "valid" else _split(given)
                for i, name in enumerate(names, 1):
                    is_one = len(names) == 1 and option_name != "test"
                    files[f"{option_name}_{side}" + ("" if is_one else f", file {i}")] = name
        models = {"model_file": self.model_file, "truecase_model": self.truecase_model}
        return files | {name: path for name, path in models.items() if path}


def prepare(options: ParallelTextOptions) -> tuple[Manifest, bool]:
    """Makes the data directory, unless it exists already; see `prepare_text`.

    Raises:
        ValueError: see `prepare_text`; also if the directory was made from files of other sizes.
    """
    kept = {**options.kept(), "input_bytes": _input_bytes(options)}
    manifest, is_new = prepare_text(options, TASK, kept, options.files)
    if not is_new:
        for path in _newer(options):
            print_note(
                f"{path}: is newer than {options.output_dir}, but has the same size as before and "
                "is not read again"
            )
    return manifest, is_new


def _split(names: str) -> list[str]:
    return names.split(",") if names else []


def _file_pairs(name: str, sources: str, targets: str) -> tuple[FilePair, ...]:
    sides = _split(sources), _split(targets)
    if len(sides[0]) != len(sides[1]):
        raise ValueError(
            f"{name}_source and {name}_target: expected as many files, "
            f"got {len(sides[0])} and {len(sides[1])}"
        )
    return tuple(zip(*sides, strict=True))


def _input_bytes(options: ParallelTextOptions) -> dict[str, int]:
    """Returns the sizes of the input files, by option.

    If the directory is ready, the recorded size is used for an input file that no longer exists,
    because the file is no longer needed.
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


def _newer(options: ParallelTextOptions) -> list[str]:
    """Returns the input files that are newer than the data directory."""
    made = (Path(options.output_dir) / MANIFEST_NAME).stat().st_mtime_ns
    paths = [path for path in options.inputs().values() if os.path.exists(path)]
    return [path for path in paths if os.stat(path).st_mtime_ns > made]
