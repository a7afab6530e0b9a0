"""Writes models as SavedModels in `EXPORT_DIR/VERSION`, as TensorFlow Serving expects them."""

import contextlib
import json
import math
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from seq2seq_memattn.attention.registry import label
from seq2seq_memattn.data.locks import locked
from seq2seq_memattn.runs.directory import CONFIG_NAME, Run, versions
from seq2seq_memattn.search.searchable import Searchable
from seq2seq_memattn.serving.export.graph import (
    SearchOptions,
    ServedModel,
    ServingGraph,
    served_run,
    signatures,
)
from seq2seq_memattn.serving.export.graph_text import GraphVocabulary, graph_vocabulary
from seq2seq_memattn.serving.export.model_card import model_card, searchable_card
from seq2seq_memattn.serving.export.warmup import write_warmup
from seq2seq_memattn.serving.layout import CARD, EXPORT, EXTRA, version_folders
from seq2seq_memattn.text.form import TextForm
from seq2seq_memattn.vocabulary import (
    END_ID,
    NUM_SPECIAL_IDS,
    PAD_ID,
    START_ID,
    UNKNOWN_ID,
    SymbolVocabulary,
    Vocabulary,
)

EXAMPLE_TOKENS = 10


def export(
    run: Run, export_dir: Path, options: SearchOptions, precision: str, example: str = ""
) -> Path:
    """Exports a run as the next version; the version appears only when it is complete.

    Args:
        run: `Run`.
        export_dir: Path. Each export is a folder in it: 1, then 2, and so on.
        options: `SearchOptions`.
        precision: the precision that the run was loaded with; it is only recorded.
        example: an example text for the web page and the warm-up requests.

    Returns:
        The version's folder.

    Raises:
        ValueError: if `beam_size` or `n_best` is out of range, `example` cannot be encoded, or
            another process is exporting to the folder.
        OSError: if the folder cannot be written.
    """
    example = example or _example(run)
    run.source_vocabulary.encode(example)
    description = describe(run, options, precision) | {"example": example}
    with _new_version(export_dir) as (folder, version):
        _write(served_run(run, options), options, folder, description, example or "a")
        for name in filter(None, (CONFIG_NAME, run.text_form.truecase_model)):
            shutil.copyfile(run.directory / name, folder / EXTRA / name)
        card = model_card(run, export_dir.resolve().name, version, description)
        (folder / CARD).write_text(card, encoding="utf-8")
    return export_dir / str(version)


def export_searchable(
    searchable: Searchable,
    export_dir: str | os.PathLike[str],
    source_vocabulary: Vocabulary | Sequence[str] | None = None,
    target_vocabulary: Vocabulary | Sequence[str] | None = None,
    source_end_id: int | None = None,
    example: str = "",
    source_language: str = "",
    target_language: str = "",
    **search: Any,
) -> Path:
    """Exports your own Keras model as the next version, like `memattn export` exports a run.

    `memattn serve` and TensorFlow Serving can serve the result. Exporting needs Keras's TensorFlow
    backend.

    Args:
        searchable: `Searchable`.
        export_dir: path. Each export is a folder in it: 1, then 2, and so on.
        source_vocabulary, target_vocabulary: each one of three things. A `SubwordVocabulary`,
            `WordVocabulary`, `CharacterVocabulary` or `SymbolVocabulary` of
            `seq2seq_memattn.vocabulary`; or a list of strings, the symbols from id 0 on, for texts
            of symbols separated by spaces, as `keras.layers.TextVectorization.get_vocabulary`
            returns it (with `[UNK]` for unknown symbols); or None, for texts of ids separated by
            spaces, such as "17 4 9".
        source_end_id: int, the id with which the model expects every source to end, or None.
        example: an example text for the web page and the warm-up requests.
        source_language, target_language: language codes such as "en", for the web page.
        search: options of search, fixed in the graph, with their defaults: `beam_size` (10),
            `n_best` (5, at most `beam_size`), `length_penalty` (0.0, the exponent), `max_length`
            and `max_source_length` (None). For sampling: `num_samples` (0: no signature `sample`),
            `temperature` (1.0), `top_k` (0), `top_p` (1.0). See `beam_search` and `sample`.

    Returns:
        The version's folder.

    Raises:
        ValueError: if an option is unknown or out of range, a vocabulary is of another kind or does
            not fit the model, Keras has another backend, or another process is exporting to the
            folder.
        OSError: if the folder cannot be written.
    """
    if not isinstance(searchable, Searchable):
        raise ValueError(f"`searchable`: expected a Searchable; got {type(searchable).__name__}.")
    if (backend := keras.backend.backend()) != "tensorflow":
        raise ValueError(f"Exporting needs Keras's TensorFlow backend; it has {backend}.")
    options, folder_name = _options(search), Path(export_dir).resolve().name
    _check_target_vocabulary(target_vocabulary, searchable)
    attention = searchable.cell.attention
    limits = (options.max_source_length, getattr(attention, "max_source_length", None))
    served = ServedModel(
        searchable,
        graph_vocabulary(source_vocabulary),
        graph_vocabulary(target_vocabulary),
        source_end_id,
        min((limit for limit in limits if limit), default=None),
    )
    description = {
        **_shared_fields(options, type(attention).__name__, TextForm()),
        "source_language": source_language,
        "target_language": target_language,
        "kind": _kind(source_vocabulary),
        "precision": searchable.cell.dtype_policy.name,
        "parameters": sum(math.prod(v.shape) for v in searchable.variables if v.trainable),
        "example": example,
    }
    with _new_version(Path(export_dir)) as (folder, version):
        _write(served, options, folder, description, example or _first_token(served.source_text))
        card = searchable_card(folder_name, version, description)
        (folder / CARD).write_text(card, encoding="utf-8")
    return Path(export_dir) / str(version)


