"""Every option of a model and of a training run, each declared once with its meaning and unit.

Commands make their flags from these fields. `to_dict` and `from_dict` convert records to and from
JSON values, which are stored with a run.
"""

import dataclasses
import math
import numbers
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

import numpy as np

from seq2seq_memattn.checks import MAX_SEED, check_share

Precision = Literal["float32", "bfloat16_products", "mixed_bfloat16", "mixed_float16", "float64"]
DecodingPrecision = Literal[Precision, "int8_products"]
Strategy = Literal["auto", "one_device", "mirrored", "multi_worker", "parameter_server"]


# Maps the declared type of an option to the Python types that its values may have. A float option
# also takes an int, since flags and files may give one.
_KINDS: dict[type, type | tuple[type, ...]] = {
    bool: bool,
    int: numbers.Integral,
    float: numbers.Real,
    str: str,
}


def _is_of_kind(value: Any, kind: type) -> bool:
    """Whether an option of type `kind` accepts `value`; True and False are not numbers."""
    return isinstance(value, _KINDS[kind]) and isinstance(value, bool) == (kind is bool)


def option(
    default: Any,
    meaning: str,
    group: str = "",
    least: Literal[0, 1] | None = None,
    most: int | None = None,
) -> Any:
    """Declares a dataclass field with its one-line meaning, which is also the help of its flag.

    Args:
        default: the value if none is given.
        meaning: what the field sets, with its unit.
        group: heading above the flag in a command's help; "": the group that is current when the
            command defines its flags.
        least: the minimum; None: not checked.
        most: the maximum; None: not checked.
    """
    metadata = {"help": meaning, "group": group, "least": least, "most": most}
    return dataclasses.field(default=default, metadata=metadata)


