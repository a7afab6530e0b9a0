"""Writes models as SavedModels in `EXPORT_DIR/VERSION`, as TensorFlow Serving expects them."""

import contextlib
import dataclasses
import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from seq2seq_memattn.attention.registry import label
from seq2seq_memattn.compute.file_errors import as_os_errors
from seq2seq_memattn.compute.precision import INT8
from seq2seq_memattn.data.locks import locked
from seq2seq_memattn.runs.directory import CONFIG_NAME, Run, versions
from seq2seq_memattn.search.ensemble import Ensemble, members
from seq2seq_memattn.serving.export.graph import ServingGraph, TextModel, text_model_of
from seq2seq_memattn.serving.export.model_card import model_card
from seq2seq_memattn.serving.export.options import ExportOptions
from seq2seq_memattn.serving.export.warmup import write_warmup
from seq2seq_memattn.serving.layout import CARD, EXPORT, EXTRA, VERSION_NAME, version_folders
from seq2seq_memattn.text.form import TextForm
from seq2seq_memattn.vocabulary import NUM_SPECIAL_IDS, UNKNOWN_ID, SymbolVocabulary

EXAMPLE_TOKENS = 10
MODELS_NAME = "models.json"  # the options of an ensemble's models


def export(
    run: Run, export_dir: Path, options: ExportOptions, precision: str, example: str = ""
) -> Path:
    """Exports a run as the next version; the version appears only when it is complete.

    Args:
        run: `Run`.
        export_dir: Path. Each export is a folder in it: 1, then 2, and so on.
        options: `ExportOptions`.
        precision: the precision that the run was loaded with, to record it; or "int8_products", to
            round the matrices of a run loaded in float32.
        example: an example text for the web page and the warm-up requests.

    Returns:
        The version's folder.

    Raises:
        ValueError: if Keras's backend is not TensorFlow, `example` cannot be encoded, or
            another process is exporting to the folder.
        OSError: if the folder cannot be written.
    """
    check_backend()
    example = example or _example(run)
    run.source_vocabulary.encode(example)
    description = describe(run, options, precision) | {"example": example}
    with new_version(export_dir) as (folder, version):
        served = text_model_of(run, options)
        write(served, options, folder, description, example or "a", precision == INT8)
        copied = [run.text_form.truecase_model] if run.text_form.truecase_model else []
        if isinstance(run.model, Ensemble):
            models = [model.config.to_dict() for model in members(run.model)]
            _write_json(folder / EXTRA / MODELS_NAME, {"models": models})
        else:
            copied.append(CONFIG_NAME)
        for name in copied:
            shutil.copyfile(run.directory / name, folder / EXTRA / name)
        card = model_card(run, export_dir.resolve().name, version, description)
        # The names of data files may not be UTF-8.
        (folder / CARD).write_text(card, encoding="utf-8", errors="backslashreplace")
    return export_dir / str(version)


def check_backend() -> None:
    """Raises ValueError unless Keras's backend is TensorFlow."""
    if (backend := keras.backend.backend()) != "tensorflow":
        raise ValueError(f"Exporting needs Keras's TensorFlow backend; it has {backend}.")


def describe(run: Run, options: ExportOptions, precision: str) -> dict[str, Any]:
    """The description of an exported run, for servers and the web page."""
    attentions = dict.fromkeys(model.config.attention for model in members(run.model))
    return {
        **shared_fields(options, attentions, run.text_form),
        "kind": run.source_vocabulary.to_dict()["kind"],
        "target_kind": run.target_vocabulary.to_dict()["kind"],
        "precision": precision,
        **({"ensemble_mean": run.model.mean} if isinstance(run.model, Ensemble) else {}),
        "update": run.update,
        "parameters": run.model.count_params(),
    }


def shared_fields(
    options: ExportOptions, attentions: Iterable[str], form: TextForm
) -> dict[str, Any]:
    """The fields that the descriptions of a run and of a `Searchable` share."""
    return {
        "attention": " + ".join(attentions),
        "attention_label": " and ".join(map(label, attentions)),
        "source_language": form.source_language,
        "target_language": form.target_language,
        **dataclasses.asdict(options),
        "text_form": form.to_dict(),
        "versions": versions(),
    }


def _example(run: Run) -> str:
    """An example source for a run of the copy task; "" for other runs, which have no example."""
    vocabulary = run.source_vocabulary
    if not isinstance(vocabulary, SymbolVocabulary):
        return ""
    ids = range(NUM_SPECIAL_IDS, min(vocabulary.size, UNKNOWN_ID + EXAMPLE_TOKENS))
    return vocabulary.decode(ids)


def write(
    served: TextModel,
    options: ExportOptions,
    folder: Path,
    description: dict[str, Any],
    warmup: str,
    in_int8: bool = False,
) -> None:
    """Writes a version's SavedModel, description and warm-up requests to a folder.

    All warm-up requests have the text `warmup`.
    """
    graph = ServingGraph(served, options, in_int8)
    functions = {name: graph.function(name) for name in options.signatures}
    module = tf.Module()
    module.texts = graph.modules
    module.complaints = graph.complaints()
    # Only the variables that the graphs read, without weights that only training needs.
    used = {id(v): v for function in functions.values() for v in function.graph.variables}
    module.weights = [list(used.values()), *(matrix.variables for matrix in graph.matrices)]
    module.matrices = graph.matrices
    # TensorFlow registers saved gradients when it loads a model, and keeps them, and with them the
    # model, until the process ends. A server would keep every version that it ever loaded.
    saving = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    with as_os_errors(folder.parent):
        tf.saved_model.save(module, str(folder), signatures=functions, options=saving)
        (folder / EXTRA).mkdir()
        _write_json(folder / EXPORT, description)
        write_warmup(folder, folder.parent.resolve().name, warmup, options.signatures)


@contextlib.contextmanager
def new_version(export_dir: Path) -> Iterator[tuple[Path, int]]:
    """Yields a folder to fill and its version; the folder is renamed if the block succeeds.

    While the block runs, no other process can export to `export_dir`.
    """
    export_dir.mkdir(parents=True, exist_ok=True)
    with locked(export_dir, "exporting to it"):
        for leftover in export_dir.glob(".*.tmp"):
            if VERSION_NAME.fullmatch(leftover.name[1:].removesuffix(".tmp")):
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
