r"""Prepares WMT'17 news translation, en-cs, en-de, en-fi or en-tr, as the memory paper used it.

    python -m data_prep.wmt17 --pair=en-de --output_dir=D [--source_dir=D]

Downloads the preprocessed release (several GB for en-de, en-cs and en-fi; an interrupted download
goes on where it stopped), or takes the files from a folder that has them: `corpus.tc.{en,de}.gz`,
`dev.tgz` and `true.tgz`, or what these unpack to. Then makes a data directory as
`data_prep.parallel_text` does: 16,000 pieces for both languages, newstest2015 for validation
(newsdev2016 for Turkish) and newstest2016 for the test. Which files those are stands in
`corpora/wmt17.toml`. For research; see https://www.statmt.org/wmt17/translation-task.html.
"""

from data_prep.known_corpora import run

if __name__ == "__main__":
    run("wmt17")
