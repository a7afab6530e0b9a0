"""Table 2, English-Czech, Bahdanau attention.

Command: python -m experiments.reproduce table2 --scale=full --rows=wmt17_en_cs_bahdanau
Hardware of the paper: 8 workers with one GPU each.
Expected (paper): BLEU 18.61 on the validation set, 19.19 on newstest2016.
Obtained: not run; 1M updates need such hardware.
"""

from experiments.text_rows import wmt17_row

EXPERIMENT = wmt17_row("en_cs", "bahdanau")
