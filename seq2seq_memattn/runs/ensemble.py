"""Several runs that decode together."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from seq2seq_memattn.runs.directory import Run
from seq2seq_memattn.search.ensemble import Ensemble
from seq2seq_memattn.vocabulary import have_same_ids

SHARED = ("source_vocabulary", "target_vocabulary", "text_form")


def ensemble_of(runs: Sequence[Run], mean: str = "probabilities") -> Run:
    """Combines runs into one `Run` whose model is an `Ensemble`.

    Args:
        runs: two or more, trained on data with the same vocabularies and the same `TextForm`.
        mean: see `Ensemble`.

    Returns:
        `Run`, with the directory of the first run and the update counts of all runs.

    Raises:
        ValueError: if the vocabularies or the forms of text differ.
    """
    first, *others = runs
    for other in others:
        for name in SHARED:
            if not _have_same(name, first, other):
                raise ValueError(
                    f"{other.directory}: expected the {name.replace('_', ' ')} of "
                    f"{first.directory}; it has another one"
                )
    return dataclasses.replace(
        first,
        model=Ensemble([run.model for run in runs], mean),
        update=[run.update for run in runs],
        record={},
        problems=[problem for run in runs for problem in run.problems],
    )


def _have_same(name: str, first: Run, other: Run) -> bool:
    parts: list[dict[str, Any]] = [getattr(run, name).to_dict() for run in (first, other)]
    if name != "text_form":
        return have_same_ids(*parts)
    models = [run.text_form.truecase_model for run in (first, other)]
    if all(models):
        paths = (run.directory / model for run, model in zip((first, other), models, strict=True))
        if len({path.read_bytes() for path in paths}) > 1:
            return False
        parts = [{**part, "truecase_model": ""} for part in parts]
    return parts[0] == parts[1]
