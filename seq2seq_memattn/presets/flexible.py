"""The models of Shu and Nakayama (2017), Tables 1 and 2: flexible_de_en_global and others.

Source: sections 5.1 and 5.4 of the paper. Details that these sections leave out are as in
zomux/neuralmt, the authors' public baseline: the query is the state before the step, and the
context enters the step. A tanh layer makes the decoder's first output from the backward encoder's
last output. The readout (our mixing layer) is linear and reads only the decoder's output. There is
no dropout.
"""

from typing import Any

from seq2seq_memattn.config import ModelConfig, TrainingConfig
from seq2seq_memattn.presets.preset import Preset

BATCH_SIZE = 64
NUM_PAIRS = {"de_en": 3_800_000, "en_ja": 1_300_000, "en_ja_characters": 1_300_000}
ATTENTIONS: dict[str, dict[str, Any]] = {
    "global": {"attention": "luong_concat"},
    "local": {"attention": "local_p", "half_window": 10},
    "flexible": {"attention": "flexible", "flexible_sigma": 1.5},
}


def _preset(corpus: str, attention: str) -> Preset:
    by_characters = corpus.endswith("characters")
    units, embedding_dim = (500, 100) if by_characters else (1000, 1000)
    model = ModelConfig(
        embedding_dim=embedding_dim,
        encoder_units=units,
        encoder_layers=1,
        decoder_units=units,
        decoder_layers=1,
        attention_units=units,
        read="before",
        bridge="dense",
        bridge_from="backward",
        bridge_activation="tanh",
        bridge_outputs_only=True,
        mixing="linear",
        mixing_from="output",
        mixing_units=600,
        dropout=0.0,
        initializer="glorot",
        **ATTENTIONS[attention],
    )
    epochs, halved_from = (20, 18) if by_characters else (6, 4)
    per_epoch = NUM_PAIRS[corpus] // BATCH_SIZE
    training = TrainingConfig(
        batch_size=BATCH_SIZE,
        bucket_width=1,  # sorted by length, then the batches shuffled
        num_updates=epochs * per_epoch,
        learning_rate=1e-4,
        schedule="exponential",
        decay_staircase=True,
        decay_start=(halved_from - 2) * per_epoch,  # the first halving is one epoch later
        decay_every=per_epoch,
        clip_norm=3.0,
        beam_size=20,
        validation_bleu="smoothed",
        validate_every=per_epoch // 20,
        valid_examples=1000,
    )
    return Preset(model, training)


PRESETS = {
    f"flexible_{corpus}_{name}": _preset(corpus, name)
    for corpus in NUM_PAIRS
    for name in ATTENTIONS
    if (corpus, name) != ("en_ja_characters", "local")  # not in the paper
}
