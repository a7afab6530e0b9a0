"""The sizes of a model that follow from its data."""

import dataclasses
from pathlib import Path

from seq2seq_memattn.config import ModelConfig
from seq2seq_memattn.data.manifest import Manifest
from seq2seq_memattn.vocabulary import vocabulary_from_dict

FROM_DATA = ("source_vocab_size", "target_vocab_size")  # no flags: the data decide them


def longest_source(manifest: Manifest) -> int:
    """Tokens of the longest source, end token included, that training and validation read."""
    read = (manifest.splits[name] for name in ("train", "valid") if name in manifest.splits)
    return max(split.max_source_length for split in read)


def fit_to_data(model: ModelConfig, manifest: Manifest, data_dir: Path) -> ModelConfig:
    """Returns the configuration with the vocabulary sizes and, if needed, the longest source."""
    longest = longest_source(manifest)
    if model.needs_source_length and 0 < model.max_source_length < longest:
        raise ValueError(
            f"--max_source_length: expected at least {longest}, the longest source of {data_dir} "
            f"with its end token; got {model.max_source_length}"
        )
    needs_length = model.needs_source_length and not model.max_source_length
    return dataclasses.replace(
        model,
        source_vocab_size=vocabulary_from_dict(manifest.source_vocabulary, data_dir).size,
        target_vocab_size=vocabulary_from_dict(manifest.target_vocabulary, data_dir).size,
        max_source_length=longest if needs_length else model.max_source_length,
    )
