"""Table 1, L = 50, no attention.

Command: python -m experiments.reproduce table1 --scale=full --rows=copy_50_none
Hardware of the paper: one Nvidia K40m. Expected (paper): BLEU 97.37, 3.90 s to decode.
Obtained: at scale small, see results/table1.md; not run at full scale.
"""

from experiments.copy_rows import copy_row

EXPERIMENT = copy_row("none", max_length=50, bleu=97.37, seconds=3.9)
