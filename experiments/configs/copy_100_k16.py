"""Table 1, L = 100, K = 16.

Command: python -m experiments.reproduce table1 --scale=full --rows=copy_100_k16
Hardware of the paper: one Nvidia K40m. Expected (paper): BLEU 99.97, 7.50 s to decode.
Obtained: at scale small, see results/table1.md; not run at full scale.
"""

from experiments.copy_rows import copy_row

EXPERIMENT = copy_row("k_memory:16", max_length=100, bleu=99.97, seconds=7.5)
