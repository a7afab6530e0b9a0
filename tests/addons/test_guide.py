"""The migration guide: it names everything, and its code does what it says."""

import re
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from tests.addons.recorded import GUIDE, guide_function, recorded, run_guide
from tests.inputs import mask_of, tensor
from tests.tolerances import as_array, assert_close

ARRAYS = recorded("functions")
LONGEST_LINE = 160


def test_the_guide_has_a_row_for_every_public_name() -> None:
    names = re.findall(r"^\| `(\w+)` \|", GUIDE, re.MULTILINE)
    assert names == sorted(names)
    assert set(names) == set(ARRAYS["public_names"].tolist())


def test_its_lines_are_short_enough() -> None:
    assert [line for line in GUIDE.splitlines() if len(line) > LONGEST_LINE] == []


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("tile_batch", {"multiplier": 2}), ("hardmax", {}), ("safe_cumprod", {"axis": 1})],
)
def test_its_small_functions_are_those_of_addons(name: str, arguments: Any) -> None:
    found = guide_function(name)(tensor(ARRAYS["chances"]), **arguments)
    assert_close(found, ARRAYS[name])


def test_its_training_program_runs() -> None:
    names: dict[str, Any] = {}
    run_guide("vocab_size, num_pairs", names)
    run_guide("model.compile", names)
    (loss,) = names["model"].history.history["loss"]
    assert 0.0 < loss < 4.0


def test_its_whole_model_answers_as_that_of_addons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    common, arrays = recorded("decoding"), recorded("decoding", "layer")
    np.savez("wrapper.npz", **arrays)
    np.savez("embed.npz", common["embeddings"])
    np.savez("encoder.npz", *(common[f"encoder.{index}"] for index in range(6)))
    np.savez("to_logits.npz", arrays["logits_kernel"], arrays["logits_bias"])
    names: dict[str, Any] = {
        "keras": keras,
        "np": np,
        "source": keras.Input((None,), dtype="int32"),
        "target": keras.Input((None,), dtype="int32"),
        "embed": keras.layers.Embedding(*common["embeddings"].shape, mask_zero=True),
        "encoder": keras.layers.Bidirectional(keras.layers.LSTM(3, return_sequences=True)),
        "to_logits": keras.layers.Dense(arrays["logits_bias"].size),
        "carry_cell": guide_function("carry_cell"),
    }
    run_guide(
        "carry_cell(cell, dict", names, [("mixing_units=128", "mixing_units=9"), ("128", "7")]
    )
    logits = names["model"]([common["source"], common["target_inputs"]])
    real = mask_of(common["target_lengths"].tolist(), logits.shape[1])
    assert_close(as_array(logits)[real], arrays["logits"][real])
