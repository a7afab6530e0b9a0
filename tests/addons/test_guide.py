"""The migration guide names everything, and its code works."""

import re
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from tests.addons.recorded import GUIDE, from_guide, recorded, run_guide
from tests.addons.test_search import hypotheses
from tests.inputs import mask_of, tensor
from tests.tolerances import as_array, assert_close

ARRAYS = recorded("functions")
DECODING, CARRIED = recorded("decoding"), recorded("decoding", "layer")


def test_the_guide_has_a_row_for_every_public_name() -> None:
    names = re.findall(r"^\| `(\w+)` \|", GUIDE, re.MULTILINE)
    assert names == sorted(names)
    assert set(names) == set(ARRAYS["public_names"].tolist())


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("tile_batch", {"multiplier": 2}), ("hardmax", {}), ("safe_cumprod", {"axis": 1})],
)
def test_its_small_functions_are_those_of_addons(name: str, arguments: Any) -> None:
    found = from_guide(name)(tensor(ARRAYS["chances"]), **arguments)
    assert_close(found, ARRAYS[name])


@pytest.mark.slow
def test_its_programs_for_training_and_decoding_run() -> None:
    names: dict[str, Any] = {}
    run_guide("vocab_size, num_pairs", names)
    run_guide("model.compile", names)
    (loss,) = names["model"].history.history["loss"]
    assert 0.0 < loss < 4.0
    run_guide("Searchable.from_model(", names)
    assert tuple(names["best"].shape) == tuple(names["greedy"].shape) == (256, 20)
    run_guide("def scheduled_logits", names)
    given = [tensor(names[name][:4], "int32") for name in ("sources", "target_inputs")]
    logits, seed = names["scheduled_logits"], keras.random.SeedGenerator(1)
    real = names["target_outputs"][:4] != 0
    of_model = as_array(names["model"](given))
    assert_close(as_array(logits(*given, 0.0, seed))[real], of_model[real])
    drawn = as_array(logits(*given, 1.0, seed))
    assert_close(drawn[:, 0], of_model[:, 0])  # the start token is given
    assert (drawn[:, 1:] != of_model[:, 1:]).any()


@pytest.fixture
def carried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The variables of the guide's code after it has carried a recorded model's weights over."""
    monkeypatch.chdir(tmp_path)
    np.savez("wrapper.npz", **CARRIED)
    np.savez("embed.npz", DECODING["embeddings"])
    np.savez("encoder.npz", *(DECODING[f"encoder.{index}"] for index in range(6)))
    np.savez("to_logits.npz", CARRIED["logits_kernel"], CARRIED["logits_bias"])
    names: dict[str, Any] = {
        "keras": keras,
        "np": np,
        "source": keras.Input((None,), dtype="int32"),
        "target": keras.Input((None,), dtype="int32"),
        "embed": keras.layers.Embedding(*DECODING["embeddings"].shape, mask_zero=True),
        "encoder": keras.layers.Bidirectional(keras.layers.LSTM(3, return_sequences=True)),
        "to_logits": keras.layers.Dense(CARRIED["logits_bias"].size),
        "carry_cell": from_guide("carry_cell"),
        "FedBackCell": from_guide("FedBackCell"),
    }
    run_guide(
        "carry_cell(cell, dict",
        names,
        [
            ("mixing_units=128", "mixing_units=9"),
            ("layer_size=128, context_units=128", "layer_size=9, context_units=6"),
            ("128", "7"),
        ],
    )
    return names


def test_the_carried_model_has_the_logits_of_addons(carried: dict[str, Any]) -> None:
    logits = carried["model"]([DECODING["source"], DECODING["target_inputs"]])
    real = mask_of(DECODING["target_lengths"].tolist(), logits.shape[1])
    assert_close(as_array(logits)[real], CARRIED["logits"][real])


def test_the_carried_model_finds_the_hypotheses_of_addons(carried: dict[str, Any]) -> None:
    sizes = [
        ("beam_size=10, length_penalty_exponent=0.6", "beam_size=4, n_best=4"),
        ("max_length=20", "max_length=9"),
    ]
    carried["sources"] = DECODING["source"]
    run_guide("Searchable.from_model(", carried, sizes)
    found, expected = carried["found"], recorded("decoding", "layer.beam")
    assert hypotheses(found.tokens, found.steps) == hypotheses(expected["ids"], expected["lengths"])
    assert_close(found.log_probs, expected["log_probs"])
