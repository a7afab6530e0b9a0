"""Table 2, English-Finnish, K = 64, position encodings.

Command: python -m experiments.reproduce table2 --scale=full --rows=wmt17_en_fi_k64_pe
Hardware of the paper: 8 workers with one GPU each.
Expected (paper): BLEU 16.91 on the validation set, 17.03 on newstest2016.
Obtained: not run; 1M updates need such hardware.
"""

from experiments.text_rows import wmt17_row

EXPERIMENT = wmt17_row("en_fi", "k64_pe")
