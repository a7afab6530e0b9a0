"""Table 1, L = 200, K = 16.

Command: python -m experiments.reproduce table1 --scale=full --rows=copy_200_k16
Hardware of the paper: one Nvidia K40m. Expected (paper): BLEU 99.98, 9.53 s to decode.
Obtained: at scale small, see results/table1.md; not run at full scale.
"""

from experiments.copy_rows import copy_row

EXPERIMENT = copy_row("k_memory:16", max_length=200, bleu=99.98, seconds=9.53)
