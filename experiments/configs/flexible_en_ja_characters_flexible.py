"""Shu and Nakayama (2017), Table 2, English-Japanese, characters: Flexible Attention.

Command: python -m experiments.train --config=flexible_en_ja_characters_flexible ...
Expected (paper, hardware not named): window 144.9, BLEU 26.68, RIBES 0.763.
Obtained: not run at this size.
"""

from experiments.flexible_rows import flexible_row

EXPERIMENT = flexible_row("en_ja_characters", "flexible")
