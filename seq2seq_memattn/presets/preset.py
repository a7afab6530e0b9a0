"""`Preset`: options of a model and of its training, under one name."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from seq2seq_memattn.config import ModelConfig, TrainingConfig


@dataclasses.dataclass(frozen=True)
class Preset:
    """Options of a model and of its training, which `--config` selects by name.

    Args:
        model: `ModelConfig`. Vocabulary sizes and the longest source come from the data.
        training: `TrainingConfig`.
    """

    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()

    def with_options(self, options: Mapping[str, Any]) -> "Preset":
        """A copy with options replaced, in model and training if both have the option.

        Raises:
            ValueError: if neither model nor training has one of the options.
        """
        known: set[str] = set()

        def replaced(record: Any) -> Any:
            names = {field.name for field in dataclasses.fields(record)} & set(options)
            known.update(names)
            return dataclasses.replace(record, **{name: options[name] for name in names})

        model, training = replaced(self.model), replaced(self.training)
        if unknown := sorted(set(options) - known):
            raise ValueError(f"Unknown option {unknown[0]!r}.")
        return Preset(model, training)
