"""This project under the peers' harness: the same data, clock and output check as the others.

    python -m experiments.benchmarks.peer_adapter PEERS_DIR [the harness's own flags]

`--attention` takes this project's names; `--option no_feeding` switches input feeding off,
`--option plain` decodes without XLA, `--option bfloat16` with products of bfloat16.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import seq2seq_memattn.commands.shared.cli  # noqa: F401 - keeps TensorFlow's start quiet
from experiments.benchmarks.timed_work import endless
from seq2seq_memattn.compute.hardware import use_threads
from seq2seq_memattn.config import ModelConfig, Precision, TrainingConfig
from seq2seq_memattn.data.batching import make_batch, with_ends
from seq2seq_memattn.vocabulary import NUM_SPECIAL_IDS


def model_config(cfg: Any) -> ModelConfig:
    """The harness's sizes as a model."""
    return ModelConfig(
        source_vocab_size=cfg.vocab + NUM_SPECIAL_IDS,
        target_vocab_size=cfg.vocab + NUM_SPECIAL_IDS,
        embedding_dim=cfg.emb,
        encoder_units=cfg.units,
        decoder_units=cfg.units,
        attention_units=cfg.units,
        attention=cfg.attention,
        input_feeding="no_feeding" not in cfg.extra.option,
        dropout=0.0,
        initializer="uniform_0.1",
    )


def precision(cfg: Any) -> Precision:
    """The harness's number format."""
    return "bfloat16_products" if "bfloat16" in cfg.extra.option else "float32"


def as_examples(batch: Any) -> list[np.ndarray]:
    """The harness's padded ids as ours, without padding."""
    ids = (batch.src + NUM_SPECIAL_IDS).astype(np.int32)
    return [row[:length] for row, length in zip(ids, batch.lengths, strict=True)]


def build_decoder(cfg: Any) -> Callable[[Any], list[list[int]]]:
    """Decodes a batch; every hypothesis has its source's length."""
    from seq2seq_memattn.compute.precision import dtype_policy
    from seq2seq_memattn.model import Seq2Seq
    from seq2seq_memattn.search.compiled_search import CompiledSearch

    use_threads(cfg.threads)
    search = CompiledSearch(
        endless(Seq2Seq(model_config(cfg), dtype=dtype_policy(precision(cfg)))),
        cfg.beam,
        n_best=1,
        length_penalty_exponent=0.0,
        batch_size=cfg.batch,
        jit_compile="plain" not in cfg.extra.option,
    )

    def decode(batch: Any) -> list[list[int]]:
        # As many steps as if each hypothesis ended there.
        found = search(with_ends(as_examples(batch)), batch.lengths + 1)
        return [
            (row[:length] - NUM_SPECIAL_IDS).tolist()
            for row, length in zip(found.tokens[:, 0], batch.lengths, strict=True)
        ]

    return decode


def build_trainer(cfg: Any) -> Callable[[Any], float]:
    """One update on a batch."""
    from seq2seq_memattn.training.make import make_parts

    use_threads(cfg.threads)
    config = TrainingConfig(batch_size=cfg.batch, precision=precision(cfg))
    _, _, updater = make_parts(model_config(cfg), config)

    def step(batch: Any) -> float:
        examples = as_examples(batch)
        return updater(make_batch(examples, examples)).loss

    return step


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("error: expected the folder of the harness as the first argument")
    sys.path.insert(0, sys.argv.pop(1))
    import tensorflow

    import_module("common").main(
        "seq2seq_memattn", {"tensorflow": tensorflow.__version__}, build_decoder, build_trainer
    )
