"""Exports a user's own Keras model."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from seq2seq_memattn.checks import check_int
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.search.searchable import Searchable, without_cudnn
from seq2seq_memattn.serving.export.graph import TextModel
from seq2seq_memattn.serving.export.graph_text import GraphVocabulary, graph_vocabulary
from seq2seq_memattn.serving.export.model_card import searchable_card
from seq2seq_memattn.serving.export.options import ExportOptions, default_n_best
from seq2seq_memattn.serving.export.saved_model import (
    check_backend,
    new_version,
    shared_fields,
    write,
)
from seq2seq_memattn.serving.layout import CARD
from seq2seq_memattn.text.form import TextForm
from seq2seq_memattn.vocabulary import END_ID, PAD_ID, START_ID, Vocabulary


def export_searchable(
    searchable: Searchable | Seq2Seq,
    export_dir: str | os.PathLike[str],
    source_vocabulary: Vocabulary | Sequence[str] | None = None,
    target_vocabulary: Vocabulary | Sequence[str] | None = None,
    source_end_id: int | None = None,
    example: str = "",
    source_language: str = "",
    target_language: str = "",
    **search: Any,
) -> Path:
    """Exports your own Keras model as a new version, as `export` does for a run.

    `memattn serve` and TensorFlow Serving can serve the result. Its signatures are
    `serving_default`, `align`, `score` and, if asked for, `complete` and `sample`; the page
    "Serving" of the documentation describes their outputs. Exporting needs Keras's TensorFlow
    backend.

    Args:
        searchable: `Searchable`, or a `Seq2Seq` that you trained yourself.
        export_dir: path. Each export is a folder in it: 1, then 2, and so on.
        source_vocabulary, target_vocabulary: each is one of three things: a `SubwordVocabulary`,
            `WordVocabulary`, `CharacterVocabulary` or `SymbolVocabulary` of
            `seq2seq_memattn.vocabulary`; or a list of strings, the symbols from id 0 on, for texts
            of symbols separated by spaces, as `keras.layers.TextVectorization.get_vocabulary`
            returns it (with `[UNK]` for unknown symbols); or None, for texts of ids separated by
            spaces, such as "17 4 9".
        source_end_id: int, the id with which the model expects every source to end, or None. For a
            `Seq2Seq` trained as `memattn train` does, it is 2.
        example: an example text for the web page and the warm-up requests.
        source_language, target_language: language codes such as "en", for the web page.
        search: options of search, fixed in the graph, with their defaults: `beam_size` (10),
            `n_best` (5, at most `beam_size`), `length_penalty` (0.0, the exponent), `max_length`
            (None) and `max_source_length` (None: no limit but the model's; longer texts are cut to
            this number of tokens, as are given prefixes and translations). If the encoder's
            `keras.Input` declares a length, sources are padded and cut to it. For sampling:
            `num_samples` (0: no signature `sample`), `temperature` (1.0), `top_k` (0), `top_p`
            (1.0). Rules: `length_reward`, `coverage_penalty`, `no_repeat_ngram`, `banned` (a tuple
            of ids), `min_length_ratio` and `max_length_ratio` (see `memattn translate`). `prefix`
            (False) adds the signature `complete`. See `beam_search` and `sample`.

    Returns:
        The version's folder.

    Example: exports a model with `TextVectorization` layers, whose tokens "[start]" and "[end]"
        have the ids 2 and 3 in the target.

        searchable = Searchable(encode, embed, decoder, to_logits, start_id=2, end_id=3)
        words = (source_text.get_vocabulary(), target_text.get_vocabulary())
        export_searchable(searchable, "exported/words", *words, beam_size=5)

    Raises:
        ValueError: if the encoder reads features in place of ids, an option is unknown, of another
            kind or out of range, a vocabulary is of another kind or does not fit the model,
            `example` cannot be encoded, Keras has another backend, or another process is exporting
            to the folder. All but the last are found before anything is written.
        OSError: if the folder cannot be written.
    """
    if not isinstance(searchable, (Searchable, Seq2Seq)):
        raise ValueError(
            f"`searchable`: expected a Searchable or a Seq2Seq; got {type(searchable).__name__}."
        )
    check_backend()
    options = _options(search)
    served = _served(
        searchable, source_vocabulary, target_vocabulary, source_end_id, options.max_source_length
    )
    options.search(searchable)  # raises if they do not fit
    warmup = example or _first_token(served)
    _check_example(warmup, served)
    description = {
        **shared_fields(options, [type(searchable.cell.attention).__name__], TextForm()),
        "source_language": source_language,
        "target_language": target_language,
        "kind": _kind(source_vocabulary),
        "target_kind": _kind(target_vocabulary),
        "precision": searchable.cell.dtype_policy.name,
        "parameters": searchable.count_params(),
        "example": example,
    }
    # Servers without a GPU cannot run cuDNN.
    with new_version(Path(export_dir)) as (folder, version), without_cudnn(searchable.encoder):
        write(served, options, folder, description, warmup)
        card = searchable_card(Path(export_dir).resolve().name, version, description)
        (folder / CARD).write_text(card, encoding="utf-8")
    return Path(export_dir) / str(version)


def _options(search: dict[str, Any]) -> ExportOptions:
    known = [field.name for field in dataclasses.fields(ExportOptions)]
    if unknown := sorted(set(search) - set(known)):
        raise ValueError(
            f"`{unknown[0]}`: expected one of {', '.join(known)}; there is no such option of an "
            "export."
        )
    # JSON has no NumPy numbers.
    plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in search.items()}
    beam_size = check_int("beam_size", plain.get("beam_size", ExportOptions.beam_size))
    return ExportOptions(**{"n_best": default_n_best(beam_size), **plain})


def _served(
    searchable: Searchable | Seq2Seq,
    source_vocabulary: Any,
    target_vocabulary: Any,
    source_end_id: int | None,
    max_source_length: int | None,
) -> TextModel:
    """Checks arguments of `export_searchable` and makes the `TextModel` from them."""
    pad_id, num_source_ids = searchable.pad_id, searchable.source_vocab_size
    source_text = _in_graph("source_vocabulary", source_vocabulary, num_source_ids, [pad_id])
    # Ids that no text contains.
    special = searchable.to_ids(np.arange(END_ID + 1)).tolist()
    target_text = _in_graph("target_vocabulary", target_vocabulary, searchable.vocab_size, special)
    _check_source(searchable, source_vocabulary, source_end_id)
    _check_target_vocabulary(target_vocabulary, searchable.vocab_size, special)
    declared = searchable.source_input
    length = None if declared is None else declared.shape[1]
    limits = (max_source_length, searchable.longest_source, length)
    limit = min((limit for limit in limits if limit), default=None)
    end_id = None if source_end_id is None else int(source_end_id)
    return TextModel(searchable, source_text, target_text, end_id, limit, length)


def _in_graph(
    name: str, vocabulary: Any, num_ids: int | None, left_out: list[int]
) -> GraphVocabulary:
    """Calls `graph_vocabulary` for an argument; errors name the argument."""
    try:
        return graph_vocabulary(vocabulary, num_ids, left_out)
    except ValueError as error:
        raise ValueError(f"`{name}`: {error}.") from None


def _size(vocabulary: Any) -> int:
    size: int = vocabulary.size if isinstance(vocabulary, Vocabulary) else len(vocabulary)
    return size


def _check_source(searchable: Searchable | Seq2Seq, vocabulary: Any, end_id: int | None) -> None:
    """Raises ValueError for source ids that the model may not embed, or would take for padding."""
    most = searchable.source_vocab_size
    declared = searchable.source_input
    if declared is not None and (len(declared.shape) > 2 or (most is None and declared.shape[1])):
        sizes = ", ".join("any" if size is None else str(size) for size in declared.shape[1:])
        raise ValueError(
            "`searchable`: expected an encoder of source ids, which texts become; got one of "
            f"features, [batch, {sizes}]. `keras.export.ExportArchive` exports its searches."
        )
    if end_id is not None:
        check_int("source_end_id", end_id, 0, None if most is None else most - 1)
        if end_id == searchable.pad_id:
            raise ValueError(f"`source_end_id`: expected another id than padding, {end_id}.")
    if most is not None and vocabulary is not None and _size(vocabulary) > most:
        raise ValueError(
            f"`source_vocabulary`: expected at most {most} ids, which the model embeds; got "
            f"{_size(vocabulary)}."
        )
    if isinstance(vocabulary, Vocabulary) and searchable.pad_id != PAD_ID:
        raise ValueError(
            f"`source_vocabulary`: a Vocabulary has padding 0; the model has {searchable.pad_id}."
        )


def _check_example(example: str, served: TextModel) -> None:
    """Raises ValueError if a text cannot be encoded."""
    try:
        served.source_text.encode(tf.constant([example], tf.string))
    except (TypeError, tf.errors.InvalidArgumentError):
        raise ValueError(
            f"`example`: expected a text that the source vocabulary can encode; got {example!r}."
        ) from None


def _check_target_vocabulary(vocabulary: Any, num_ids: int, special: list[int]) -> None:
    """Raises ValueError if a vocabulary cannot decode the ids that the model writes."""
    if vocabulary is None:
        return
    size = _size(vocabulary)
    if size != num_ids:
        raise ValueError(
            f"`target_vocabulary`: expected a token for each of {num_ids} ids; got {size}."
        )
    if isinstance(vocabulary, Vocabulary) and special != [PAD_ID, START_ID, END_ID]:
        raise ValueError(
            "`target_vocabulary`: a Vocabulary has padding 0, start 1 and end 2; the model has "
            f"{', '.join(map(str, special))}."
        )


def _kind(vocabulary: Any) -> str:
    """The kind of vocabulary, for the web page and the model card."""
    if vocabulary is None:
        return "symbols"
    return vocabulary.to_dict()["kind"] if isinstance(vocabulary, Vocabulary) else "words"


def _first_token(served: TextModel) -> str:
    """The first token that a text can contain."""
    vocabulary = served.source_text
    ids = range(vocabulary.first_id, vocabulary.first_id + 3)  # padding and "" may be before it
    pieces = (vocabulary.pieces(tf.constant([i])) for i in ids if i != served.model.pad_id)
    tokens = (piece.numpy()[0].decode() for piece in pieces)
    return next(filter(None, tokens))
