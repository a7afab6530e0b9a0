"""Table 2, English-German, K = 64, position encodings.

Command: python -m experiments.reproduce table2 --scale=full --rows=wmt17_en_de_k64_pe
Hardware of the paper: 8 workers with one GPU each.
Expected (paper): BLEU 27.31 on the validation set, 30.61 on newstest2016.
Obtained: not run; 1M updates need such hardware.
"""

from experiments.text_rows import wmt17_row

EXPERIMENT = wmt17_row("en_de", "k64_pe")
