"""Runs on shards of text have the same trainer, positions and files as on the copy task."""

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest

from seq2seq_memattn.data.manifest import read_manifest
from seq2seq_memattn.data.model_sizes import fit_to_data
from seq2seq_memattn.data.splits import SplitData
from seq2seq_memattn.metrics import Score
from seq2seq_memattn.preparation.parallel_text import prepare
from seq2seq_memattn.runs.directory import load_run, open_run
from seq2seq_memattn.runs.translator import Translator
from seq2seq_memattn.search.options import SearchOptions
from seq2seq_memattn.text.form import TextForm
from seq2seq_memattn.training import validation
from seq2seq_memattn.training.loop import Trainer
from tests.texts import make_text_data, pairs, text_options
from tests.training.runs import MODEL, TRAINING, assert_same_runs

NUM_UPDATES = 12  # more than an epoch
STOP = 6  # the whole run also validates here


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_text_data(tmp_path_factory.mktemp("text"), 60, shard_pairs=25)


def train(data_dir: Path, run_dir: Path, num_updates: int) -> Trainer:
    training = dataclasses.replace(
        TRAINING, num_updates=num_updates, validate_every=STOP, batch_tokens=150
    )
    model = fit_to_data(MODEL, read_manifest(data_dir), data_dir)
    trainer = Trainer(run_dir, data_dir, model, training)
    trainer.run()
    return trainer


@pytest.fixture(scope="module")
def run_dir(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run."""
    run_dir = tmp_path_factory.mktemp("run") / "run"
    trainer = train(data_dir, run_dir, NUM_UPDATES)
    assert trainer.progress.position.epoch > 0
    return run_dir


@pytest.mark.slow
def test_a_run_on_shards_that_was_stopped_ends_like_one_that_was_not(
    data_dir: Path, run_dir: Path, tmp_path: Path
) -> None:
    for num_updates in (STOP, NUM_UPDATES):
        train(data_dir, tmp_path / "run", num_updates)
    assert_same_runs(tmp_path / "run", run_dir)


def test_the_vocabulary_travels_with_the_run(data_dir: Path, run_dir: Path, tmp_path: Path) -> None:
    shutil.copytree(run_dir, tmp_path / "elsewhere")
    run = load_run(tmp_path / "elsewhere")
    assert (tmp_path / "elsewhere" / "subwords.model").exists()
    line = "ba dö 日本"
    vocabulary = SplitData(data_dir, "valid", 1).source_vocabulary
    assert run.source_vocabulary.encode(line) == vocabulary.encode(line)
    ((best,),) = Translator(run, SearchOptions(2))([line], batch_size=1)
    assert isinstance(best.text, str)


def test_so_does_what_makes_tokens_of_sources_as_people_write_them(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("the (9/10) The (1/10)\n")
    options = text_options(
        tmp_path,
        pairs(60, 0),
        pairs(5, 1),
        source_language="en",
        is_tokenised=True,
        is_truecased=True,
        truecase_model=str(tmp_path / "model"),
    )
    manifest, _ = prepare(options)
    assert manifest.text_form["truecase_model"] == "source.truecase"
    data_dir, run_dir = Path(options.output_dir), tmp_path / "run"
    open_run(run_dir, data_dir, fit_to_data(MODEL, manifest, data_dir), TRAINING)
    shutil.rmtree(data_dir)
    (tmp_path / "model").unlink()
    form = TextForm.from_dict(dict(read_manifest(run_dir, check_files=False).text_form))
    assert form.as_trained(["The end."], run_dir) == ["the end ."]


def test_weights_of_another_vocabulary_are_refused_though_they_fit(
    run_dir: Path, tmp_path: Path
) -> None:
    other = make_text_data(tmp_path / "other", 61)
    model = fit_to_data(MODEL, read_manifest(other), other)
    with pytest.raises(ValueError, match="run: expected a run with the vocabularies of .*other"):
        Trainer(tmp_path / "new", other, model, TRAINING, init_from=run_dir)
    assert not (tmp_path / "new").exists()


def test_a_new_corpus_with_the_same_subwords_starts_with_the_weights(
    run_dir: Path, tmp_path: Path
) -> None:
    other = make_text_data(tmp_path / "other", 61, model_file=str(run_dir / "subwords.model"))
    model = fit_to_data(MODEL, read_manifest(other), other)
    trainer = Trainer(tmp_path / "new", other, model, TRAINING, init_from=run_dir)
    expected = load_run(run_dir).model.get_weights()
    for ours, theirs in zip(trainer.model.get_weights(), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.slow
def test_validation_scores_tokens_as_evaluate_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    valid = ["ba, ba.", "dö"], ["It's here, now.", "Yes!"]
    options = text_options(tmp_path, pairs(60, 0), valid, target_language="en")
    prepare(options)
    data_dir, scored = Path(options.output_dir), []

    def bleu(hypotheses: list[str], references: list[str]) -> Score:
        scored.append((len(hypotheses), references))
        return Score(1.0, "")

    monkeypatch.setitem(validation.VALIDATION_BLEU, "corpus", bleu)
    training = dataclasses.replace(TRAINING, num_updates=1, validate_every=1)
    model = fit_to_data(MODEL, read_manifest(data_dir), data_dir)
    Trainer(tmp_path / "run", data_dir, model, training).run()
    assert scored == [(2, ["It 's here , now .", "Yes !"])]


def test_a_run_with_the_vocabulary_of_other_data_is_refused(run_dir: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run_dir, tmp_path / "run")
    other = make_text_data(tmp_path / "other", 61)
    shutil.copy(other / "subwords.model", copy / "subwords.model")
    with pytest.raises(ValueError, match=r"subwords\.model: not the vocabulary that"):
        load_run(copy)
