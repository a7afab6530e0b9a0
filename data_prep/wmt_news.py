"""Prepares the test sets of the WMT news tasks as a small corpus of long sentences: en-de, en-cs.

    python -m data_prep.wmt_news --pair=en-de --source_dir=D --output_dir=D

The folder has `newstest2008.en.gz` to `newstest2017.de.gz`, or them in a folder `en-de`. 2008 to
2014 train, 2015 validates, 2017 tests. For research use; see
https://www.statmt.org/wmt17/translation-task.html.
"""

from data_prep.known_corpora import run

if __name__ == "__main__":
    run("wmt_news")
