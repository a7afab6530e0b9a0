"""Figure 2: the surface of position encodings.

Equation 10 of Britz, Guan and Luong (2017).
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from experiments.reproduction.pages import markdown_table
from experiments.reproduction.results import Result, Results
from experiments.reproduction.study import Study

# The paper does not give K and S. These are the slots of its Figure 8 and the default length at
# which google/seq2seq cuts sources. Both are even, so K/2 is a slot and S/2 a position.
NUM_SLOTS = 32
MAX_SOURCE_LENGTH = 50

INTRODUCTION = f"""
What do position encodings look like? The paper's Figure 2 is the surface of L[k, s] = (1 - k/K)(1 -
s/S) + (k/K)(s/S), equation 10, by which scores are multiplied. The paper calls the surface
symmetric, with a stationary point of value 0.5. The surface is high for the first slots at the
beginning of the source and for the last slots at its end. The paper does not give K and S. Here K
is {NUM_SLOTS}, as in its Figure 8, and S is {MAX_SOURCE_LENGTH}, the default length at which
google/seq2seq cuts sources; k runs from 1 to K and s from 0 to S - 1. The values come from
`seq2seq_memattn/attention/position_encoding.py`, neither masked nor renormalised. Nothing is
trained or random, so every scale gives the same figure.
"""


def results(study: Study) -> list[Result]:
    """The surface, which needs no training."""
    del study
    return [{"name": "surface"}]


def tables(results: Results) -> str:
    """Values of the surface at its corners and edges and in the middle."""
    del results
    encodings = _encodings()
    positions = (0, MAX_SOURCE_LENGTH // 2, MAX_SOURCE_LENGTH - 1)
    lines = [
        [f"k = {slot}", *(f"{encodings[s, slot - 1]:.3f}" for s in positions)]
        for slot in (1, NUM_SLOTS // 2, NUM_SLOTS)
    ]
    return markdown_table(["L[k, s]", *(f"s = {s}" for s in positions)], lines) + "\n"


def draw(study: Study, results: Results, stem: Path) -> dict[str, str]:
    """Draws the surface."""
    from seq2seq_memattn import plots

    del study, results
    name = f"k{NUM_SLOTS}_s{MAX_SOURCE_LENGTH}"
    title = f"Position encodings, K = {NUM_SLOTS}, S = {MAX_SOURCE_LENGTH}"
    figure = plots.position_surface(_encodings(), MAX_SOURCE_LENGTH, title)
    plots.save(figure, stem.with_name(f"{stem.name}_{name}"))
    return {name: title}


def _encodings() -> npt.NDArray[np.float32]:
    """Equation 10: float [S, K]."""
    from keras import ops

    from seq2seq_memattn.attention.position_encoding import position_encoding

    mask = np.ones([1, MAX_SOURCE_LENGTH], bool)
    found = position_encoding(NUM_SLOTS, MAX_SOURCE_LENGTH, mask, "masked", "float32")
    return ops.convert_to_numpy(found)[0]
