import dataclasses
from pathlib import Path

import numpy as np
import pytest

from seq2seq_memattn.data.batching import make_batch
from seq2seq_memattn.layers.teacher_forcing import Asked
from seq2seq_memattn.runs.slot_use import slot_use
from seq2seq_memattn.training.loop import Trainer
from tests.errors import refused
from tests.tolerances import as_array
from tests.training.runs import MODEL, TRAINING, make_data, metrics


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("slots") / "data")


def test_one_slot_for_all_steps_has_a_perplexity_of_1_and_leaves_the_others_dead() -> None:
    scores = np.eye(5)[[2, 2, 2]]
    assert slot_use([scores, scores]) == {
        "slots": 5,
        "dead": 4,
        "corpus": pytest.approx(1.0),
        "sentence": pytest.approx(1.0),
        "step": pytest.approx(1.0),
    }


def test_each_perplexity_counts_what_it_says() -> None:
    # Each step reads one slot, each target two, and all targets four of five.
    found = slot_use([np.eye(5)[[0, 1]], np.eye(5)[[2, 3, 2, 3]]])
    counts = (found["dead"], found["sentence"], found["step"])
    assert counts == (1, pytest.approx(2.0), pytest.approx(1.0))
    shares = np.array([1, 1, 2, 2]) / 6
    assert found["corpus"] == pytest.approx(np.exp(-(shares * np.log(shares)).sum()))


def test_scores_of_sigmoids_are_shares_of_their_sum() -> None:
    even = np.full([3, 4], 0.9)
    assert slot_use([even, even[:0]])["step"] == pytest.approx(4.0)


def test_no_steps_are_refused() -> None:
    expected = "`scores`: expected the scores of at least one step; got none."
    assert refused(slot_use, [np.zeros([0, 4])]) == expected


@pytest.mark.parametrize("attention", ["k_memory:4", "bahdanau"])
def test_a_validation_logs_the_use_along_its_references(
    attention: str, data_dir: Path, tmp_path: Path
) -> None:
    model_config = dataclasses.replace(MODEL, attention=attention)
    training = dataclasses.replace(TRAINING, num_updates=4, validate_every=2)
    trainer = Trainer(tmp_path / "run", data_dir, model_config, training)
    trainer.run()
    lines = [line for line in metrics(tmp_path / "run") if line["kind"] == "valid"]
    logged = [{n: x for n, x in line.items() if n.startswith("slots_")} for line in lines]
    if attention == "bahdanau":
        assert logged == [{}, {}]
        return
    assert logged[0] != logged[1]
    model, valid = trainer.model, trainer.valid
    scores = []
    for i in range(training.valid_examples):
        pair = make_batch([valid.source[i]], [valid.target[i]])
        scores.append(as_array(model(pair, asked=Asked(scores=True))[1].scores)[0])
    expected = slot_use(scores)
    assert logged[1] == {
        f"slots_{name}": pytest.approx(value, rel=1e-5)
        for name, value in expected.items()
        if name != "slots"
    }
