"""Tables of hyperparameters: those of a paper beside ours, which come from presets."""

from collections.abc import Callable, Mapping, Sequence

from experiments.reproduction.pages import markdown_table
from seq2seq_memattn.config import ModelConfig, TrainingConfig
from seq2seq_memattn.presets.preset import Preset

PRINTED = "over the slots, as printed"
INITIALISERS = {
    "reference": "uniform 0.04, Glorot in dense layers",
    "glorot": "Glorot",
    "uniform_0.1": "uniform 0.1",
}
AXES = {"time": "over the source", "slots": PRINTED}
TIED = {"none": "", "target": ", shared with the output layer", "all": ", all shared"}
NOT_GIVEN = "not given (google/seq2seq: uniform 0.04)"

# The paper's settings of the copy task (section 4.1.1) and of translation (4.2.1).
COPY = {
    "encoder": "2 layers of 256 units, bidirectional",
    "decoder": "2 layers of 256 units",
    "embeddings": "256",
    "softmax of equation 5": PRINTED,
    "scores, encoder / decoder": "not given",
    "initialisation": NOT_GIVEN,
    "dropout": "0.2",
    "batch": "128",
    "learning rate of Adam": "0.0001",
    "updates at most": "200,000",
}
TRANSLATION = {
    "encoder": "2 layers of 512 units, bidirectional",
    "decoder": "2 layers of 512 units",
    "embeddings": "512",
    "softmax of equation 5": PRINTED,
    "scores, encoder / decoder": "best of four pairs on the validation set",
    "initialisation": NOT_GIVEN,
    "dropout": "0.2",
    "label smoothing": "not mentioned",
    "batch": "128, 8 workers",
    "learning rate of Adam": "0.0001",
    "updates at most": "1,000,000",
}

# The settings of Shu and Nakayama (2017), sections 5.1 and 5.4.
WORDS = {
    "encoder": "1 layer of 1,000 units in each direction",
    "decoder": "1 layer of 1,000 units",
    "embeddings": "1,000",
    "readout": "600",
    "initialisation": "not given",
    "dropout": "not mentioned",
    "batch": "64",
    "learning rate of Adam": "0.0001, later falls in steps",
    "learning rate halved at every epoch": "from the 4th of 6",
    "updates at most": "about 356,000 (de-en), 122,000 (en-ja)",
    "beam size": "20",
}
CHARACTERS = {
    **WORDS,
    "encoder": "1 layer of 500 units in each direction",
    "decoder": "1 layer of 500 units",
    "embeddings": "100",
    "learning rate halved at every epoch": "from the 18th of 20",
    "updates at most": "about 406,000",
}


def _axis(model: ModelConfig) -> str:
    return AXES[model.normalise_over] if model.encoder_score == "softmax" else "none, a sigmoid"


def _rate(training: TrainingConfig) -> str:
    """The learning rate and its schedule."""
    how = "in steps" if training.decay_staircase else "exponentially"
    falls = {
        "constant": "",
        "inverse_sqrt": ", later falls with the inverse root of the updates",
        "exponential": f", later falls {how}",
        "plateau": f", times {training.decay_rate:g} when validation BLEU does not rise",
    }
    warmup = (
        f" after {training.warmup_updates:,} warm-up updates" if training.warmup_updates else ""
    )
    return f"{training.learning_rate:g}{warmup}{falls[training.schedule]}"


OURS: dict[str, Callable[[ModelConfig, TrainingConfig], str]] = {
    "encoder": lambda model, training: (
        f"{_layers(model.encoder_layers)} of {model.encoder_units} units in each direction"
    ),
    "decoder": lambda model, training: (
        f"{_layers(model.decoder_layers)} of {model.decoder_units} units"
    ),
    "embeddings": lambda model, training: f"{model.embedding_dim}{TIED[model.tied_embeddings]}",
    "softmax of equation 5": lambda model, training: _axis(model),
    "scores, encoder / decoder": lambda model, training: (
        f"{model.encoder_score} / {model.decoder_score}"
    ),
    "readout": lambda model, training: f"{model.mixing_units}",
    "initialisation": lambda model, training: INITIALISERS[model.initializer],
    "dropout": lambda model, training: f"{model.dropout:g}",
    "label smoothing": lambda model, training: f"{training.label_smoothing:g}",
    "batch": lambda model, training: f"{training.batch_size}",
    "learning rate of Adam": lambda model, training: _rate(training),
    "learning rate halved at every epoch": lambda model, training: (
        f"from the {training.decay_start // training.decay_every + 2}th of "
        f"{training.num_updates // training.decay_every}"
    ),
    "updates at most": lambda model, training: f"{training.num_updates:,}",
    "beam size": lambda model, training: f"{training.beam_size}",
}


def _layers(number: int) -> str:
    return f"{number} layer{'s' if number > 1 else ''}"


def setup_table(
    paper: Mapping[str, str],
    presets: Sequence[Preset],
    corpora: Sequence[tuple[str, str, str]] = (),
) -> str:
    """A table of settings: the paper's, and ours.

    Args:
        paper: the paper's settings by name, such as `COPY`.
        presets: our settings. If they differ in a setting, the table has each of its values.
        corpora: further lines, for the top of the table.
    """
    lines = [
        (
            name,
            theirs,
            "; ".join(dict.fromkeys(OURS[name](one.model, one.training) for one in presets)),
        )
        for name, theirs in paper.items()
    ]
    return markdown_table(("setting", "paper", "here"), [*corpora, *lines])
