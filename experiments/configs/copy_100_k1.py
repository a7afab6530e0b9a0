"""Table 1, L = 100, K = 1.

Command: python -m experiments.reproduce table1 --scale=full --rows=copy_100_k1
Hardware of the paper: one Nvidia K40m. Expected (paper): BLEU 87.42, 7.32 s to decode.
Obtained: at scale small, see results/table1.md; not run at full scale.
"""

from experiments.copy_rows import copy_row

EXPERIMENT = copy_row("k_memory:1", max_length=100, bleu=87.42, seconds=7.32)