class Options:
    """Base of the option records: checks types, choices and limits when a record is made."""

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(type(self)).items():
            value = getattr(self, name)
            if get_origin(kind) is Literal and value not in get_args(kind):
                choices = ", ".join(repr(choice) for choice in get_args(kind))
                raise ValueError(f"`{name}` must be one of {choices}; got {value!r}.")
            if kind in _KINDS and not _is_of_kind(value, kind):
                raise ValueError(f"`{name}` must be {kind.__name__}; got {value!r}.")
            if kind is float and not math.isfinite(value):
                raise ValueError(f"`{name}` must be finite; got {value}.")
            if isinstance(value, np.number):  # JSON has no NumPy numbers
                object.__setattr__(self, name, value.item())
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            least, value = field.metadata.get("least"), getattr(self, field.name)
            if least is not None and value < least:
                meaning = {0: "not be negative", 1: "be positive"}[least]
                raise ValueError(f"`{field.name}` must {meaning}; got {value}.")
            most = field.metadata.get("most")
            if most is not None and value > most:
                raise ValueError(f"`{field.name}` must be at most {most}; got {value}.")

    def to_dict(self) -> dict[str, Any]:
        """The options as JSON-ready values."""
        return dataclasses.asdict(self)  # type: ignore[call-overload]

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """The defaults, of the options that have one."""
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        return {f.name: f.default for f in fields if f.default is not dataclasses.MISSING}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Makes a record from these values; raises ValueError for a name that is not an option."""
        known = {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
        unknown = sorted(set(values) - known)
        if unknown:
            raise ValueError(f"Unknown option {unknown[0]!r} for {cls.__name__}.")
        return cls(**values)


# Options that have an effect only with some attentions, by how the attention's name begins. Sizes
# are left out, and so are options of K-memory that presets set for every attention.
OPTIONS_OF = {
    "k_memory": (
        *("position_encoding", "attention_bias", "slot_hidden", "slot_spread", "slot_dropout"),
    ),
    "local_p": ("local_sigma",),
    "flexible": ("threshold",),
}
DENSE_BRIDGE = ("bridge_from", "bridge_activation", "bridge_outputs_only")


@dataclasses.dataclass(frozen=True)
class ModelConfig(Options):
    """Options of a model. The defaults are google/seq2seq's, with the sizes used for the copy task.

    Source: Britz, Guan and Luong (2017), section 4.1.1; google/seq2seq at commit 7f48589.
    """

    source_vocab_size: int = option(
        23, "size of the source vocabulary, special tokens included", least=1
    )
    target_vocab_size: int = option(
        23, "size of the target vocabulary, special tokens included", least=1
    )
    embedding_dim: int = option(256, "width of source and target embeddings", least=1)
    encoder_units: int = option(256, "units of each encoder layer in each direction", least=1)
    encoder_layers: int = option(2, "encoder layers", least=1)
    encoder_cell: Literal["lstm", "gru"] = option("lstm", "recurrent cell of the encoder")
    bidirectional: bool = option(True, "read the source in both directions")
    encoder_stacking: Literal["per_direction", "concatenated"] = option(
        "per_direction", "stack layers in each direction, or concatenate directions between layers"
    )
    decoder_units: int = option(256, "units of each decoder layer", least=1)
    decoder_layers: int = option(2, "decoder layers", least=1)
    decoder_cell: Literal["lstm", "gru"] = option("lstm", "recurrent cell of the decoder")
    attention: str = option("k_memory:32", "how the decoder reads the source")
    attention_units: int = option(
        256,
        "width of the hidden layer (bahdanau, concat, local, flexible) or the projections (linear)",
        least=1,
    )
    half_window: int = option(
        10, "local attention: positions on either side of the centre", least=1
    )
    local_sigma: float = option(
        0.0, "local_p: standard deviation in positions; 0: half of half_window", least=0
    )
    flexible_sigma: float = option(1.5, "flexible attention: sigma of the penalty, in positions")
    threshold: float = option(
        0.0,
        "flexible attention: decoding scores only positions with a penalty below this; 0: all",
        least=0,
    )
    encoder_score: Literal["softmax", "sigmoid"] = option(
        "softmax", "K-memory: turns encoder energies into alpha (eq. 5 of Britz et al.)"
    )
    decoder_score: Literal["softmax", "sigmoid"] = option(
        "softmax", "K-memory: turns decoder energies into beta (eq. 7 of Britz et al.)"
    )
    normalise_over: Literal["slots", "time"] = option(
        "time",
        "K-memory: axis of a softmax in eq. 5 of Britz et al.; time: over the source, for each "
        "slot; slots: over the slots, for each token, as printed in the paper",
    )
    position_encoding: Literal["none", "masked", "sum_to_one", "mean_one"] = option(
        "none",
        "K-memory: position encodings (eq. 8-10 of Britz et al.) and how they are renormalised; "
        "masked: not renormalised",
    )
    max_source_length: int = option(
        0,
        "position encodings and luong_location: longest source in tokens, end token included",
        least=0,
    )
    attention_bias: bool = option(
        False, "K-memory: add biases to the energies in eq. 5 and 7 of Britz et al."
    )
    slot_hidden: int = option(
        0,
        "K-memory: units of a tanh layer between the encoder outputs and the encoder energies "
        "(eq. 5 of Britz et al.); 0: no layer",
        least=0,
    )
    slot_spread: float = option(
        0.0,
        "K-memory: gain of an orthogonal initialisation of the weights in eq. 5 of Britz et al.; "
        "0: Glorot initialisation",
        least=0,
    )
    slot_dropout: float = option(
        0.0,
        "K-memory: probability of dropping each slot in training, drawn anew for each sentence",
    )
    encoder_projection_units: int = option(
        0,
        "project the encoder outputs to this width before the attention; 0: no projection",
        least=0,
    )
    bridge: Literal["auto", "zero", "copy", "dense"] = option(
        "auto", "how the first decoder state is made; auto: zero with attention, dense without"
    )
    bridge_from: Literal["all", "top", "backward"] = option(
        "all", "states that a dense bridge reads: all layers, the top layer, the top backward layer"
    )
    bridge_activation: Literal["linear", "tanh"] = option("linear", "activation of a dense bridge")
    bridge_outputs_only: bool = option(
        False,
        "a dense bridge reads and sets only the outputs of cells (h of an LSTM); the other "
        "states of the decoder (c) start at zero",
    )
    read: Literal["after", "before"] = option(
        "after",
        "read the memory after the step (google/seq2seq) or before (Bahdanau et al.)",
    )
    input_feeding: bool = option(
        True,
        "the decoder's input includes the context of the previous step (if read is before: of the "
        "same step)",
    )
    mixing: Literal["auto", "tanh", "linear", "none"] = option(
        "auto",
        "layer between decoder and logits; auto: tanh if there is an attention, otherwise none",
    )
    mixing_from: Literal["output_and_context", "output"] = option(
        "output_and_context", "what the mixing layer reads"
    )
    mixing_units: int = option(0, "width of the mixing layer; 0: decoder_units", least=0)
    tied_embeddings: Literal["none", "target", "all"] = option(
        "none",
        "target: the output layer shares the weights of the target embeddings; all: the source "
        "embeddings share them too, with one joint vocabulary",
    )
    dropout: float = option(
        0.2, "dropout rate of each cell's inputs in training; a new mask per step"
    )
    initializer: Literal["reference", "glorot", "uniform_0.1"] = option(
        "reference", "reference: uniform in +-0.04 for cells and embeddings, Glorot elsewhere"
    )
    seed: int = option(
        0,
        "seed of the weights and of dropout; in training, also of the data order",
        least=0,
        most=MAX_SEED,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.flexible_sigma > 0:
            raise ValueError(f"`flexible_sigma` must be positive; got {self.flexible_sigma}.")
        check_share("dropout", self.dropout)
        check_share("slot_dropout", self.slot_dropout)
        for name, reason in _without_effect(self.to_dict()).items():
            raise ValueError(f"`{name}` {getattr(self, name)} {reason}")
        self._check_tied()

    def _check_tied(self) -> None:
        if self.tied_embeddings != "none" and self.embedding_dim != self.output_units:
            raise ValueError(
                f"`tied_embeddings` {self.tied_embeddings} needs embeddings as wide as the input "
                f"of the output layer; embedding_dim is {self.embedding_dim}, that width is "
                f"{self.output_units} (mixing_units sets it)."
            )
        if self.tied_embeddings == "all" and self.source_vocab_size != self.target_vocab_size:
            raise ValueError(
                "`tied_embeddings` all needs one vocabulary for both sides; source_vocab_size is "
                f"{self.source_vocab_size}, target_vocab_size is {self.target_vocab_size}."
            )

    @property
    def needs_source_length(self) -> bool:
        """Whether the model is made for sources of at most `max_source_length`."""
        return self.position_encoding != "none" or self.attention == "luong_location"

    @property
    def longest_source(self) -> int | None:
        """The maximum number of tokens in a source, end token included; None: no limit."""
        return self.max_source_length if self.needs_source_length else None

    @property
    def bridge_kind(self) -> str:
        """The kind of bridge that the model has: zero, copy or dense."""
        return _bridge_kind(self.bridge, self.attention)

    @property
    def mixing_layer(self) -> str:
        """The kind of mixing layer that the model has: tanh, linear or none."""
        if self.mixing != "auto":
            return self.mixing
        return "none" if self.attention == "none" else "tanh"

    @property
    def output_units(self) -> int:
        """Width of the output layer's input."""
        if self.mixing_layer != "none":
            return self.mixing_units or self.decoder_units
        read = 0 if self.mixing_from == "output" else self.context_units
        return self.decoder_units + read

    @property
    def context_units(self) -> int:
        """Width of the context vector, which a step reads from the memory."""
        if self.attention in ("none", "linear"):
            return 0 if self.attention == "none" else self.attention_units
        encoder_units = self.encoder_units * (2 if self.bidirectional else 1)
        return self.encoder_projection_units or encoder_units


