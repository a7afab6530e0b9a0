"""Table 1, L = 100, no attention.

Command: python -m experiments.reproduce table1 --scale=full --rows=copy_100_none
Hardware of the paper: one Nvidia K40m. Expected (paper): BLEU 73.99, 6.33 s to decode.
Obtained: at scale small, see results/table1.md; not run at full scale.
"""

from experiments.copy_rows import copy_row

EXPERIMENT = copy_row("none", max_length=100, bleu=73.99, seconds=6.33)
