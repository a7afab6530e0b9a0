"""Multi30k, English-German, K = 32: Table 2 in miniature, for two CPU cores.

Command: python -m experiments.reproduce table2 --scale=small --rows=multi30k_en_de_k32
Obtained: see results/table2.
"""

from experiments.text_rows import multi30k_row

EXPERIMENT = multi30k_row("k32")
