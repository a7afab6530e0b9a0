"""Table 2, English-Finnish, K = 32, position encodings.

Command: python -m experiments.reproduce table2 --scale=full --rows=wmt17_en_fi_k32_pe
Hardware of the paper: 8 workers with one GPU each.
Expected (paper): BLEU 16.31 on the validation set, 15.86 on newstest2016.
Obtained: not run; 1M updates need such hardware.
"""

from experiments.text_rows import wmt17_row

EXPERIMENT = wmt17_row("en_fi", "k32_pe")
