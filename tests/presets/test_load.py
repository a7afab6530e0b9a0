import fnmatch
import json
from pathlib import Path

import pytest

from seq2seq_memattn.config import ModelConfig, TrainingConfig
from seq2seq_memattn.presets.load import FAMILIES, PRESETS, load_preset

TOML = """
base = "multi30k_en_de_k32"

[model]
encoder_units = 500
attention = "bahdanau"

[training]
learning_rate = 1
"""


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_preset_is_found_by_its_name() -> None:
    preset = load_preset("wmt17_en_de_k64_pe")
    assert preset.model.attention == "k_memory:64"
    assert preset.model.position_encoding == "mean_one"
    assert preset.training.num_updates == 1_000_000


def test_each_preset_is_of_one_family() -> None:
    for name in PRESETS:
        assert sum(fnmatch.fnmatch(name, family) for family in FAMILIES) == 1
    assert all(fnmatch.filter(PRESETS, family) for family in FAMILIES)


def test_a_file_changes_the_preset_that_it_names(tmp_path: Path) -> None:
    preset = load_preset(write(tmp_path / "mine.toml", TOML))
    base = PRESETS["multi30k_en_de_k32"]
    assert preset == base.with_options(
        {"encoder_units": 500, "attention": "bahdanau", "learning_rate": 1}
    )
    assert preset.model.decoder_units == base.model.decoder_units != ModelConfig().decoder_units


def test_what_a_file_leaves_out_has_its_default(tmp_path: Path) -> None:
    preset = load_preset(write(tmp_path / "mine.toml", "[training]\nbatch_size = 7"))
    assert preset.model == ModelConfig()
    assert preset.training == TrainingConfig(batch_size=7)


def test_the_configuration_of_a_run_is_taken(tmp_path: Path) -> None:
    preset = PRESETS["flexible_de_en_local"]
    run = {
        "model": preset.model.to_dict(),
        "training": preset.training.to_dict(),
        "data": "somewhere",
        "versions": {},
    }
    assert load_preset(write(tmp_path / "config.json", json.dumps(run))) == preset
    run["model"]["slot_spread"] = 2.0  # without effect, but earlier versions accepted it
    assert load_preset(write(tmp_path / "config.json", json.dumps(run))) == preset
    del run["versions"]  # so it is no run's
    with pytest.raises(ValueError, match="config.json: `slot_spread`"):
        load_preset(write(tmp_path / "config.json", json.dumps(run)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("base = 'multi30k'", "base: expected the name of a preset, got 'multi30k'"),
        ("base = [1]", "base: expected the name of a preset, got [1]"),
        ("[modell]", "expected base and the tables model, training; got 'modell'"),
        ("model = 3", "model: expected a table of options, got 3"),
        ("[model]\nunits = 3", "Unknown option 'units' for ModelConfig"),
        ("[model]\ndecoder_units = 'x'", "`decoder_units` must be int; got 'x'"),
        ("[model]\ndecoder_units = 0", "`decoder_units` must be positive; got 0"),
        ("[model]\nattention = 'x'", "`attention` must be one of none, "),
        ("[training]\njit_compile = 1", "`jit_compile` must be bool; got 1"),
        ("[model", "expected TOML"),
    ],
)
def test_a_file_that_says_something_else_is_named_in_the_error(
    text: str, message: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "mine.toml", text)
    with pytest.raises(ValueError) as error:
        load_preset(path)
    assert message in str(error.value) and str(error.value).startswith(path)


def test_a_file_in_another_encoding_is_named_in_the_error(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes("base = 'caf\xe9'".encode("latin-1"))
    with pytest.raises(ValueError, match="mine.toml: expected TOML; 'utf-8' codec"):
        load_preset(str(path))


def test_an_unknown_name_gives_those_that_are_near() -> None:
    with pytest.raises(ValueError, match="expected a preset, or a .toml") as error:
        load_preset("copy_30_k4")
    assert "copy_20_k4" in str(error.value) and "wmt17" not in str(error.value)


def test_a_file_that_is_not_there_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="absent.toml"):
        load_preset(str(tmp_path / "absent.toml"))
