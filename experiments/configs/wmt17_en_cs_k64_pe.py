"""Table 2, English-Czech, K = 64, position encodings.

Command: python -m experiments.reproduce table2 --scale=full --rows=wmt17_en_cs_k64_pe
Hardware of the paper: 8 workers with one GPU each.
Expected (paper): BLEU 19.73 on the validation set, 20.36 on newstest2016.
Obtained: not run; 1M updates need such hardware.
"""

from experiments.text_rows import wmt17_row

EXPERIMENT = wmt17_row("en_cs", "k64_pe")
