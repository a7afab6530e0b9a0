"""Prepares Multi30k, 29,000 image captions: English to or from German, French or Czech.

    python -m data_prep.multi30k --pair=en-de --output_dir=D [--source_dir=D] [--tokenised]

Downloads the files, or takes them from a folder that has them. The test sets are those of 2016
(flickr) and 2017 (mscoco). For research and other non-commercial use; see
https://github.com/multi30k/dataset.
"""

import dataclasses
from typing import ClassVar

from data_prep.known_corpora import CorpusOptions, prepare
from data_prep.text_preparation import run_text_command
from seq2seq_memattn.config import option
from seq2seq_memattn.data.manifest import Manifest


@dataclasses.dataclass(frozen=True, kw_only=True)
class Multi30kOptions(CorpusOptions):
    """Options of this command."""

    FREE: ClassVar[tuple[str, ...]] = (*CorpusOptions.FREE, "tokenised")  # the task's name says it

    tokenised: bool = option(
        False, "the release's tokenised and lower-cased text, not the text as written: for words"
    )


def prepare_multi30k(options: Multi30kOptions) -> tuple[Manifest, bool]:
    """Makes the data directory unless it is there; see `prepare_text`."""
    return prepare("multi30k_tokenised" if options.tokenised else "multi30k", options)


if __name__ == "__main__":
    run_text_command("data_prep.multi30k", Multi30kOptions, prepare_multi30k)
