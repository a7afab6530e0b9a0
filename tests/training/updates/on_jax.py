"""Runs a program on JAX, without TensorFlow in the process, with a model's weights."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from seq2seq_memattn.config import ModelConfig, TrainingConfig
from tests.running import run_python
from tests.training.updates.test_tensorflow_update import BATCH

SETUP = """
import os
import sys

sys.modules["tensorflow"] = None  # importing it fails from here on
os.environ["KERAS_BACKEND"] = "jax"

import json

import numpy as np

from seq2seq_memattn.config import ModelConfig, TrainingConfig
from seq2seq_memattn.training.make import make_parts

folder = sys.argv[1]
with open(f"{folder}/given.json") as stream:
    given = json.load(stream)
model_config = ModelConfig.from_dict(given["model"])
model, optimizer, updater = make_parts(model_config, TrainingConfig.from_dict(given["training"]))
weights = np.load(f"{folder}/weights.npz")
for variable in model.trainable_variables:
    variable.assign(weights[variable.path])
batch = {name: np.array(ids, np.int32) for name, ids in given["batch"].items()}
"""


def run_on_jax(
    program: str, folder: Path, model: Any, model_config: ModelConfig, training: TrainingConfig
) -> None:
    """Runs a program that finds `folder`, `model`, `optimizer`, `updater` and `batch` defined.

    Args:
        program: the program; it writes its results into `folder`.
        folder: Path.
        model: a model of TensorFlow, whose weights it begins with.
        model_config, training: the configurations.
    """
    weights: dict[str, Any] = {v.path: v.numpy() for v in model.trainable_variables}
    np.savez(folder / "weights.npz", **weights)
    given = {"model": model_config.to_dict(), "training": training.to_dict(), "batch": BATCH}
    (folder / "given.json").write_text(json.dumps(given))
    done = run_python("-c", SETUP + program, str(folder))
    assert done.returncode == 0, done.stderr.decode()[-3000:]
