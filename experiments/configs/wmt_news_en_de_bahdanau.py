"""The news, English-German, Bahdanau: longer sentences, for two CPU cores.

Command: python -m experiments.reproduce table2 --scale=small --rows=wmt_news_en_de_bahdanau
Obtained: see results/table2.
"""

from experiments.text_rows import wmt_news_row

EXPERIMENT = wmt_news_row("bahdanau")
