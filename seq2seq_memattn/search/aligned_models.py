"""Checks that a model has the alignments that some search options need."""

from typing import Any

from seq2seq_memattn.compute.ids import has_ids
from seq2seq_memattn.search.ensemble import members
from seq2seq_memattn.search.prepare import OURS
from seq2seq_memattn.search.protocol import AlignedModel
from seq2seq_memattn.search.searchable import Searchable


def check_aligned(option: str, model: Any) -> None:
    """Raises ValueError if a model cannot give the alignments that an option needs."""
    if isinstance(model, AlignedModel):
        return
    methods = ("alignment", "positions_scored")
    missing = ", ".join(f"`{name}`" for name in methods if not hasattr(model, name))
    raise ValueError(
        f"`{option}`: expected a model with methods `alignment(scores, memory)` and "
        f"`positions_scored(scores, memory)`; got {type(model).__name__}, which lacks {missing}."
    )


def check_coverage(model: Any, source: Any = None) -> None:
    """Raises ValueError if a coverage penalty cannot use the alignments of a model.

    Args:
        model: the model.
        source: checked sources; None if they are known to be ids.
    """
    if source is not None and not has_ids(source):
        raise ValueError("`coverage_penalty`: expected sources of ids; got features.")
    if not isinstance(model, OURS):
        check_aligned("coverage_penalty", model)
        return
    for member in members(model):
        attention = member.cell.attention
        if not attention.has_shares:
            raise ValueError(
                "`coverage_penalty`: expected an attention whose alignments are shares of the "
                "source, non-negative with a sum of at most 1; with its options, "
                f"{type(attention).__name__} has none."
            )
        if isinstance(member, Searchable) and not member.has_output_per_id:
            raise ValueError(
                "`coverage_penalty`: expected an encoder with one output for each source id."
            )
