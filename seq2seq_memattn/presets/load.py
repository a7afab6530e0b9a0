"""What `--config` takes: a preset's name, a TOML file, or a run's config.json."""

import json
import tomllib
from pathlib import Path
from typing import Any

from seq2seq_memattn.attention.registry import checked
from seq2seq_memattn.config import ModelConfig, TrainingConfig, used_options
from seq2seq_memattn.presets import copy_task, flexible, small_text, wmt17
from seq2seq_memattn.presets.preset import Preset

PRESETS = {
    **copy_task.PRESETS,
    **wmt17.PRESETS,
    **small_text.PRESETS,
    **flexible.PRESETS,
}
# The families of presets, for help texts.
FAMILIES = ("copy_*", "wmt17_*", "multi30k_en_de_*", "wmt_news_en_de_*", "flexible_*")
BASE = "base"  # key in a file: the preset that the file's options change
TABLES = {"model": ModelConfig, "training": TrainingConfig}


def load_preset(name_or_file: str) -> Preset:
    """Loads a preset by its name, or from a file.

    A file is TOML with the tables `model` and `training`, whose keys are fields of `ModelConfig`
    and `TrainingConfig`. Options that the file leaves out are as in the preset that its key `base`
    names, or have their defaults. A run's config.json has the same tables.

    Raises:
        ValueError: if the name is unknown, or the file has invalid syntax, unknown keys or invalid
            values.
    """
    if name_or_file in PRESETS:
        return PRESETS[name_or_file]
    path = Path(name_or_file)
    if path.suffix not in (".toml", ".json"):
        family = name_or_file.partition("_")[0]
        near = sorted(name for name in PRESETS if name.startswith(family)) or sorted(PRESETS)
        raise ValueError(
            f"--config: expected a preset, or a .toml or .json file; got {name_or_file!r}; presets "
            f"are {', '.join(near)}"
        )
    content = _read(path)
    base = content.get(BASE, "")
    if not isinstance(base, str) or (base and base not in PRESETS):
        raise ValueError(f"{path}: {BASE}: expected the name of a preset, got {base!r}")
    preset = PRESETS[base] if base else Preset()
    if path.suffix == ".toml" and (unknown := sorted(set(content) - {BASE, *TABLES})):
        raise ValueError(
            f"{path}: expected {BASE} and the tables {', '.join(TABLES)}; got {unknown[0]!r}"
        )
    try:
        options = _table(content, "model")
        if "versions" in content:  # of a run, which an earlier version may have made
            options = used_options(options)
        model = ModelConfig.from_dict({**preset.model.to_dict(), **options})
        checked(model.attention)
        training = {**preset.training.to_dict(), **_table(content, "training")}
        return Preset(model, TrainingConfig.from_dict(training))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _table(content: dict[str, Any], name: str) -> dict[str, Any]:
    table = content.get(name, {})
    if not isinstance(table, dict):
        raise ValueError(f"{name}: expected a table of options, got {table!r}")
    return table


def _read(path: Path) -> dict[str, Any]:
    kind, read = ("JSON", json.loads) if path.suffix == ".json" else ("TOML", tomllib.loads)
    try:
        content = read(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: expected {kind}; {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected tables of options, got {type(content).__name__}")
    return content
