"""Table 2, English-Finnish, K = 32.

Command: python -m experiments.reproduce table2 --scale=full --rows=wmt17_en_fi_k32
Hardware of the paper: 8 workers with one GPU each.
Expected (paper): BLEU 15.90 on the validation set, 15.87 on newstest2016.
Obtained: not run; 1M updates need such hardware.
"""

from experiments.text_rows import wmt17_row

EXPERIMENT = wmt17_row("en_fi", "k32")
