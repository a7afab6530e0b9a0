"""Table 1, L = 50, K = 4.

Command: python -m experiments.reproduce table1 --scale=full --rows=copy_50_k4
Hardware of the paper: one Nvidia K40m. Expected (paper): BLEU 99.95, 4.48 s to decode.
Obtained: at scale small, see results/table1.md; not run at full scale.
"""

from experiments.copy_rows import copy_row

EXPERIMENT = copy_row("k_memory:4", max_length=50, bleu=99.95, seconds=4.48)
