import importlib
import inspect
import pkgutil

import pytest

import seq2seq_memattn
from seq2seq_memattn import attention
from seq2seq_memattn.attention.base import Attention
from seq2seq_memattn.attention.registry import (
    ATTENTION_NAMES,
    ATTENTIONS,
    find,
    label,
    make_attention,
)
from seq2seq_memattn.attention.windows import WindowedAttention
from seq2seq_memattn.config import ModelConfig
from tests.running import run_python


def test_every_attention_has_an_entry() -> None:
    classes = set()
    for module in pkgutil.iter_modules(attention.__path__, f"{attention.__name__}."):
        found = vars(importlib.import_module(module.name)).values()
        classes |= {kind for kind in found if inspect.isclass(kind) and issubclass(kind, Attention)}
    classes -= {Attention, WindowedAttention}  # base classes
    assert {getattr(seq2seq_memattn, entry.kind) for entry in ATTENTIONS.values()} == classes


def test_every_attention_that_has_a_name_can_be_made() -> None:
    message = f"one of {', '.join(ATTENTION_NAMES)}.*; got 'none of these'"
    with pytest.raises(ValueError, match=message):
        make_attention(ModelConfig(attention="none of these"))
    for name, entry in ATTENTIONS.items():
        config = ModelConfig(attention=name.replace(":K", ":4"), max_source_length=5)
        made = make_attention(config)
        assert (type(made).__name__, made.name) == (entry.kind, "attention")


def test_options_of_slots_reach_k_memory() -> None:
    made = make_attention(ModelConfig(attention="k_memory:4", slot_hidden=6, slot_spread=2.0))
    assert (made.num_slots, made.hidden_units, made.spread) == (4, 6, 2.0)


def test_a_label_names_the_slots_and_leaves_other_names_as_they_are() -> None:
    assert label("k_memory:32") == "K-memory, K = 32"
    assert label("local_p") == "local, predictive"
    for name in ("k_memory:K", "k_memory:0", "k_memory:x", "bahdanau:7", "another"):
        assert label(name) == name and find(name) is None


def test_names_and_labels_do_not_wait_for_keras() -> None:
    code = "import sys, seq2seq_memattn.attention.registry; sys.exit('keras' in sys.modules)"
    assert run_python("-c", code).returncode == 0
