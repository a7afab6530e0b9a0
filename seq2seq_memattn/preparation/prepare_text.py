"""Makes a data directory from files of parallel text; all commands that prepare text use it."""

import dataclasses
import functools
import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from seq2seq_memattn.data.manifest import Manifest, sha256_of
from seq2seq_memattn.packages import versions
from seq2seq_memattn.preparation import write_once
from seq2seq_memattn.preparation.options import TextOptions
from seq2seq_memattn.preparation.shards import FILTERS
from seq2seq_memattn.preparation.stages import TextFiles, TextPreparation
from seq2seq_memattn.text.files import atomic_binary
from seq2seq_memattn.text.form import TextForm, check_truecase_model

TRUECASE_NAME = "source.truecase"  # in the data directory


def prepare_text(
    options: TextOptions,
    task: str,
    kept: Mapping[str, Any],
    find_files: Callable[[], TextFiles],
) -> tuple[Manifest, bool]:
    """Makes a data directory, unless it exists already.

    Args:
        options: `TextOptions`.
        task: name of the preparation.
        kept: the options that identify the preparation; see `write_once.prepare_resumably`.
        find_files: returns the files; not called if the directory exists.

    Returns:
        The manifest, and whether the directory is new.

    Raises:
        ValueError: if a file or an option is wrong, or the directory holds something else or was
            made with other options.
        OSError: if the disk is full or a worker process died. The finished work is kept.
    """
    find_once = functools.cache(find_files)  # finding may need a download

    def inputs() -> list[list[int]]:
        files = find_once()
        pairs = (*files.train, *files.evaluation.values())
        models = filter(None, (options.model_file, files.form.truecase_model))
        stats = [os.stat(path) for path in (*(path for pair in pairs for path in pair), *models)]
        return [[stat.st_size, stat.st_mtime_ns] for stat in stats]

    def write(directory: Any) -> Manifest:
        files = find_once()
        if files.form.truecase_model:
            check_truecase_model(Path(files.form.truecase_model))
        source, target, splits = TextPreparation(directory, files, options).run()
        used = versions("numpy", *["sentencepiece"] * (options.kind == "subwords"))
        form = _kept_form(files.form, options, directory)
        return Manifest(task, source, target, splits, kept, used, form.to_dict())

    manifest, is_new = write_once.prepare_resumably(
        options.output_dir, task, kept, options.defaults(), inputs, write
    )
    given = Path(options.model_file)
    if given.is_file() and sha256_of(given) != manifest.source_vocabulary["sha256"]:
        raise ValueError(
            f"{options.output_dir}: prepared with another {given}; choose another --output_dir"
        )
    return manifest, is_new


def _kept_form(form: TextForm, options: TextOptions, directory: Path) -> TextForm:
    """Returns the form of the prepared text, and copies the truecase model to the directory."""
    form = dataclasses.replace(form, has_escapes=form.has_escapes and not options.unescape)
    if not form.truecase_model:
        return form
    with atomic_binary(directory / TRUECASE_NAME) as stream:
        stream.write(Path(form.truecase_model).read_bytes())
    return dataclasses.replace(form, truecase_model=TRUECASE_NAME)


def summary(manifest: Manifest) -> dict[str, Any]:
    """The figures that a command prints: split sizes, and training pairs dropped by each filter."""
    found: dict[str, Any] = {}
    for name, split in manifest.splits.items():
        found[f"num_{name}"] = split.num_examples
        found[f"{name}_target_tokens"] = split.num_target_tokens
    left_out = Counter(manifest.split("train").left_out)
    return found | {f"left_out_{name}": left_out[name] for name in FILTERS}
