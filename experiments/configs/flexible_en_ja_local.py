"""Shu and Nakayama (2017), Table 1, English-Japanese, words: local attention (local-p).

Command: python -m experiments.train --config=flexible_en_ja_local ...
Expected (paper, hardware not named): window 18.4, BLEU 34.52, RIBES 0.809.
Obtained: not run at this size.
"""

from experiments.flexible_rows import flexible_row

EXPERIMENT = flexible_row("en_ja", "local")
