"""Table 1, L = 200, K = 32.

Command: python -m experiments.reproduce table1 --scale=full --rows=copy_200_k32
Hardware of the paper: one Nvidia K40m. Expected (paper): BLEU 100.00, 9.59 s to decode.
Obtained: at scale small, see results/table1.md; not run at full scale.
"""

from experiments.copy_rows import copy_row

EXPERIMENT = copy_row("k_memory:32", max_length=200, bleu=100.0, seconds=9.59)
