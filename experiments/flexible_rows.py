"""Shu and Nakayama (2017): the models of Tables 1 and 2.

REFERENCE: section 5.1 and 5.4 of the paper; what these leave out is as in zomux/neuralmt, the
authors' public baseline: the query is the state before the step, the context enters the step, the
first output is tanh of a map of the backward encoder's last one, the readout reads the output alone
and has no nonlinearity; no dropout.
"""

from typing import Any

from experiments.experiment import Experiment
from seq2seq_memattn.config import ModelConfig, TrainingConfig

BATCH_SIZE = 64
PAIRS_OF = {"en_ja": 1_300_000, "de_en": 3_800_000, "en_ja_characters": 1_300_000}
ATTENTIONS: dict[str, dict[str, Any]] = {
    "global": {"attention": "luong_concat"},
    "local": {"attention": "local_p", "half_window": 10},
    "flexible": {"attention": "flexible", "flexible_sigma": 1.5},
}

# Words or characters looked at per step, BLEU, and RIBES in English-Japanese, of Tables 1 and 2 by
# corpus and row: the attentions that are trained, flexible attention without a threshold; then with
# one, and that after fine-tuning.
PAPER: dict[str, dict[str, tuple[float, ...]]] = {
    "en_ja": {
        "global": (24.4, 34.87, 0.810),
        "local": (18.4, 34.52, 0.809),
        "flexible": (24.4, 35.01, 0.814),
        "threshold": (16.4, 34.90, 0.812),
        "tuned": (10.7, 34.78, 0.807),
    },
    "de_en": {
        "global": (20.7, 20.62),
        "local": (15.7, 21.09),
        "flexible": (20.7, 21.31),
        "threshold": (7.8, 21.11),
        "tuned": (7.4, 20.79),
    },
    "en_ja_characters": {
        "global": (144.9, 26.18, 0.767),
        "flexible": (144.9, 26.68, 0.763),
        "threshold": (80.4, 26.18, 0.757),
        "tuned": (77.4, 26.23, 0.757),
    },
}


def flexible_row(corpus: str, name: str) -> Experiment:
    """A row that is trained: the others decode with a threshold, or go on from this one.

    Args:
        corpus: of `PAPER`.
        name: of `ATTENTIONS`.
    """
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
        **ATTENTIONS[name],
    )
    epochs, halved_from = (20, 18) if by_characters else (6, 4)
    per_epoch = PAIRS_OF[corpus] // BATCH_SIZE
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
    paper = dict(zip(("window", "bleu", "ribes"), PAPER[corpus][name], strict=False))
    return Experiment(model, training, paper)
