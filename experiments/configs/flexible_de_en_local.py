"""Shu and Nakayama (2017), Table 1, German-English, words: local attention (local-p).

Command: python -m experiments.train --config=flexible_de_en_local ...
Expected (paper, hardware not named): window 15.7, BLEU 21.09.
Obtained: not run at this size.
"""

from experiments.flexible_rows import flexible_row

EXPERIMENT = flexible_row("de_en", "local")
