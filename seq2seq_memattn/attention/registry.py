"""The registry of attentions: one entry for each value of the option `attention`.

An entry has a label, colour, marker, class and arguments. This is the only list of attentions; the
names in the papers' tables are kept with the results pages. A class is imported only when such an
attention is made, so a command's help and the figures do not load Keras.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import seq2seq_memattn
from seq2seq_memattn.config import ModelConfig

if TYPE_CHECKING:
    from seq2seq_memattn.attention.base import Attention

K_MEMORY = "k_memory:K"


class Entry(NamedTuple):
    """An entry of the registry: one attention.

    Fields:
        label: the attention's name in tables and figures; {K} stands for the number of slots.
        colour: "#rrggbb", in figures; "" for K-memory, which has a shade for each K.
        marker: matplotlib's letter for a marker, so that lines differ in more than colour.
        kind: name of the attention's public class.
        arguments: function that makes the arguments of the class, except those that every Keras
            layer takes.
    """

    label: str
    colour: str
    marker: str
    kind: str
    arguments: Callable[[ModelConfig], dict[str, Any]]


def _k_memory(config: ModelConfig) -> dict[str, Any]:
    encoding = config.position_encoding
    return {
        "num_slots": num_slots(config.attention),
        "encoder_score": config.encoder_score,
        "decoder_score": config.decoder_score,
        "normalise_over": config.normalise_over,
        "position_encoding": None if encoding == "none" else encoding,
        "max_source_length": config.max_source_length or None,
        "use_bias": config.attention_bias,
        "hidden_units": config.slot_hidden or None,
        "spread": config.slot_spread or None,
    }


def _local(config: ModelConfig, centre: str, sigma: float | None) -> dict[str, Any]:
    window, units = config.half_window, config.attention_units
    return {"half_window": window, "units": units, "centre": centre, "sigma": sigma}


# In the order of legends. K-memory comes after "constant"; its colour gets darker as K grows.
ATTENTIONS = {
    "none": Entry("no attention", "#8c8c8c", "x", "NoAttention", lambda c: {}),
    "constant": Entry(
        *("constant", "#4d4d4d", "+", "ConstantAttention"),
        lambda c: {"is_bidirectional": c.bidirectional},
    ),
    K_MEMORY: Entry("K-memory, K = {K}", "", "", "KMemoryAttention", _k_memory),
    "bahdanau": Entry(
        *("Bahdanau", "#d55e00", "o", "BahdanauAttention"),
        lambda c: {"units": c.attention_units},
    ),
    "luong_dot": Entry(
        *("Luong, dot", "#e69f00", "<", "LuongAttention"),
        lambda c: {"score": "dot"},
    ),
    "luong_general": Entry(
        *("Luong, general", "#cc79a7", ">", "LuongAttention"),
        lambda c: {"score": "general", "units": c.decoder_units},
    ),
    "luong_concat": Entry(
        *("Luong, concat", "#882255", "p", "LuongAttention"),
        lambda c: {"score": "concat", "units": c.attention_units},
    ),
    "luong_location": Entry(
        *("Luong, location", "#56b4e9", "h", "LuongAttention"),
        lambda c: {"score": "location", "max_source_length": c.max_source_length or None},
    ),
    "local_m": Entry(
        *("local, monotonic", "#999933", "1", "LocalAttention"),
        lambda c: _local(c, "monotonic", None),
    ),
    "local_p": Entry(
        *("local, predictive", "#661100", "2", "LocalAttention"),
        lambda c: _local(c, "predictive", c.local_sigma or None),
    ),
    "flexible": Entry(
        *("flexible", "#0072b2", "*", "FlexibleAttention"),
        lambda c: {
            "units": c.attention_units,
            "sigma": c.flexible_sigma,
            "threshold": c.threshold or None,
        },
    ),
    "linear": Entry(
        *("linear", "#000000", "d", "LinearAttention"),
        lambda c: {"units": c.attention_units},
    ),
}
ATTENTION_NAMES = tuple(ATTENTIONS)
CHOICES = f"one of {', '.join(ATTENTION_NAMES)}; K: number of slots"


def num_slots(name: str) -> int | None:
    """The K in a name of the form k_memory:K; None for any other name."""
    kind, _, slots = name.partition(":")
    is_number = slots.isascii() and slots.isdigit() and int(slots) > 0
    return int(slots) if kind == "k_memory" and is_number else None


def find(name: str) -> Entry | None:
    """The entry for a name in options, such as k_memory:32; None if the name is unknown."""
    slots = num_slots(name)
    if slots is None:
        return None if name == K_MEMORY else ATTENTIONS.get(name)
    entry = ATTENTIONS[K_MEMORY]
    return entry._replace(label=entry.label.format(K=slots))


def label(name: str) -> str:
    """The label of an attention; the name itself if it is unknown."""
    entry = find(name)
    return entry.label if entry else name


def checked(name: str) -> Entry:
    """As `find`, but raises ValueError if the name is unknown or K is not a positive number."""
    entry = find(name)
    if entry is None:
        raise ValueError(f"`attention` must be {CHOICES}, above 0; got {name!r}.")
    return entry


def make_attention(config: ModelConfig, dtype: Any = None) -> "Attention":
    """Makes the attention that `config.attention` names; `dtype` is as for any Keras layer.

    Raises:
        ValueError: if the name is unknown, or K of `k_memory:K` is not a positive number.
    """
    entry = checked(config.attention)
    kind = getattr(seq2seq_memattn, entry.kind)
    return kind(**entry.arguments(config), dtype=dtype, name="attention")
