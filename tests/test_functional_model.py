"""A user's functional model is trained, saved, loaded and searched on both backends."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.functional_program import run_program
from tests.running import run_python

SCRIPT = """
import os
import sys

sys.modules["tensorflow"] = None  # importing it fails from here on
os.environ["KERAS_BACKEND"] = "jax"

import json
from pathlib import Path

from tests.functional_program import run_program

print(json.dumps(run_program(Path(sys.argv[1]))))
"""


def run_on(backend: str, folder: Path) -> dict[str, Any]:
    if backend != "jax":
        return run_program(folder, jit_compile=backend == "tensorflow with XLA")
    process = run_python("-c", SCRIPT, str(folder))
    assert process.returncode == 0, process.stderr.decode()[-3000:]
    result: dict[str, Any] = json.loads(process.stdout)
    return result


@pytest.mark.parametrize("backend", ["tensorflow", "jax", "tensorflow with XLA"])
@pytest.mark.slow
def test_a_functional_model_is_trained_saved_loaded_and_searched(
    backend: str, tmp_path: Path
) -> None:
    result = run_on(backend, tmp_path)
    losses = result["losses"]
    assert np.isfinite(losses).all() and losses[-1] < 0.7 * losses[0]
    assert 0.0 < result["accuracies"][0] < result["accuracies"][-1] <= 1.0
    assert result["loaded"] < 1e-6
    assert result["rescored"] < 1e-4
    built, loaded = result["found"]
    for ours, theirs in zip(loaded, built, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)
    tokens, log_probs, greedy, _ = map(np.array, built)
    assert (np.diff(log_probs) <= 0).all()
    for first in (tokens[:, 0], greedy):
        assert len({tuple(row) for row in first}) > 4  # different outputs for 8 sources
