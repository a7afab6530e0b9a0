"""Sizes for Multi30k.

Chooses the size of vocabulary and model for all rows by validation BLEU. Each candidate is trained
with Bahdanau's attention, the baseline, so that the choice does not favour the memory.
"""

import dataclasses

from experiments.reproduction.pages import learning_curves, markdown_table, prose, trained_at
from experiments.reproduction.results import Results
from experiments.reproduction.rows import Row, Scale
from experiments.studies import table2

WIDTHS = ("embedding_dim", "encoder_units", "decoder_units", "attention_units")
BASELINE = "multi30k_en_de_bahdanau"
# Size of the joint vocabulary, and units of all layers.
CANDIDATES = ((2000, 256), (4000, 256), (8000, 256), (4000, 384))
# The learning rate falls as far as in Table 2, but sooner, because training is shorter.
BUDGET = {"num_updates": 2000, "decay_start": 700, "decay_every": 350}


def introduction(scale: Scale) -> str:
    """The text of the page before its table."""
    text = (
        "Which size of vocabulary and model suits Multi30k English-German? All models have "
        "Bahdanau's attention and one seed. BLEU is validation BLEU of tokenised text"
    )
    if scale == "tiny":
        return f"{text}."
    return (
        f"{text} (beam 10) after at most {BUDGET['num_updates']:,} updates of 64 sentences. The "
        "learning rate falls as far as in Table 2, but sooner, so scores here cannot be compared "
        "with scores there after as many updates."
    )


def rows(scale: Scale) -> list[Row]:
    """One row per candidate; "full" is the same as "small"."""
    found = [_row(pieces, units) for pieces, units in CANDIDATES]
    return [table2.tiny(row) for row in found] if scale == "tiny" else found


def _row(pieces: int, units: int) -> Row:
    label = f"{pieces:,} subwords, {units} units"
    return dataclasses.replace(
        table2.text_row(BASELINE, pieces),
        name=f"pieces{pieces}_units{units}",
        options={**BUDGET, **dict.fromkeys(WIDTHS, units)},
        label=label,
        curve=label,
        tests=(),  # validation alone decides
    )


def tables(found: Results) -> str:
    """The table."""
    lines = [
        [
            result["label"],
            f"{result['bleu']:.2f}",
            f"{result['evaluation']['parameters'] / 1e6:.2f} M",
            f"{result['training']['seconds'] / 60:.0f}",
        ]
        for result in found
    ]
    table = markdown_table(["size", "valid BLEU", "parameters", "minutes"], lines)
    return f"{table}\n\n{prose(trained_at(found))}\n"


draw = learning_curves(
    lambda results: {"valid": list(results)}, lambda group: "Multi30k, en-de: Bahdanau by size"
)
