"""Measures this project: python -m experiments.benchmarks.peers.ours --attention bahdanau.

`--attention` accepts all attentions of this project. Options: `no_feeding` turns input feeding off,
`plain` decodes in a plain TensorFlow graph without XLA, `bfloat16` multiplies in bfloat16, `int8`
decodes with int8 matrix products.
"""

import numpy as np

import seq2seq_memattn.commands.shared.cli  # noqa: F401 - keeps TensorFlow's start quiet
from experiments.benchmarks.peers.protocol import Batch, Decode, Setting, System, Update, run
from experiments.benchmarks.timed_work import endless
from seq2seq_memattn.compute import hardware
from seq2seq_memattn.compute.precision import dtype_policy
from seq2seq_memattn.config import DecodingPrecision, ModelConfig, TrainingConfig
from seq2seq_memattn.data.batching import make_batch, with_ends
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.runs.directory import versions
from seq2seq_memattn.search.compiled_search import CompiledSearch
from seq2seq_memattn.search.options import SearchOptions
from seq2seq_memattn.training.make import make_parts
from seq2seq_memattn.vocabulary import NUM_SPECIAL_IDS


def model_config(setting: Setting) -> ModelConfig:
    """Returns the options of a model with the setting's sizes."""
    return ModelConfig(
        source_vocab_size=setting.vocab + NUM_SPECIAL_IDS,
        target_vocab_size=setting.vocab + NUM_SPECIAL_IDS,
        embedding_dim=setting.units,
        encoder_units=setting.units,
        decoder_units=setting.units,
        attention_units=setting.units,
        attention=setting.attention,
        input_feeding="no_feeding" not in setting.option,
        dropout=0.0,
        initializer="uniform_0.1",
    )


def precision(setting: Setting) -> DecodingPrecision:
    """Returns the setting's precision."""
    named: dict[str, DecodingPrecision] = {"bfloat16": "bfloat16_products", "int8": "int8_products"}
    return next((named[option] for option in named if option in setting.option), "float32")


def examples(batch: Batch) -> list[np.ndarray]:
    """Returns the sentences as ids of this project, without end tokens."""
    return [(sentence + NUM_SPECIAL_IDS).astype(np.int32) for sentence in batch.sentences]


def make_decoder(setting: Setting) -> Decode:
    """Returns a function that decodes with `CompiledSearch`, as `translate` does.

    On CPUs with VNNI, `translate` decodes K-memory with `int8` in the plain graph. To measure this,
    add the option `plain`.
    """
    hardware.use_threads(setting.threads)
    search = CompiledSearch(
        endless(Seq2Seq(model_config(setting), dtype=dtype_policy(precision(setting)))),
        SearchOptions(setting.beam),
        setting.batch,
        jit_compile="plain" not in setting.option,
    )

    def decode(batch: Batch) -> list[list[int]]:
        # The model never writes an end token. Its last token takes the end token's place.
        found = search(with_ends(examples(batch)), batch.lengths + 1)
        return [
            (tokens[: length - 1] - NUM_SPECIAL_IDS).tolist()
            for tokens, length in zip(found.tokens[:, 0], found.lengths[:, 0], strict=True)
        ]

    return decode


def make_trainer(setting: Setting) -> Update:
    """Returns a function that trains with the same updates as `train`."""
    hardware.use_threads(setting.threads)
    trained_in = precision(setting)
    if trained_in == "int8_products":
        raise ValueError("--option int8: expected decoding, got --train")
    config = TrainingConfig(batch_size=setting.batch, precision=trained_in)
    *_, updater = make_parts(model_config(setting), config)

    def update(batch: Batch) -> float:
        sentences = examples(batch)
        return float(updater(make_batch(sentences, sentences)).loss)

    return update


SYSTEM = System(
    "seq2seq_memattn",
    versions(),
    make_decoder,
    make_trainer,
    attentions=("k_memory:64", "bahdanau"),
    options=("no_feeding", "plain", "bfloat16", "int8"),
    any_attention=True,
)

if __name__ == "__main__":
    run(SYSTEM)
