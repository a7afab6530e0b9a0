"""Shu and Nakayama (2017), Table 1, German-English, words: global attention.

Command: python -m experiments.train --config=flexible_de_en_global ...
Expected (paper, hardware not named): window 20.7, BLEU 20.62.
Obtained: not run at this size.
"""

from experiments.flexible_rows import flexible_row

EXPERIMENT = flexible_row("de_en", "global")
