"""The work that `experiments.speed` times: a model or a run, on sources of given lengths."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.reproduction.results import portable
from seq2seq_memattn.config import DecodingPrecision, ModelConfig, TrainingConfig
from seq2seq_memattn.data.batching import make_batch
from seq2seq_memattn.data.manifest import read_manifest
from seq2seq_memattn.text.files import read_lines
from seq2seq_memattn.vocabulary import END_ID, NUM_SPECIAL_IDS, vocabulary_from_dict

MODES = ("exact", "uniform", "normal", "train")  # modes with random sources
OF_DATA = ("data", "run")  # modes with sources from a data directory or a file
NEVER = -1e9  # bias of a token that must not be written
LONGEST_NORMAL = 100  # longest source of mode "normal"


@dataclasses.dataclass(frozen=True)
class Setting:
    """One row to measure.

    Args:
        attention: name of the attention.
        mode: "exact", "uniform", "normal" or "train"; "data" for a split of a data directory, with
            hypotheses of the lengths of its targets; "run" for the lines of a file.
        length: int. L, in tokens without the end token; 0 for "data" and "run".
        batch_size: int > 0.
        num_sentences: int > 0. Sentences decoded, or trained on (batch_size times updates).
        beam_size: int > 0.
        units: int > 0. Width of embeddings, cells, attention and mixing layer.
        vocab_size: int > 0. Symbols, without the special ones; for "data", those of the data.
        deviation: float >= 0. Standard deviation of the lengths in mode "normal".
        input_feeding: bool.
        precision: as in `load_run`, or in mode "train" as in `TrainingConfig`.
        jit_compile: bool. Whether XLA compiles the steps of decoding.
        folded: "auto", "yes" or "no". Whether the linear maps of the context are applied to the
            memory's rows, once per source.
        run_dir: the run of mode "run".
        source: the file of mode "run", one sentence per line.
        data_dir, split: the data of mode "data".
    """

    attention: str
    mode: str
    length: int
    batch_size: int
    num_sentences: int
    beam_size: int = 10
    units: int = 256
    vocab_size: int = 20
    deviation: float = 15.0
    input_feeding: bool = True
    precision: DecodingPrecision = "float32"
    jit_compile: bool = True
    folded: str = "auto"
    run_dir: str = ""
    source: str = ""
    data_dir: str = ""
    split: str = ""

    def model_config(self) -> ModelConfig:
        """The toy model of the paper, at these sizes."""
        size = self.vocab_size + NUM_SPECIAL_IDS
        config = ModelConfig(
            source_vocab_size=size,
            target_vocab_size=size,
            embedding_dim=self.units,
            encoder_units=self.units,
            decoder_units=self.units,
            attention_units=self.units,
            attention=self.attention,
            input_feeding=self.input_feeding,
            dropout=0.0,
            max_source_length=self.longest + 1,
        )
        if self.attention != "luong_dot":
            return config
        # Dot products need encoder outputs as wide as queries.
        return dataclasses.replace(config, encoder_projection_units=config.decoder_units)

    @property
    def longest(self) -> int:
        """The longest source that the mode can draw."""
        return LONGEST_NORMAL if self.mode == "normal" else self.length

    def described(self) -> dict[str, Any]:
        """The fields that affect the measurements in this mode, to be recorded in the row."""
        decoding, made_up = (
            ("beam_size", "jit_compile", "folded"),
            ("length", "units", "vocab_size", "input_feeding", "folded"),
        )
        left_out = {
            *({"train": decoding, "run": made_up, "data": ("length",)}.get(self.mode, ())),
            *(() if self.mode == "run" else ("run_dir", "source")),
            *(() if self.mode == "data" else ("data_dir", "split")),
            *(() if self.mode == "normal" else ("deviation",)),
        }
        shown = dataclasses.asdict(self)
        shown |= {name: portable(shown[name]) for name in ("run_dir", "source", "data_dir")}
        return {name: value for name, value in shown.items() if name not in left_out}


class Work(NamedTuple):
    """Work to be timed.

    Fields:
        batches: the parts of the work, in order; each returns its number of target tokens, end
            tokens included.
        encode: does the work before the first decoding step; None for training, runs and single
            sentences.
        num_steps: int. Steps of all batches together; 0 if `encode` is None.
    """

    batches: Sequence[Callable[[], int]]
    encode: Callable[[], Any] | None = None
    num_steps: int = 0

    def run(self) -> int:
        """Does all the work once; returns the target tokens."""
        return sum(batch() for batch in self.batches)


def make_work(setting: Setting) -> Work:
    """Builds the work of a setting."""
    if setting.mode == "run":
        return _run_work(setting)
    if setting.mode == "train":
        return _training(setting, make_sources(setting))
    return _decoding(setting, *decoding_pairs(setting))


def decoding_pairs(setting: Setting) -> tuple[list[np.ndarray], list[int]]:
    """Sources and the forced lengths of their hypotheses, both without end tokens."""
    if setting.mode == "data":
        return _pairs(setting)
    sources = make_sources(setting)
    return sources, [len(source) for source in sources]


def make_sources(setting: Setting) -> list[np.ndarray]:
    """Seeded random sources without end tokens, the same for every attention."""
    generator = np.random.default_rng([1234, setting.length, setting.num_sentences])
    if setting.mode == "exact":
        lengths = np.full(setting.num_sentences, setting.length)
    elif setting.mode == "normal":
        drawn = generator.normal(setting.length, setting.deviation, setting.num_sentences)
        lengths = np.clip(np.rint(drawn), 1, LONGEST_NORMAL).astype(int)
    else:
        lengths = generator.integers(0, setting.length + 1, setting.num_sentences)
    symbols = np.arange(NUM_SPECIAL_IDS, NUM_SPECIAL_IDS + setting.vocab_size, dtype=np.int32)
    return [generator.choice(symbols, size) for size in lengths]


def data_sizes(data_dir: Path, split: str) -> tuple[int, int]:
    """Size of the target vocabulary without the special ids, and the longest source of a split."""
    manifest = read_manifest(data_dir)
    vocabulary = vocabulary_from_dict(manifest.target_vocabulary, data_dir)
    return vocabulary.size - NUM_SPECIAL_IDS, manifest.split(split).max_source_length


def _pairs(setting: Setting) -> tuple[list[np.ndarray], list[int]]:
    """The first `num_sentences` sources of a split, without end tokens, and target lengths."""
    manifest = read_manifest(setting.data_dir)
    files = {file.role: file.path for file in manifest.split(setting.split).files}
    ids = []
    for side, spec in (
        ("source", manifest.source_vocabulary),
        ("target", manifest.target_vocabulary),
    ):
        vocabulary = vocabulary_from_dict(spec, setting.data_dir)
        lines = read_lines(Path(setting.data_dir) / files[side])[: setting.num_sentences]
        ids.append([np.asarray(vocabulary.encode(line), np.int32) for line in lines])
    return ids[0], [len(target) for target in ids[1]]


def _decoding(setting: Setting, sources: Sequence[np.ndarray], targets: Sequence[int]) -> Work:
    """The work of decoding sources, each to the given target length (without end token)."""
    import keras

    from seq2seq_memattn.compute.precision import dtype_policy
    from seq2seq_memattn.model import Seq2Seq
    from seq2seq_memattn.search.batch_decoder import sorted_batches
    from seq2seq_memattn.search.compiled_search import CompiledSearch
    from seq2seq_memattn.search.options import SearchOptions

    model = endless(Seq2Seq(setting.model_config(), dtype=dtype_policy(setting.precision)))
    batches = [
        (batch, np.array([targets[i] for i in indices], np.int32))
        for indices, batch in sorted_batches(sources, setting.batch_size)
    ]
    search = CompiledSearch(
        model,
        SearchOptions(setting.beam_size),
        setting.batch_size,
        jit_compile=setting.jit_compile,
        folded=is_folded(setting, model),
    )

    def decode(batch: np.ndarray, lengths: np.ndarray) -> int:
        # As many steps as if each hypothesis ended at its length.
        if not (search(batch, lengths + 1).lengths[:, 0] == lengths + 1).all():
            raise ValueError("a hypothesis does not have the length that was forced")
        return int((lengths + 1).sum())

    def encode() -> None:
        for batch, _ in batches:
            np.asarray(keras.tree.flatten(search.start(batch))[0])  # waits for the result

    return Work(
        [functools.partial(decode, *batch) for batch in batches],
        encode if setting.batch_size > 1 else None,  # for one sentence, one graph does everything
        sum(int(lengths.max()) + 1 for _, lengths in batches),
    )


def endless(model: Any) -> Any:
    """Keeps a model from writing the end token, so that hypotheses reach their length limits."""
    bias = np.array(model.logits.bias)
    bias[END_ID] = NEVER
    model.logits.bias.assign(bias)
    return model


def _run_work(setting: Setting) -> Work:
    """The work of decoding the lines of a file with a trained run, with ordinary search."""
    from seq2seq_memattn.runs.directory import load_run
    from seq2seq_memattn.runs.translator import SourceReader
    from seq2seq_memattn.search.batch_decoder import BatchDecoder
    from seq2seq_memattn.search.options import SearchOptions

    run = load_run(Path(setting.run_dir), precision=setting.precision)
    lines = read_lines(setting.source)[: setting.num_sentences]
    sources = SourceReader(run)([line for line in lines if line], setting.source)
    decoder = BatchDecoder(
        run.model, SearchOptions(setting.beam_size), jit_compile=setting.jit_compile
    )

    def decode() -> int:
        found = decoder(sources, setting.batch_size)
        return sum(len(best[0].tokens) + 1 for best in found)

    return Work([decode])


def is_folded(setting: Setting, model: Any) -> bool:
    """Whether decoding folds the context's maps into the memory's rows, as set or by rule."""
    if setting.folded == "auto":
        from seq2seq_memattn.search.prepare import folds_rows

        return folds_rows(model, setting.beam_size)
    return setting.folded == "yes"


def _training(setting: Setting, sources: Sequence[np.ndarray]) -> Work:
    from seq2seq_memattn.training.make import make_parts

    options = {"batch_size": setting.batch_size, "precision": setting.precision}
    config = TrainingConfig.from_dict(options)
    *_, updater = make_parts(setting.model_config(), config)
    # Sources stay in the order drawn, neither sorted nor in buckets.
    groups = [sources[i : i + config.batch_size] for i in range(0, len(sources), config.batch_size)]
    batches = [make_batch(group, group) for group in groups]

    def update(batch: Any, tokens: int) -> int:
        updater(batch)
        return tokens

    return Work(
        [
            functools.partial(update, batch, sum(len(source) + 1 for source in group))
            for batch, group in zip(batches, groups, strict=True)
        ]
    )
