r"""Prepares WMT'17 news translation, as Britz et al. (2017) used it: en-cs, en-de, en-fi or en-tr.

    memattn wmt17 --pair=en-de --output_dir=D

Downloads the preprocessed release (several GB for en-de, en-cs and en-fi; interrupted downloads are
resumed), or reads the files from `--source_dir`: `corpus.tc.{en,de}.gz`, `dev.tgz` and `true.tgz`,
or the unpacked archives. Then makes a data directory as `memattn parallel_text` does: 16,000
subwords shared by both languages, newstest2015 for validation (newsdev2016 for Turkish) and
newstest2016 for testing. `preparation/corpora/wmt17.toml` lists the files. For research use; see
https://www.statmt.org/wmt17/translation-task.html.
"""

from functools import partial

from seq2seq_memattn.commands.shared import preparing
from seq2seq_memattn.preparation.known_corpora import CorpusOptions, prepare

define, main = preparing.command("wmt17", CorpusOptions, partial(prepare, "wmt17"))
