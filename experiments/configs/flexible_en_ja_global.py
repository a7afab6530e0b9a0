"""Shu and Nakayama (2017), Table 1, English-Japanese, words: global attention.

Command: python -m experiments.train --config=flexible_en_ja_global ...
Expected (paper, hardware not named): window 24.4, BLEU 34.87, RIBES 0.810.
Obtained: not run at this size.
"""

from experiments.flexible_rows import flexible_row

EXPERIMENT = flexible_row("en_ja", "global")
