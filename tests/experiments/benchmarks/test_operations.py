from typing import Any, Literal

import pytest

from experiments.benchmarks.operations import StepOperations, training_operations
from seq2seq_memattn.config import ModelConfig
from seq2seq_memattn.model import Seq2Seq


def narrow(attention: str, **options: Any) -> Seq2Seq:
    config = ModelConfig(
        embedding_dim=2,
        encoder_units=3,
        encoder_layers=1,
        decoder_units=7,
        target_vocab_size=11,
        attention=attention,
        **options,
    )
    return Seq2Seq(config)


@pytest.mark.parametrize(
    ("attention", "kernels", "rows", "bridge"),
    [
        # Layers of 4 LSTM gates; the encoder's outputs are 2 * 3 wide, and are fed back.
        ("none", 0, {}, "zero"),
        # Both states of both directions to both of the decoder, once per sentence.
        ("none", 0, {}, "auto"),
        ("k_memory:5", 6 * 5 + 7 * 5, {"per_token": 2 * 2 * 5 * 6}, "auto"),
        ("luong_general", 6 * 7, {"per_pair": 2 * 6}, "zero"),
    ],
)
def test_operations_are_those_of_kernels_and_rows(
    attention: str, kernels: int, rows: dict[str, int], bridge: Literal["zero", "auto"]
) -> None:
    model = narrow(attention, decoder_layers=1, bridge=bridge)
    fed = 0 if attention == "none" else 6
    weights = 2 * (2 + 3) * 12 + (2 + fed + 7) * 28 + 7 * 11 + kernels
    if fed:
        weights += (7 + 6) * 7  # the mixing layer
    lengths = [4, 9]
    expected = 2 * weights * sum(lengths) + rows.get("per_token", 0) * sum(lengths)
    expected += rows.get("per_pair", 0) * sum(length**2 for length in lengths)
    if attention == "none" and bridge == "auto":
        expected += 2 * (4 * 3) * (2 * 7) * len(lengths)
    assert training_operations(model, lengths) == 3 * expected


@pytest.mark.parametrize(
    ("attention", "kernels", "per_row", "num_rows"),
    [
        ("none", 0, 0, 0),
        ("k_memory:5", 7 * 5, 6, 5),
        ("luong_general", 0, 7 + 6, 40),
        ("bahdanau", 7 * 4, 4 + 6, 40),  # of its energies, the product with v
    ],
)
def test_operations_of_a_step_are_those_of_the_equations(
    attention: str, kernels: int, per_row: int, num_rows: int
) -> None:
    model = narrow(attention, decoder_layers=2, attention_units=4)
    fed = 0 if attention == "none" else 6
    weights = (2 + fed + 7) * 28 + (7 + 7) * 28 + 7 * 11 + kernels
    if fed:
        weights += (7 + 6) * 7  # the mixing layer
    assert StepOperations(model)(40) == 2 * (weights + per_row * num_rows)
