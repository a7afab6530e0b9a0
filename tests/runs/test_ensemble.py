"""Runs that decode together must read and write the same text."""

import dataclasses
from pathlib import Path

import pytest

from seq2seq_memattn.runs.directory import Run, load_run
from seq2seq_memattn.runs.ensemble import ensemble_of
from seq2seq_memattn.text.form import TextForm
from seq2seq_memattn.vocabulary.symbols import SymbolVocabulary
from tests.errors import refused

FORM = TextForm("en", "de", is_tokenised=True, is_truecased=True, truecase_model="source.truecase")


@pytest.fixture(scope="module")
def run(finished: tuple[Path, object]) -> Run:
    return load_run(finished[0])


def with_truecase_model(run: Run, directory: Path, name: str, content: str) -> Run:
    directory.mkdir()
    (directory / name).write_text(content)
    form = dataclasses.replace(FORM, truecase_model=name)
    return dataclasses.replace(run, directory=directory, text_form=form)


def test_the_models_of_all_runs_are_together(run: Run, tmp_path: Path) -> None:
    other = dataclasses.replace(run, model=run.model.__class__(run.model.config))
    averaged = dataclasses.replace(run, record={**run.record, "averaged": [1, 2]})
    found = ensemble_of([averaged, other], "log_probabilities")
    both = found.model
    assert (both.models, both.mean) == ([run.model, other.model], "log_probabilities")
    assert "averaged" not in found.record  # which would be of the first run alone


@pytest.mark.parametrize("side", ["source", "target"])
def test_runs_with_other_vocabularies_do_not_decode_together(
    side: str, run: Run, tmp_path: Path
) -> None:
    vocabulary = SymbolVocabulary(["x", "y"])
    other = dataclasses.replace(
        run, directory=tmp_path / "other", **{f"{side}_vocabulary": vocabulary}
    )
    assert refused(ensemble_of, [run, other]) == (
        f"{other.directory}: expected the {side} vocabulary of {run.directory}; it has another one"
    )


def test_truecase_models_are_the_same_if_their_content_is(run: Run, tmp_path: Path) -> None:
    first = with_truecase_model(run, tmp_path / "first", "source.truecase", "The (9/9)\n")
    renamed = with_truecase_model(run, tmp_path / "renamed", "model.truecase", "The (9/9)\n")
    assert ensemble_of([first, renamed]).update == [run.update] * 2
    other = with_truecase_model(run, tmp_path / "other", "source.truecase", "the (9/9)\n")
    assert refused(ensemble_of, [first, other]) == (
        f"{other.directory}: expected the text form of {first.directory}; it has another one"
    )
