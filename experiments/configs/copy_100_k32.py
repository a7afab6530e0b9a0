"""Table 1, L = 100, K = 32.

Command: python -m experiments.reproduce table1 --scale=full --rows=copy_100_k32
Hardware of the paper: one Nvidia K40m. Expected (paper): BLEU 99.99, 7.65 s to decode.
Obtained: at scale small, see results/table1.md; not run at full scale.
"""

from experiments.copy_rows import copy_row

EXPERIMENT = copy_row("k_memory:32", max_length=100, bleu=99.99, seconds=7.65)
