"""Several runs that decode together."""

import dataclasses
import operator
from collections.abc import Sequence

from seq2seq_memattn.runs.directory import Run
from seq2seq_memattn.search.ensemble import Ensemble
from seq2seq_memattn.vocabulary import have_same_ids

SHARED = ("source_vocabulary", "target_vocabulary", "text_form")


def ensemble_of(runs: Sequence[Run], mean: str = "probabilities") -> Run:
    """The runs as one, whose model is an `Ensemble`.

    Args:
        runs: two or more, trained on data with the same vocabularies and the same form of text.
        mean: see `Ensemble`.

    Returns:
        `Run`, with the directory of the first and the updates of all.

    Raises:
        ValueError: if the vocabularies or the forms of text differ.
    """
    first, *others = runs
    for other in others:
        for name in SHARED:
            same = operator.eq if name == "text_form" else have_same_ids
            if not same(*(getattr(run, name).to_dict() for run in (first, other))):
                raise ValueError(
                    f"{other.directory}: expected the {name.replace('_', ' ')} of "
                    f"{first.directory}; it has another one"
                )
    return dataclasses.replace(
        first,
        model=Ensemble([run.model for run in runs], mean),
        update=[run.update for run in runs],
        problems=[problem for run in runs for problem in run.problems],
    )
