"""Attentions with weights of TensorFlow Addons give its results."""

from typing import Any

import pytest

from seq2seq_memattn.attention.additive import BahdanauAttention
from seq2seq_memattn.attention.base import Attention
from seq2seq_memattn.attention.multiplicative import LuongAttention
from tests.addons.recorded import from_guide, recorded, source_mask
from tests.inputs import MODES, run, tensor
from tests.tolerances import assert_close


def attention_like(kind: str, arrays: Any) -> Attention:
    """The attention that replaces a mechanism, not built yet."""
    if kind.startswith("bahdanau"):
        return BahdanauAttention(arrays["memory_kernel"].shape[1])
    return LuongAttention("general", arrays["memory_kernel"].shape[1])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["bahdanau", "bahdanau_normalize", "luong", "luong_scale"])
def test_alignments_and_contexts_are_those_of_addons(kind: str, mode: str) -> None:
    inputs, expected = recorded("attention"), recorded("attention", kind)
    attention = attention_like(kind, expected)
    memory, queries = tensor(inputs["memory"]), tensor(inputs["queries"])

    def read(memory: Any, queries: Any) -> Any:
        return attention.read(queries, attention.prepare(memory, source_mask()))[:2]

    read(memory, queries)  # builds it
    from_guide("carry_attention")(attention, expected)
    contexts, alignments = run(mode, read, memory, queries)
    assert_close(alignments, expected["alignments"])
    assert_close(contexts, expected["contexts"])


def test_weights_of_another_mechanism_are_refused() -> None:
    with pytest.raises(ValueError, match="expected a BahdanauAttention"):
        from_guide("carry_attention")(LuongAttention(), recorded("attention", "bahdanau"))
