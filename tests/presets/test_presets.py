"""Presets match their names and the papers."""

import dataclasses

import pytest

from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.presets import copy_task, flexible, wmt17
from seq2seq_memattn.presets.load import load_preset
from seq2seq_memattn.training.updates.schedule import learning_rate


@pytest.mark.parametrize("name", copy_task.PRESETS)
def test_a_preset_of_table_1_is_the_row_that_its_name_says(name: str) -> None:
    preset, (_, _, attention) = load_preset(name), name.split("_")
    assert preset.model.attention == attention.replace("k", "k_memory:", attention[0] == "k")
    assert preset.model.dropout == 0.2
    assert preset.training.learning_rate == 1e-4
    assert preset.training.num_updates == 200_000


@pytest.mark.parametrize("name", wmt17.PRESETS)
def test_a_preset_of_table_2_is_the_row_that_its_name_says(name: str) -> None:
    _, first, second, row = name.split("_", 3)
    preset = load_preset(name)
    model = preset.model
    assert (first, second) in [("en", language) for language in ("cs", "de", "fi", "tr")]
    assert model.embedding_dim == model.encoder_units == model.decoder_units == 512
    assert preset.training.num_updates == 1_000_000
    assert preset.training.checkpoint_minutes == 30.0
    attention = row.removesuffix("_pe").replace("k", "k_memory:", row.startswith("k"))
    assert model.attention == attention
    assert (model.position_encoding != "none") == row.endswith("_pe")


@pytest.mark.parametrize("name", flexible.PRESETS)
def test_rates_of_flexible_attention_are_halved_when_the_paper_says(name: str) -> None:
    training = load_preset(name).training
    epochs, full = (20, 17) if "characters" in name else (6, 3)
    per_epoch = training.num_updates // epochs
    assert training.num_updates == epochs * per_epoch
    for epoch in range(epochs):
        expected = 1e-4 * 0.5 ** max(0, epoch + 1 - full)
        for update in (epoch * per_epoch, (epoch + 1) * per_epoch - 1):
            assert learning_rate(training, update) == pytest.approx(expected)


@pytest.mark.parametrize("name", flexible.PRESETS)
def test_presets_of_flexible_attention_are_the_models_of_its_paper(name: str) -> None:
    config = load_preset(name).model
    model = Seq2Seq(
        dataclasses.replace(
            config,
            embedding_dim=5,
            attention_units=4,
            mixing_units=7,
            half_window=2,
            encoder_units=3,
            decoder_units=6,
        )
    )
    assert config.mixing_units == 600
    units = 500 if "characters" in name else 1000
    assert (config.encoder_units, config.decoder_units) == (units, units)
    assert tuple(model.bridge.dense.kernel.shape) == (3, 6)
    # The cell reads the embedding and the context of this step; mixing reads only the output.
    assert model.cell.cells[0].kernel.shape[0] == 5 + 6
    assert tuple(model.cell.mixing.kernel.shape) == (6, 7)
    assert model.cell.read == "before"


def test_there_are_eight_presets_of_flexible_attention_and_an_unknown_one_names_the_others() -> (
    None
):
    assert len(flexible.PRESETS) == 8
    with pytest.raises(ValueError, match=r"got 'copy_20_k5'; presets are .*copy_20_k4"):
        load_preset("copy_20_k5")
