"""Prepares Multi30k, 29,000 image captions: English to or from German, French or Czech.

    python -m data_prep.multi30k --pair=en-de --output_dir=D [--source_dir=D]

Downloads the files, or takes them from a folder that has them. The test sets are those of 2016
(flickr) and 2017 (mscoco). For research and other non-commercial use; see
https://github.com/multi30k/dataset.
"""

from data_prep.known_corpora import run

if __name__ == "__main__":
    run("multi30k")
