"""Table 2, English-German, K = 32.

Command: python -m experiments.reproduce table2 --scale=full --rows=wmt17_en_de_k32
Hardware of the paper: 8 workers with one GPU each.
Expected (paper): BLEU 26.20 on the validation set, 28.82 on newstest2016.
Obtained: not run; 1M updates need such hardware.
"""

from experiments.text_rows import wmt17_row

EXPERIMENT = wmt17_row("en_de", "k32")
