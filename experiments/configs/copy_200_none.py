"""Table 1, L = 200, no attention.

Command: python -m experiments.reproduce table1 --scale=full --rows=copy_200_none
Hardware of the paper: one Nvidia K40m. Expected (paper): BLEU 32.64, 9.10 s to decode.
Obtained: at scale small, see results/table1.md; not run at full scale.
"""

from experiments.copy_rows import copy_row

EXPERIMENT = copy_row("none", max_length=200, bleu=32.64, seconds=9.1)
