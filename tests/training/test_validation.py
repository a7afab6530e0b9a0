"""What a validation logs beside BLEU and loss."""

import dataclasses
from pathlib import Path

import pytest

from seq2seq_memattn.data.batching import make_batch
from seq2seq_memattn.layers.teacher_forcing import Asked
from seq2seq_memattn.runs.slot_use import slot_use
from seq2seq_memattn.training.loop import Trainer
from tests.tolerances import as_array
from tests.training.runs import MODEL, TRAINING, metrics


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
