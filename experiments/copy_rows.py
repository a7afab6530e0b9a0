"""Table 1: the rows, and the model and training that they share."""

import dataclasses
from typing import Any

from experiments.experiment import Experiment
from seq2seq_memattn.config import ModelConfig, TrainingConfig

LENGTHS = (20, 50, 100, 200)
ATTENTIONS = (
    "none",
    "k_memory:1",
    "k_memory:4",
    "k_memory:16",
    "k_memory:32",
    "k_memory:64",
    "bahdanau",
)

# Two CPU cores cannot take 200,000 steps. With ten times the learning rate and Glorot's
# initialisation rows are learned in a few thousand. The rate is halved whenever a validation is no
# better than the best: at a constant one, rows that have learned rise and fall by several BLEU. No
# dropout: the task has no noise to be robust against.
SMALL: dict[str, Any] = {
    "learning_rate": 1e-3,
    "schedule": "plateau",
    "decay_patience": 1,
    "initializer": "glorot",
    "dropout": 0.0,
    "num_updates": 6000,
    "validate_every": 250,
    "patience": 8,
    "stop_at_bleu": 99.9,
    "checkpoint_minutes": 5.0,
}

# Longer sequences are learned later, and validated half as often. Their updates are what a GPU
# takes in 20 minutes, all rows side by side.
SMALL_LONG: dict[int, dict[str, Any]] = {
    100: {"validate_every": 500, "num_updates": 5000},
    200: {"validate_every": 500, "num_updates": 4000},
}


def short_name(attention: str) -> str:
    """An attention's name in names of files: k32 for k_memory:32."""
    return attention.replace("k_memory:", "k")


def label(attention: str) -> str:
    """What the paper's tables call an attention."""
    if attention.startswith("k_memory:"):
        return f"K={attention.partition(':')[2]}"
    return {"none": "No Att", "bahdanau": "Att"}.get(attention, attention)


def copy_row(attention: str, max_length: int, bleu: float, seconds: float) -> Experiment:
    """A row of Table 1 as the paper trains it: Adam 1e-4, 200,000 steps, dropout 0.2.

    Args:
        attention: name of the attention.
        max_length: int. L of the table.
        bleu, seconds: the paper's figures.
    """
    return Experiment(
        model=ModelConfig(attention=attention),
        training=TrainingConfig(),
        max_length=max_length,
        paper={"bleu": bleu, "seconds": seconds},
    )


def small(experiment: Experiment) -> Experiment:
    """The same row for two CPU cores or one GPU: the same architecture, other training."""
    return experiment.with_options({**SMALL, **SMALL_LONG.get(experiment.max_length, {})})


def tiny(experiment: Experiment) -> Experiment:
    """The same row in seconds: a few updates of a narrow model, to see that all of it runs."""
    narrow: dict[str, Any] = {
        "embedding_dim": 16,
        "encoder_units": 16,
        "decoder_units": 16,
        "attention_units": 16,
        "initializer": "glorot",  # so narrow, uniform 0.04 leaves gradients that vanish
    }
    brief: dict[str, Any] = {
        "batch_size": 16,
        "num_updates": 4,
        "validate_every": 2,
        "valid_examples": 8,
        "beam_size": 2,
        "log_every": 1,
        "learning_rate": 1e-2,
    }
    return dataclasses.replace(
        experiment,
        model=dataclasses.replace(experiment.model, **narrow),
        training=dataclasses.replace(experiment.training, **brief),
        max_length=6,
    )
