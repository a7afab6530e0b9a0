"""Translation on small corpora, Multi30k and news test sets, trainable on two CPU cores.

Models have one layer of 384 units in each direction, a vocabulary of 4,000 subwords (see
results/multi30k_sizes.md), dropout and label smoothing. The learning rate rises for 200 updates and
is later halved at intervals. Training takes 8 epochs, one to two hours on one core. The softmax of
equation 5 is over the source, not over the slots (results/ambiguities.md).
"""

from typing import Any

from seq2seq_memattn.config import ModelConfig, TrainingConfig
from seq2seq_memattn.presets.preset import Preset

UNITS = 384  # every width in the models
PIECES = 4000  # size of the joint vocabulary of both languages
ATTENTIONS: dict[str, dict[str, Any]] = {
    "none": {"attention": "none"},
    "k4": {"attention": "k_memory:4"},
    "k8": {"attention": "k_memory:8"},
    "k32": {"attention": "k_memory:32"},
    # Of the three ways to understand section 3.2 of Britz et al. (2017), "mean_one" keeps the scale
    # of the energies (results/ambiguities.md).
    "k32_pe": {"attention": "k_memory:32", "position_encoding": "mean_one"},
    "k64": {"attention": "k_memory:64"},
    "k64_pe": {"attention": "k_memory:64", "position_encoding": "mean_one"},
    "bahdanau": {"attention": "bahdanau"},
}
# The models of the paper's Table 2.
OF_TABLE_2 = ("k32", "k32_pe", "k64", "k64_pe", "bahdanau")


def _preset(attention: str, num_updates: int, decay_start: int, decay_every: int) -> Preset:
    model = ModelConfig(
        embedding_dim=UNITS,
        encoder_units=UNITS,
        decoder_units=UNITS,
        attention_units=UNITS,
        encoder_layers=1,
        decoder_layers=1,
        tied_embeddings="target",
        dropout=0.3,
        initializer="uniform_0.1",
        normalise_over="time",
        **ATTENTIONS[attention],
    )
    training = TrainingConfig(
        batch_size=64,
        learning_rate=2e-3,
        warmup_updates=200,
        schedule="exponential",
        label_smoothing=0.1,
        validate_every=500,
        valid_examples=3000,
        patience=4,
        checkpoint_minutes=5.0,
        num_updates=num_updates,
        decay_start=decay_start,
        decay_every=decay_every,
    )
    return Preset(model, training)


PRESETS = {
    **{f"multi30k_en_de_{name}": _preset(name, 3600, 1200, 600) for name in ATTENTIONS},
    # Fewer but longer sentences.
    **{f"wmt_news_en_de_{name}": _preset(name, 2500, 900, 450) for name in OF_TABLE_2},
}
