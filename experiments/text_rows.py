"""Table 2: the rows on WMT'17, and what CPUs can train of it on small corpora."""

from typing import Any

from experiments.experiment import Experiment
from seq2seq_memattn.config import ModelConfig, TrainingConfig

WIDTHS = ("embedding_dim", "encoder_units", "decoder_units", "attention_units")
SMALL_UNITS = 384  # of every width; see results/multi30k_sizes.md
SMALL_PIECES = 4000  # of the vocabulary of both languages; see the same
PIECES = 16_000  # the paper's

# Table 2 of the paper by pair and row: validation and test BLEU. English-Turkish has no test score.
PAPER: dict[str, dict[str, tuple[float, ...]]] = {
    "en_cs": {
        "k32": (19.20, 19.37),
        "k64": (19.63, 19.65),
        "k32_pe": (19.35, 19.45),
        "k64_pe": (19.73, 20.36),
        "bahdanau": (18.61, 19.19),
    },
    "en_de": {
        "k32": (26.20, 28.82),
        "k64": (26.39, 29.53),
        "k32_pe": (26.22, 29.53),
        "k64_pe": (27.31, 30.61),
        "bahdanau": (28.13, 30.99),
    },
    "en_fi": {
        "k32": (15.90, 15.87),
        "k64": (16.35, 16.49),
        "k32_pe": (16.31, 15.86),
        "k64_pe": (16.91, 17.03),
        "bahdanau": (17.16, 17.34),
    },
    "en_tr": {
        "k32": (12.94,),
        "k64": (13.06,),
        "k32_pe": (12.97,),
        "k64_pe": (13.25,),
        "bahdanau": (13.76,),
    },
}


def wmt17_row(pair: str, name: str) -> Experiment:
    """A row of Table 2 as the paper trains it: 512 units, 1M steps.

    The scoring pair is Figure 4's, sigmoid while encoding and softmax while decoding; the paper
    picks the best of four for each cell and does not say which.

    Args:
        pair: such as "en_de".
        name: of the row in `PAPER`.
    """
    model = ModelConfig(
        source_vocab_size=PIECES,
        target_vocab_size=PIECES,
        embedding_dim=512,
        encoder_units=512,
        decoder_units=512,
        attention_units=512,
        encoder_score="sigmoid",
        **attention_options(name),
    )
    training = TrainingConfig(num_updates=1_000_000, checkpoint_minutes=30.0, valid_examples=3000)
    return Experiment(
        model, training, dict(zip(("bleu", "test_bleu"), PAPER[pair][name], strict=False))
    )


def multi30k_row(name: str) -> Experiment:
    """A row of the miniature: about an hour on a core, 8 epochs.

    Args:
        name: none, bahdanau, k8 and so on, with `_pe` for position encodings.
    """
    return _small_row(name, num_updates=3600, decay_start=1200, decay_every=600)


def wmt_news_row(name: str) -> Experiment:
    """A model of the news: few sentences, which are longer; about an hour on a core, 8 epochs.

    Args:
        name: as for `multi30k_row`.
    """
    return _small_row(name, num_updates=2500, decay_start=900, decay_every=450)


def _small_row(name: str, num_updates: int, decay_start: int, decay_every: int) -> Experiment:
    """A model for small corpora, and its training with a rate that falls by half at intervals."""
    model = ModelConfig(
        embedding_dim=SMALL_UNITS,
        encoder_units=SMALL_UNITS,
        decoder_units=SMALL_UNITS,
        attention_units=SMALL_UNITS,
        encoder_layers=1,
        decoder_layers=1,
        tied_embeddings="target",
        dropout=0.3,
        initializer="uniform_0.1",
        **attention_options(name),
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
    return Experiment(model, training, {})


def attention_options(name: str) -> dict[str, Any]:
    """The options of a model that a row's name says: none, bahdanau, k32, k32_pe."""
    attention, _, encoding = name.partition("_")
    if attention.startswith("k"):
        attention = f"k_memory:{attention.removeprefix('k')}"
    # "mean_one" copies best of the three readings (results/ambiguities).
    return {"attention": attention} | ({"position_encoding": "mean_one"} if encoding else {})
