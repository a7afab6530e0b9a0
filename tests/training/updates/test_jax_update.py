"""An update on JAX, without TensorFlow in the process, equals an update on TensorFlow."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from tests.tolerances import assert_close
from tests.training.runs import MODEL, TRAINING
from tests.training.updates.on_jax import run_on_jax
from tests.training.updates.test_tensorflow_update import batch, make

PROGRAM = """
results = [updater(batch) for _ in range(2)]
after = [np.asarray(v) for v in (*model.trainable_variables, *optimizer.variables)]

poisoned = np.array(model.logits.kernel)
poisoned[2] = 1e30
model.logits.kernel.assign(poisoned)
results.append(updater(batch))
assert (np.asarray(model.logits.kernel) == poisoned).all()
kept = [np.asarray(v) for v in optimizer.variables]
assert all((a == b).all() for a, b in zip(kept, after[-len(kept):], strict=True))

np.savez(f"{folder}/after.npz", *after)
with open(f"{folder}/results.json", "w") as stream:
    json.dump(results, stream)
"""


@pytest.mark.slow
@pytest.mark.parametrize("accumulate", [1, 3])
def test_updates_equal_those_of_tensorflow_and_what_is_not_finite_is_not_applied(
    tmp_path: Path, accumulate: int
) -> None:
    config = dataclasses.replace(
        TRAINING, clip_norm=0.2, embedding_clip_norm=0.05, adam_epsilon=1e-3, label_smoothing=0.1
    )
    model, optimizer, updater = make(MODEL, config)
    run_on_jax(
        PROGRAM,
        tmp_path,
        model,
        dataclasses.replace(MODEL, dropout=0.0),
        dataclasses.replace(config, accumulate=accumulate),
    )
    results = json.loads((tmp_path / "results.json").read_text())
    for ours in results[:2]:
        theirs = updater(batch())
        assert ours[3] is theirs.is_applied is True
        assert_close(np.array(ours[:3]), np.array(theirs[:3]))
    assert results[2][3] is False
    expected = [*model.trainable_variables, *optimizer.variables]
    with np.load(tmp_path / "after.npz") as after:
        assert len(after.files) == len(expected)
        for name, variable in zip(after.files, expected, strict=True):
            assert_close(after[name], np.asarray(variable))
