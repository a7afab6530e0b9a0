"""From files of parallel text and options to a data directory, as every text command does it."""

import dataclasses
import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from seq2seq_memattn.compute.hardware import num_cores
from seq2seq_memattn.data.manifest import Manifest
from seq2seq_memattn.preparation import write_once
from seq2seq_memattn.preparation.options import TextOptions
from seq2seq_memattn.preparation.shards import FILTERS, Limits
from seq2seq_memattn.preparation.stages import EvaluationText, TextPreparation
from seq2seq_memattn.preparation.vocabulary import VocabularyOptions
from seq2seq_memattn.text.files import atomic_binary
from seq2seq_memattn.text.form import TextForm, check_truecase_model

FilePair = tuple[str, str]
TRUECASE_NAME = "source.truecase"  # in the data directory


class TextFiles(NamedTuple):
    """The files to prepare; those of a pair have a line for a line.

    Fields:
        train: source and target files, read one pair after the other.
        evaluation: source and target file of the other splits, by name, "valid" first.
        form: `TextForm` of what is in them.
    """

    train: tuple[FilePair, ...]
    evaluation: Mapping[str, FilePair]
    form: TextForm


def prepare_text(
    options: TextOptions,
    task: str,
    kept: Mapping[str, Any],
    find_files: Callable[[], TextFiles],
) -> tuple[Manifest, bool]:
    """Makes a data directory unless it is there.

    Args:
        options: `TextOptions`.
        task: name of the preparation.
        kept: `options` of `write_once.prepare_resumably`.
        find_files: gives the files; not called if the directory is there.

    Returns:
        Its manifest, and whether it was made now.

    Raises:
        ValueError: if a file or an option is not as it should be, or the directory holds something
            else, or was made with other options.
        OSError: if the disk is full or a worker process died. What is done is kept.
    """
    found: list[TextFiles] = []

    def inputs() -> list[list[int]]:
        found.append(find_files())
        pairs = (*found[-1].train, *found[-1].evaluation.values())
        models = filter(None, (options.model_file, found[-1].form.truecase_model))
        stats = [os.stat(path) for path in (*(path for pair in pairs for path in pair), *models)]
        return [[stat.st_size, stat.st_mtime_ns] for stat in stats]

    def write(directory: Any) -> Manifest:
        files = found[-1]
        if files.form.truecase_model:
            check_truecase_model(Path(files.form.truecase_model))
        preparation = TextPreparation(
            directory=directory,
            train=files.train,
            evaluation=[EvaluationText(name, *pair) for name, pair in files.evaluation.items()],
            unescape=options.unescape,
            vocabulary=VocabularyOptions(
                options.kind,
                options.vocab_size,
                options.normalisation,
                options.character_coverage,
            ),
            is_separate=options.separate_vocabularies,
            model_file=options.model_file,
            vocab_sentences=options.vocab_sentences,
            limits=Limits(options.most_tokens, options.max_length_ratio),
            remove_duplicates=options.remove_duplicates,
            shard_pairs=options.shard_pairs,
            processes=options.processes or num_cores(),
            seed=options.seed,
        )
        source, target, splits = preparation.run()
        versions = write_once.versions("sentencepiece")
        form = _kept_form(files.form, options, directory)
        return Manifest(task, source, target, splits, kept, versions, form.to_dict())

    return write_once.prepare_resumably(options.output_dir, task, kept, inputs, write)


def _kept_form(form: TextForm, options: TextOptions, directory: Path) -> TextForm:
    """The form of the text in a data directory, which gets the truecase model."""
    form = dataclasses.replace(form, has_escapes=form.has_escapes and not options.unescape)
    if not form.truecase_model:
        return form
    with atomic_binary(directory / TRUECASE_NAME) as stream:
        stream.write(Path(form.truecase_model).read_bytes())
    return dataclasses.replace(form, truecase_model=TRUECASE_NAME)


def summary(manifest: Manifest) -> dict[str, Any]:
    """What a command says of a data directory that it made: sizes, and what was left out."""
    found: dict[str, Any] = {}
    for name, split in manifest.splits.items():
        found[f"num_{name}"] = split.num_examples
        found[f"{name}_target_tokens"] = split.num_target_tokens
    left_out = Counter(manifest.split("train").left_out)
    return found | {f"left_out_{name}": left_out[name] for name in FILTERS}
