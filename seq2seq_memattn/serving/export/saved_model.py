"""A trained run as a SavedModel: `EXPORT_DIR/VERSION`, as TensorFlow Serving expects it."""

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

from seq2seq_memattn.attention.registry import label
from seq2seq_memattn.data.locks import locked
from seq2seq_memattn.runs.directory import CONFIG_NAME, Run, versions
from seq2seq_memattn.serving.export.graph import SearchOptions, ServingGraph, signatures
from seq2seq_memattn.serving.export.model_card import model_card
from seq2seq_memattn.serving.export.warmup import write_warmup
from seq2seq_memattn.serving.layout import CARD, EXPORT, EXTRA, version_folders
from seq2seq_memattn.vocabulary import NUM_SPECIAL_IDS, UNKNOWN_ID, SymbolVocabulary

EXAMPLE_TOKENS = 10


def export(
    run: Run, export_dir: Path, options: SearchOptions, precision: str, example: str = ""
) -> Path:
    """Writes the next version; it is there as a whole or not at all.

    Args:
        run: `Run`.
        export_dir: Path. Its versions are folders named by whole numbers.
        options: `SearchOptions`.
        precision: that the run was loaded with, for the record.
        example: a text for those who try the model out, and for its warm-up.

    Returns:
        The version's folder.

    Raises:
        ValueError: if the beam's sizes are out of range, `example` cannot be expressed, or another
            process is exporting to the folder.
        OSError: if the folder cannot be written.
    """
    example = example or _example(run)
    run.source_vocabulary.encode(example)
    description = describe(run, options, precision) | {"example": example}
    export_dir.mkdir(parents=True, exist_ok=True)
    with locked(export_dir, "exporting to it"), _new_version(export_dir) as (folder, version):
        _write_graph(run, options, folder)
        extra = folder / EXTRA
        extra.mkdir()
        _write_json(folder / EXPORT, description)
        for name in filter(None, (CONFIG_NAME, run.text_form.truecase_model)):
            shutil.copyfile(run.directory / name, extra / name)
        write_warmup(folder, export_dir.resolve().name, example or "a", signatures(options))
        card = model_card(run, export_dir.resolve().name, version, description)
        (folder / CARD).write_text(card, encoding="utf-8")
    return export_dir / str(version)


def describe(run: Run, options: SearchOptions, precision: str) -> dict[str, Any]:
    """What a server and its page say of an exported model."""
    form = run.text_form
    return {
        "attention": run.model.config.attention,
        "attention_label": label(run.model.config.attention),
        "source_language": form.source_language,
        "target_language": form.target_language,
        "kind": run.source_vocabulary.to_dict()["kind"],
        **options._asdict(),
        "precision": precision,
        "update": run.update,
        "parameters": run.model.count_params(),
        "text_form": form.to_dict(),
        "versions": versions(),
    }


def _example(run: Run) -> str:
    """A source of the copy task; of text there is none in a run."""
    vocabulary = run.source_vocabulary
    if not isinstance(vocabulary, SymbolVocabulary):
        return ""
    ids = range(NUM_SPECIAL_IDS, min(vocabulary.size, UNKNOWN_ID + EXAMPLE_TOKENS))
    return vocabulary.decode(ids)


def _write_graph(run: Run, options: SearchOptions, folder: Path) -> None:
    graph = ServingGraph(run, options)
    functions = {name: graph.function(name) for name in signatures(options)}
    module = tf.Module()
    module.texts = graph.modules
    # What the graphs read, and nothing else of the model: no weights of training alone.
    used = {id(v): v for function in functions.values() for v in function.graph.variables}
    module.weights = list(used.values())
    tf.saved_model.save(module, str(folder), signatures=functions)


@contextlib.contextmanager
def _new_version(export_dir: Path) -> Iterator[tuple[Path, int]]:
    """A folder to fill, which becomes the next version when all went well."""
    for leftover in export_dir.glob(".*.tmp"):
        shutil.rmtree(leftover, ignore_errors=True)
    version = max(version_folders(export_dir), default=0) + 1
    folder = export_dir / f".{version}.tmp"
    folder.mkdir()
    try:
        yield folder, version
        folder.rename(export_dir / str(version))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
