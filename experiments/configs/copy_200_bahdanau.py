"""Table 1, L = 200, Bahdanau attention.

Command: python -m experiments.reproduce table1 --scale=full --rows=copy_200_bahdanau
Hardware of the paper: one Nvidia K40m. Expected (paper): BLEU 100.00, 14.28 s to decode.
Obtained: at scale small, see results/table1.md; not run at full scale.
"""

from experiments.copy_rows import copy_row

EXPERIMENT = copy_row("bahdanau", max_length=200, bleu=100.0, seconds=14.28)
