"""Table 2, English-Turkish, Bahdanau attention.

Command: python -m experiments.reproduce table2 --scale=full --rows=wmt17_en_tr_bahdanau
Hardware of the paper: 8 workers with one GPU each.
Expected (paper): BLEU 13.76 on the validation set; there is no test score.
Obtained: not run; 1M updates need such hardware.
"""

from experiments.text_rows import wmt17_row

EXPERIMENT = wmt17_row("en_tr", "bahdanau")
