"""Shu and Nakayama (2017), Table 1, English-Japanese, words: Flexible Attention.

Command: python -m experiments.train --config=flexible_en_ja_flexible ...
Expected (paper, hardware not named): window 24.4, BLEU 35.01, RIBES 0.814.
Obtained: not run at this size.
"""

from experiments.flexible_rows import flexible_row

EXPERIMENT = flexible_row("en_ja", "flexible")