def _options(search: dict[str, Any]) -> SearchOptions:
    if unknown := sorted(set(search) - set(SearchOptions._fields)):
        raise ValueError(
            f"`{unknown[0]}`: expected one of {', '.join(SearchOptions._fields)}; there is no such "
            "option of the search."
        )
    default = SearchOptions()
    n_best = min(default.n_best, search.get("beam_size", default.beam_size))
    return SearchOptions(**{"n_best": n_best, **search})


def _check_target_vocabulary(vocabulary: Any, searchable: Searchable) -> None:
    """Raises ValueError if a vocabulary cannot decode the ids that the model writes."""
    if vocabulary is None:
        return
    is_ours = isinstance(vocabulary, Vocabulary)
    size = vocabulary.size if is_ours else len(vocabulary)
    if size < searchable.vocab_size:
        raise ValueError(
            f"`target_vocabulary`: expected a token for each of {searchable.vocab_size} ids; got "
            f"{size}."
        )
    special = tuple(searchable.ids[:3].tolist())
    if is_ours and special != (PAD_ID, START_ID, END_ID):
        raise ValueError(
            "`target_vocabulary`: a Vocabulary has padding 0, start 1 and end 2; the Searchable "
            f"has {', '.join(map(str, special))}."
        )


def _kind(vocabulary: Any) -> str:
    """The kind of vocabulary, for the web page."""
    if vocabulary is None:
        return "symbols"
    return vocabulary.to_dict()["kind"] if isinstance(vocabulary, Vocabulary) else "words"


def describe(run: Run, options: SearchOptions, precision: str) -> dict[str, Any]:
    """The description of an exported run, for servers and the web page."""
    return {
        **_shared_fields(options, run.model.config.attention, run.text_form),
        "kind": run.source_vocabulary.to_dict()["kind"],
        "precision": precision,
        "update": run.update,
        "parameters": run.model.count_params(),
    }


def _shared_fields(options: SearchOptions, attention: str, form: TextForm) -> dict[str, Any]:
    """The fields that the descriptions of a run and of a `Searchable` share."""
    return {
        "attention": attention,
        "attention_label": label(attention),
        "source_language": form.source_language,
        "target_language": form.target_language,
        **options._asdict(),
        "text_form": form.to_dict(),
        "versions": versions(),
    }


def _first_token(vocabulary: GraphVocabulary) -> str:
    """The first token that is not empty: a text that the vocabulary can encode."""
    ids = tf.range(vocabulary.first_id, vocabulary.first_id + 2)
    return next(token.decode() for token in vocabulary.pieces(ids).numpy() if token)


def _example(run: Run) -> str:
    """An example source if the run is of the copy task; "" for text, of which a run has none."""
    vocabulary = run.source_vocabulary
    if not isinstance(vocabulary, SymbolVocabulary):
        return ""
    ids = range(NUM_SPECIAL_IDS, min(vocabulary.size, UNKNOWN_ID + EXAMPLE_TOKENS))
    return vocabulary.decode(ids)


def _write(
    served: ServedModel,
    options: SearchOptions,
    folder: Path,
    description: dict[str, Any],
    warmup: str,
) -> None:
    graph = ServingGraph(served, options)
    functions = {name: graph.function(name) for name in signatures(options)}
    module = tf.Module()
    module.texts = graph.modules
    # Only the variables that the graphs read, without weights that only training needs.
    used = {id(v): v for function in functions.values() for v in function.graph.variables}
    module.weights = list(used.values())
    tf.saved_model.save(module, str(folder), signatures=functions)
    (folder / EXTRA).mkdir()
    _write_json(folder / EXPORT, description)
    write_warmup(folder, folder.parent.resolve().name, warmup, signatures(options))


@contextlib.contextmanager
def _new_version(export_dir: Path) -> Iterator[tuple[Path, int]]:
    """Yields a folder to fill and its version; the folder is renamed if the block succeeds.

    While the block runs, no other process can export to `export_dir`.
    """
    export_dir.mkdir(parents=True, exist_ok=True)
    with locked(export_dir, "exporting to it"):
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