def used_options(stored: dict[str, Any]) -> dict[str, Any]:
    """The options of a stored model that have an effect; earlier versions accepted others, too."""
    unused = _without_effect({**ModelConfig().to_dict(), **stored})
    return {name: value for name, value in stored.items() if name not in unused}


def _without_effect(options: dict[str, Any]) -> dict[str, str]:
    """The options of a model that have no effect and not their defaults, with the reason."""
    attention = str(options["attention"])
    kind = _bridge_kind(options["bridge"], attention)
    reasons = {
        name: f"is for {needed}; the attention is {attention}."
        for needed, names in OPTIONS_OF.items()
        for name in names
        if not attention.startswith(needed)
    }
    if kind != "dense":
        reasons |= dict.fromkeys(DENSE_BRIDGE, f"is for a dense bridge; got {kind}.")
    defaults = {field.name: field.default for field in dataclasses.fields(ModelConfig)}
    return {name: why for name, why in reasons.items() if options[name] != defaults[name]}


def _bridge_kind(bridge: str, attention: str) -> str:
    if bridge != "auto":
        return bridge
    return "dense" if attention == "none" else "zero"


@dataclasses.dataclass(frozen=True)
class TrainingConfig(Options):
    """Options of a training run: optimiser, learning rate, checkpoints, validation, stopping."""

    batch_size: int = option(128, "sentences per update", least=1)
    batch_tokens: int = option(
        0,
        "tokens per update, counted on the longer of source and target, padding included; 0: use "
        "batch_size",
        least=0,
    )
    bucket_width: int = option(
        10, "width of the length buckets in tokens; each batch comes from one bucket", least=1
    )
    num_updates: int = option(200_000, "updates after which training ends", least=1)
    label_smoothing: float = option(
        0.0, "probability mass that label smoothing spreads over the vocabulary"
    )
    optimizer: Literal["adam", "sgd"] = option("adam", "Adam, or plain gradient descent")
    learning_rate: float = option(1e-4, "learning rate, or the peak of its schedule")
    schedule: Literal["constant", "inverse_sqrt", "exponential", "plateau"] = option(
        "constant",
        "learning rate after the warm-up; inverse_sqrt: falls with the inverse square root of the "
        "updates; exponential: multiplied by decay_rate every decay_every updates; plateau: "
        "multiplied by decay_rate when BLEU stops rising",
    )
    warmup_updates: int = option(
        0, "updates of linear warm-up from 0 to the learning rate", least=0
    )
    decay_start: int = option(0, "exponential: updates before the decay begins", least=0)
    decay_every: int = option(
        10_000, "exponential: updates between multiplications by decay_rate", least=1
    )
    decay_rate: float = option(
        0.5, "exponential, plateau: factor by which each decay multiplies the learning rate"
    )
    decay_staircase: bool = option(False, "exponential: decay in steps instead of continuously")
    decay_patience: int = option(
        3, "plateau: validations without a better BLEU before a decay", least=1
    )
    adam_epsilon: float = option(1e-8, "Adam's epsilon; google/seq2seq's examples use 8e-7")
    clip_norm: float = option(5.0, "clip gradients to this global norm; 0: no clipping", least=0)
    embedding_clip_norm: float = option(
        0.0,
        "after clip_norm, clip the gradients of the source and of the target embeddings, each to "
        "this norm; 0: no clipping; google/seq2seq uses 0.1",
        least=0,
    )
    strength_weight: float = option(
        0.0,
        "flexible attention: weight of the term that rewards a strong penalty, for fine-tuning "
        "(beta in eq. 9 of Shu and Nakayama); 0: only cross entropy",
        least=0,
    )
    teacher: str = option(
        "",
        "run directory of a trained model with attention over the source, which shows this model "
        "what to read at each step; needs context_weight or alignment_weight",
    )
    context_weight: float = option(
        0.0,
        "teacher: weight of the mean squared difference between the teacher's contexts and this "
        "model's",
        least=0,
    )
    alignment_weight: float = option(
        0.0,
        "teacher: weight of the Kullback-Leibler divergence between the teacher's alignments and "
        "this model's, in nats per target token",
        least=0,
    )
    balance_weight: float = option(
        0.0,
        "K-memory: weight of a penalty on uneven use of the slots: the divergence of the uniform "
        "distribution from the mean use of the slots, in nats per target token; the mean is over "
        "the part of a batch that one device computes at a time",
        least=0,
    )
    checkpoint_minutes: float = option(
        30.0, "minutes between checkpoints; one also follows each new best validation", least=0
    )
    keep: int = option(
        5, "number of most recent checkpoints to keep, besides the best weights", least=1
    )
    validate_every: int = option(
        1000,
        "updates between validations by beam decoding; the last update is validated too",
        least=1,
    )
    valid_examples: int = option(
        1000, "number of validation examples to decode, starting with the first", least=1
    )
    beam_size: int = option(10, "hypotheses kept per source in validation", least=1)
    validation_bleu: Literal["corpus", "smoothed"] = option(
        "corpus",
        "BLEU that selects the best weights: corpus BLEU, or the mean of smoothed sentence BLEU",
    )
    patience: int = option(
        0,
        "stop after this many validations in a row with neither a better BLEU nor the same BLEU "
        "and a lower loss; 0: never",
        least=0,
    )
    stop_at_bleu: float = option(
        101.0, "stop once validation BLEU (0 to 100) reaches this; above 100: never"
    )
    jit_compile: bool = option(False, "compile the update with XLA")
    precision: Precision = option(
        "float32",
        "dtype policy of the layers; bfloat16_products: float32 with the cells' matrix products in "
        "bfloat16 (in decoding, nearly all products), faster on CPUs with bfloat16 units; "
        "mixed_float16: for GPUs without bfloat16, with loss scaling",
    )
    accumulate: int = option(
        1,
        "split each batch into this many parts and sum their gradients: the same update in less "
        "memory",
        least=1,
    )
    log_every: int = option(20, "updates between two lines of metrics.jsonl", least=1)
    max_nan_updates: int = option(
        5, "stop after this many updates in a row with NaN or infinity", least=1
    )
    seed: int = option(0, "seed of the data order", least=0, most=MAX_SEED)

    def __post_init__(self) -> None:
        super().__post_init__()
        # With an epsilon of 0, Adam would divide 0 by 0; every validation would reach 0 BLEU.
        for name in ("learning_rate", "adam_epsilon", "stop_at_bleu"):
            if not getattr(self, name) > 0:
                raise ValueError(f"`{name}` must be positive; got {getattr(self, name)}.")
        check_share("label_smoothing", self.label_smoothing)
        if not 0.0 < self.decay_rate <= 1.0:
            raise ValueError(f"`decay_rate` must be in (0, 1]; got {self.decay_rate}.")
        has_weight = self.context_weight > 0 or self.alignment_weight > 0
        if has_weight != bool(self.teacher):
            raise ValueError(
                "`teacher` needs a positive `context_weight` or `alignment_weight`, and these need "
                "a `teacher`."
            )
        if self.schedule == "inverse_sqrt" and not self.warmup_updates:
            raise ValueError("`warmup_updates` must be positive for schedule inverse_sqrt; got 0.")

    @property
    def has_schedule(self) -> bool:
        """Whether the learning rate changes from update to update."""
        return self.schedule != "constant" or self.warmup_updates > 0


@dataclasses.dataclass(frozen=True)
class DevicesConfig(Options):
    """Devices and processes of a training run. They are not stored as part of the run."""

    strategy: Strategy = option(
        "auto",
        "which devices and processes train; one_device: the first GPU, else the CPU; mirrored: "
        "several devices of this machine; multi_worker: several processes that make each update "
        "together; parameter_server: several processes, each of which makes updates at its own "
        "pace; auto: depends on the cluster and the GPUs",
    )
    workers: str = option(
        "",
        "comma-separated host:port of every process of a multi_worker training, the same list for "
        "all of them; or set TF_CONFIG in the environment",
    )
    task_index: int = option(-1, "index of this process in --workers; 0 is the chief")
    num_devices: int = option(
        0,
        "mirrored: number of GPUs, 0 for all of them; on a machine without GPUs, number of virtual "
        "CPU devices on which to try mirrored training",
        least=0,
    )
    peer_timeout: float = option(
        60.0, "seconds without an answer after which a process counts as lost"
    )
    start_timeout: float = option(600.0, "seconds that processes wait for each other at the start")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("peer_timeout", "start_timeout"):
            if not getattr(self, name) >= 1:
                raise ValueError(f"`{name}` must be at least 1 second; got {getattr(self, name)}.")
