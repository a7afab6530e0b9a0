"""Table 1, L = 50, Bahdanau attention.

Command: python -m experiments.reproduce table1 --scale=full --rows=copy_50_bahdanau
Hardware of the paper: one Nvidia K40m. Expected (paper): BLEU 99.94, 6.46 s to decode.
Obtained: at scale small, see results/table1.md; not run at full scale.
"""

from experiments.copy_rows import copy_row

EXPERIMENT = copy_row("bahdanau", max_length=50, bleu=99.94, seconds=6.46)
