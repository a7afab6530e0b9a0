"""Table 1, L = 50, K = 1.

Command: python -m experiments.reproduce table1 --scale=full --rows=copy_50_k1
Hardware of the paper: one Nvidia K40m. Expected (paper): BLEU 98.86, 4.33 s to decode.
Obtained: at scale small, see results/table1.md; not run at full scale.
"""

from experiments.copy_rows import copy_row

EXPERIMENT = copy_row("k_memory:1", max_length=50, bleu=98.86, seconds=4.33)
