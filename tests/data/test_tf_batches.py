"""TensorFlow's batches equal NumPy's bit for bit."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from seq2seq_memattn.config import ModelConfig
from seq2seq_memattn.data.batching import FIRST_BATCH, Position
from seq2seq_memattn.data.groups import Group, make_group, numpy_batch
from seq2seq_memattn.data.pairs import TokenPairs
from seq2seq_memattn.data.splits import SplitData
from seq2seq_memattn.data.tf_batches import batches_of
from seq2seq_memattn.losses import TokenCrossEntropy
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.vocabulary import END_ID
from tests.data.directories import make_directory, open_lines
from tests.data.test_groups import assert_same
from tests.texts import make_text_data
from tests.training.runs import MODEL, make_data

OPTIONS: dict[str, dict[str, Any]] = {
    "longest": {},
    "sorted": {"shuffle": False},
    "filled": {"pad_to_multiple": 4},
    "by tokens": {"batch_tokens": 60, "pad_to_multiple": 3},
}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_text_data(tmp_path_factory.mktemp("text"), 290, shard_pairs=45)


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("copies") / "data")


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("position", [FIRST_BATCH, Position(1, 2)], ids=str)
@pytest.mark.parametrize("kind", ["text", "copies"])
def test_batches_are_those_of_numpy(
    kind: str, position: Position, options: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    given = {"bucket_width": 4, "seed": 3, "group_pairs": 100} | options
    data = SplitData(request.getfixturevalue(kind), "train", 7, **given)
    expected = [batch for batch, _ in data.numpy_batches(position, num_epochs=2)]
    batches = list(data.tf_dataset(position, num_epochs=2).as_numpy_iterator())
    assert len(batches) == len(expected) > 3
    for batch, other in zip(batches, expected, strict=True):
        assert_same(batch, other)


def test_ids_may_be_large() -> None:
    tokens = np.array([70_000, END_ID, 80_000, 90_000, END_ID], np.int32)
    group = make_group(TokenPairs(tokens), [np.array([0])])
    (batch,) = batches_of(lambda: iter([group]), tokens.dtype).as_numpy_iterator()
    assert_same(batch, numpy_batch(group, 0))


def test_a_batch_has_any_number_of_rows_and_any_widths(tmp_path: Path) -> None:
    spec = open_lines(make_directory(tmp_path)).tf_dataset().element_spec
    assert spec == {
        name: tf.TensorSpec([None, None], tf.int32)
        for name in ("source", "target_inputs", "target_outputs")
    }


def test_an_endless_dataset_can_be_cut_anywhere(tmp_path: Path) -> None:
    data = open_lines(make_directory(tmp_path), bucket_width=4)
    count = 2 * data.num_batches + 1
    batches = list(data.tf_dataset().take(count).as_numpy_iterator())
    for batch, (other, _) in zip(
        batches, itertools.islice(data.numpy_batches(), count), strict=True
    ):
        assert_same(batch, other)


def test_python_is_called_once_a_group(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Position] = []
    group = SplitData._group

    def counted(data: SplitData, position: Position) -> Group:
        made.append(position)
        return group(data, position)

    monkeypatch.setattr(SplitData, "_group", counted)
    data = SplitData(text, "train", 4, group_pairs=100)
    num_batches = len(list(data.tf_dataset(num_epochs=1)))
    assert made == [Position(number, 0) for number in range(3)]
    assert num_batches > 70


def test_the_end_of_an_iteration_waits_for_no_tuner(tmp_path: Path) -> None:
    dataset = open_lines(make_directory(tmp_path)).tf_dataset()
    assert dataset.options().autotune.enabled is False


def test_a_damaged_shard_is_named_as_numpy_names_it(tmp_path: Path) -> None:
    directory = make_text_data(tmp_path, 290, shard_pairs=45)
    data = SplitData(directory, "train", 8, group_pairs=100)
    path = directory / "train-00000.npy"
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"^{path}: changed since it was prepared") as raised:
        for _ in itertools.islice(data.tf_batches(FIRST_BATCH), 1000):
            pass
    assert raised.value.__cause__ is None


class Seen(keras.callbacks.Callback):
    """Records the loss of each update."""

    def __init__(self) -> None:
        super().__init__()
        self.losses: list[float] = []

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.model.reset_metrics()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.losses.append(logs["loss"])


def compiled(learning_rate: float) -> Seq2Seq:
    keras.utils.set_random_seed(1)
    model = Seq2Seq(ModelConfig(**{**MODEL.to_dict(), "dropout": 0.0}))
    model.compile(keras.optimizers.Adam(learning_rate), TokenCrossEntropy())
    return model


def losses_by_hand(data: SplitData, model: Seq2Seq, num_epochs: int) -> Iterator[float]:
    for batch, _ in data.numpy_batches(num_epochs=num_epochs):
        yield float(TokenCrossEntropy()(batch["target_outputs"], model(batch)))


@pytest.mark.slow
def test_fit_takes_the_dataset_epoch_by_epoch(copies: Path) -> None:
    data = SplitData(copies, "train", 7, bucket_width=4, seed=3)
    model, seen = compiled(0.0), Seen()
    model.fit(
        data.fit_dataset(),
        steps_per_epoch=data.num_batches,
        epochs=2,
        shuffle=False,
        verbose=0,
        callbacks=[seen],
    )
    expected = list(losses_by_hand(data, model, num_epochs=2))
    np.testing.assert_allclose(seen.losses, expected, rtol=1e-5)


@pytest.mark.slow
def test_fit_learns_from_the_dataset(copies: Path) -> None:
    data = SplitData(copies, "train", 7, bucket_width=4)
    valid = SplitData(copies, "valid", 9, shuffle=False)
    history = compiled(0.03).fit(
        data.fit_dataset(),
        steps_per_epoch=data.num_batches,
        epochs=6,
        shuffle=False,
        validation_data=valid.fit_dataset(num_epochs=1),
        verbose=0,
    )
    assert history.history["loss"][-1] < 0.9 * history.history["loss"][0]
    assert history.history["val_loss"][-1] < history.history["val_loss"][0]
