"""Prepares small_parallel_enja, 50,000 short sentences, English to or from Japanese, in words.

    python -m data_prep.small_parallel_enja --pair=en-ja --output_dir=D --kind=words

Downloads the files, or takes them from a folder that has them (`--source_dir`). Both sides are
tokenised already. See https://github.com/odashi/small_parallel_enja, which states no licence.
"""

from data_prep.known_corpora import run

if __name__ == "__main__":
    run("small_parallel_enja")
