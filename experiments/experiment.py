"""What a file in `configs/` holds: a model, how it is trained, on which data, what is expected."""

import dataclasses
import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any

from experiments import configs
from seq2seq_memattn.config import ModelConfig, TrainingConfig


@dataclasses.dataclass(frozen=True)
class Experiment:
    """One row of a table, or one curve of a figure.

    Args:
        model: `ModelConfig`. Vocabulary sizes and the longest source come from the data.
        training: `TrainingConfig` as the paper has it.
        paper: dict of the paper's figures for this row, such as `bleu` and `seconds`.
        max_length: int. L of the copy task; 0 for text.
    """

    model: ModelConfig
    training: TrainingConfig
    paper: dict[str, float]
    max_length: int = 0

    def with_options(self, options: Mapping[str, Any]) -> "Experiment":
        """The same with options replaced: as flags, in model and training if both have the name.

        Raises:
            ValueError: for a name that neither has.
        """
        known: set[str] = set()

        def replaced(record: Any) -> Any:
            names = {field.name for field in dataclasses.fields(record)} & set(options)
            known.update(names)
            return dataclasses.replace(record, **{name: options[name] for name in names})

        model, training = replaced(self.model), replaced(self.training)
        if unknown := sorted(set(options) - known):
            raise ValueError(f"Unknown option {unknown[0]!r}.")
        return dataclasses.replace(self, model=model, training=training)


def experiment_names() -> list[str]:
    """The names that `--config` takes."""
    return sorted(module.name for module in pkgutil.iter_modules(configs.__path__))


def load_experiment(name: str) -> Experiment:
    """The experiment of `configs/NAME.py`.

    Raises:
        ValueError: if there is no such file; names those that are near.
    """
    if name not in experiment_names():
        family = name.split("_")[0]
        near = [known for known in experiment_names() if known.startswith(family)]
        raise ValueError(
            f"--config: no experiment {name!r}; there are {', '.join(near or experiment_names())}"
        )
    return importlib.import_module(f"experiments.configs.{name}").EXPERIMENT
