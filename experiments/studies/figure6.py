"""Figure 6: where K = 32 slots look when copying.

Britz, Guan and Luong (2017): alignments of models of Table 1, trained separately.
"""

import dataclasses

from experiments.reproduction.claims import Claim, Verdict, by_eye
from experiments.reproduction.pages import sources
from experiments.reproduction.results import Results
from experiments.reproduction.rows import Row, Scale
from experiments.studies import table1
from experiments.studies._alignments import WHAT, draw_sample
from experiments.studies._curves import scores_of

RUNS_OF = "unseen_lengths"  # the study that trains the weights from which the first model starts
LENGTH, SHORTER = 100, 50  # symbols
UPDATES = 2000  # enough, starting from the weights for 50 symbols
JUDGED: Verdict = "reproduced"  # with softmaxes
JUDGED_SIGMOIDS: Verdict = "undecided"
INTRODUCTION = f"""
Where do 32 slots look when copying? The paper's Figure 6 has the attention scores on a sample of
the copy task with L = 100, with each attention vector highlighted. With softmax, they form a nearly
linear map from source to target. With sigmoid, the memory is spread over the source, and each step
reads several neighbouring slots. Here: K = 32 and L = {LENGTH}, one model with softmax for both
scores and one with sigmoid, a sample of {LENGTH} symbols. Models are trained as in Table 1; at
small scale, they start from weights for L = {SHORTER} and take at most {UPDATES:,} updates.

{WHAT}
"""


def rows(scale: Scale) -> list[Row]:
    """Rows of Table 1, with softmaxes and with sigmoids.

    At smaller scales, each is preceded by the row whose weights it starts from.
    """
    of_lengths = [table1.row(length, "k32", scale) for length in (SHORTER, LENGTH)]
    found = []
    for first, row in (of_lengths, map(_with_sigmoids, of_lengths)):
        if scale == "full":
            found.append(row)
            continue
        name = f"{row.name}_from_{SHORTER}"
        options = {**row.options, "num_updates": min(UPDATES, row.options["num_updates"])}
        last = dataclasses.replace(row, name=name, options=options, init_from=first.name)
        found += [first, last]
    return found


def _with_sigmoids(row: Row) -> Row:
    options = {**row.options, "encoder_score": "sigmoid", "decoder_score": "sigmoid"}
    name, label = f"{row.name}_sigmoid_sigmoid", f"{row.label}, sigmoid / sigmoid"
    return dataclasses.replace(row, name=name, options=options, label=label)


def claims(found: Results) -> list[Claim]:
    """Softmaxes form a nearly linear map from source to target; sigmoids read several slots."""
    drawn = [result for result in found if result["length"] == LENGTH]
    with_sigmoids = [one for one in drawn if scores_of(one) == "sigmoid / sigmoid"]
    others = [one for one in drawn if one not in with_sigmoids]
    return [
        by_eye("32 slots copy along a linear map", "with softmax", others, JUDGED),
        by_eye("each step reads several slots", "with sigmoid", with_sigmoids, JUDGED_SIGMOIDS),
    ]


tables = sources
draw = draw_sample(LENGTH)
