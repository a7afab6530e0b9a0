"""Prepares models for search."""

from typing import Any

import keras

from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.search.ensemble import Ensemble, PreparedEnsemble, members
from seq2seq_memattn.search.folding import fold, folding_pays
from seq2seq_memattn.search.prepared import PreparedModel, make_weights
from seq2seq_memattn.search.protocol import Preparable, SearchedModel
from seq2seq_memattn.search.searchable import Searchable
from seq2seq_memattn.vocabulary import PAD_ID

Prepared = PreparedModel | PreparedEnsemble
OURS = (Seq2Seq, Searchable, Ensemble)  # what can be prepared


def prepare(model: Any, num_queries: int) -> SearchedModel:
    """Prepares one of our own models; any other model that has `start` and `step` stays as it is.

    Args:
        model: the model.
        num_queries: int. Hypotheses of each source.

    Raises:
        ValueError: if the model is neither.
    """
    if isinstance(model, OURS):
        return prepared(model, folds_rows(model, num_queries))
    if isinstance(model, SearchedModel):
        return model
    hint = " Make a `Searchable` of it." if isinstance(model, keras.Model) else ""
    raise ValueError(
        "`model`: expected a `Seq2Seq`, a `Searchable`, an `Ensemble`, or methods "
        "`start(source, num_queries)` and `step(tokens, memory, state)`; got "
        f"{type(model).__name__}.{hint}"
    )


def prepared(model: Preparable | Ensemble, folded: Any = True, weights: Any = None) -> Prepared:
    """Makes a `PreparedModel` or a `PreparedEnsemble`.

    Args:
        model: `Seq2Seq`, `Searchable` or `Ensemble`.
        folded: see `PreparedModel`; for an ensemble a tuple, or one bool for all its models.
        weights: from `prepared_weights` with the same `folded`, or None.
    """
    if not isinstance(model, Ensemble):
        return PreparedModel(model, folded, weights)
    weights = [None] * len(model.models) if weights is None else weights
    parts = zip(model.models, _of_each(model, folded), weights, strict=True)
    return PreparedEnsemble(model, [PreparedModel(*part) for part in parts])


def prepared_weights(model: Preparable | Ensemble, folded: Any = True) -> Any:
    """The `PreparedWeights` of a model, or a tuple of them for the models of an ensemble.

    Args:
        model, folded: see `prepared`.
    """
    if not isinstance(model, Ensemble):
        return make_weights(model, folded)
    parts = zip(model.models, _of_each(model, folded), strict=True)
    return tuple(make_weights(*part) for part in parts)


def folds_rows(model: Preparable | Ensemble, num_queries: int) -> Any:
    """Whether search with a model folds the maps of the context; see `folding_pays`.

    Returns:
        bool; for an ensemble a tuple.
    """
    if isinstance(model, Ensemble):
        return tuple(folds_rows(one, num_queries) for one in model.models)
    folds = fold(model.cell)
    return folds is not None and folding_pays(folds, model.cell.attention.num_rows, num_queries)


def has_fixed_memory(model: Preparable | Ensemble) -> bool:
    """Whether the memory that a step reads has the same size for every source."""
    return all(one.cell.attention.num_rows is not None for one in members(model))


def pad_id(model: SearchedModel) -> int:
    """The id of padding in sources, for a model from `prepare`."""
    return model.model.pad_id if isinstance(model, Prepared) else PAD_ID


def to_ids(model: SearchedModel, tokens: Any) -> Any:
    """The model's ids for search's tokens, for a model from `prepare`."""
    return model.model.to_ids(tokens) if isinstance(model, Prepared) else tokens


def _of_each(model: Ensemble, folded: Any) -> tuple[bool, ...]:
    return folded if isinstance(folded, tuple) else (folded,) * len(model.models)
