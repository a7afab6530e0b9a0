"""Makes the stored runs: python -m tests.stored_runs.make [NAME ...]; see README.md."""

import dataclasses
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seq2seq_memattn.data.manifest import MANIFEST_NAME, read_manifest
from seq2seq_memattn.runs.directory import BEST_NAME, CONFIG_NAME, Run, load_run
from seq2seq_memattn.text.files import read_lines
from seq2seq_memattn.vocabulary import vocabulary_files
from tests.running import ROOT
from tests.stored_runs.decoding import SEARCHES, decoded, translations
from tests.texts import SYLLABLES, sentencepiece_model, write_lines

STORED = Path(__file__).parent
NUM_LINES = 8
NUM_WORDS = 20  # in each language
NUM_NAMES = 5  # the first of these words are names, which `with_names` capitalises
NOISE = 1e-3  # relative change of weights, a hundred times the difference between processors
TRAINING: dict[str, Any] = {  # options that differ from those of copy_20_k4
    "embedding_dim": 12,
    "encoder_units": 12,
    "encoder_layers": 1,
    "decoder_units": 12,
    "decoder_layers": 1,
    "attention_units": 10,
    "initializer": "glorot",
    "dropout": 0.0,
    "batch_size": 32,
    "bucket_width": 4,
    "num_updates": 3000,
    "learning_rate": 1e-2,
    "schedule": "inverse_sqrt",
    "warmup_updates": 100,
    "label_smoothing": 0.05,
    "validate_every": 200,
    "validation_bleu": "smoothed",
    "beam_size": 2,
}

Pairs = list[tuple[str, str]]


@dataclasses.dataclass(frozen=True)
class Recipe:
    """The recipe of a run.

    Args:
        backend: Keras backend of the training.
        prepare: writes text into a folder; returns the command that prepares the data.
        options: flags of the training that replace or extend those of `TRAINING`.
        pairs: pairs to decode before those of the validation set, in the corpus's form.
    """

    backend: str
    prepare: Callable[[Path], list[str]]
    options: dict[str, Any]
    pairs: Pairs = dataclasses.field(default_factory=list)


def words() -> tuple[list[str], list[str]]:
    """The words of two languages; words with the same index have the same meaning."""
    generator = random.Random(0)
    made: dict[str, None] = {}
    while len(made) < 2 * NUM_WORDS:
        made["".join(generator.choices(SYLLABLES, k=generator.randint(1, 3)))] = None
    return list(made)[:NUM_WORDS], list(made)[NUM_WORDS:]


def sentence_pairs(count: int, longest: int) -> Pairs:
    """Distinct pairs of 1 to `longest` words; a source's last word comes first in the target."""
    generator, (ours, theirs) = random.Random(longest), words()
    pairs: dict[tuple[str, str], None] = {}
    while len(pairs) < count:
        chosen = generator.choices(range(NUM_WORDS), k=generator.randint(1, longest))
        source = " ".join(ours[i] for i in chosen)
        pairs[source, " ".join(theirs[i] for i in [chosen[-1], *chosen[:-1]])] = None
    return list(pairs)


def with_names(line: str) -> str:
    """A sentence with names and a full stop, in the form that Moses' scripts produce."""
    names = [name for side in words() for name in side[:NUM_NAMES]]
    return " ".join(word.capitalize() if word in names else word for word in line.split(" ")) + " ."


def copy_task(folder: Path) -> list[str]:
    """The command for a copy task of up to 8 symbols."""
    del folder
    sizes = {"max_length": 8, "num_train": 4000, "num_valid": 60}
    return ["data_prep.copy_task", *flags(sizes)]


def text(longest: int, **options: Any) -> Callable[[Path], list[str]]:
    """A `prepare` function: sentences of up to `longest` words, options of `parallel_text`."""

    def prepare(folder: Path) -> list[str]:
        pairs = sentence_pairs(4000, longest)
        if "model_file" in options:
            model = sentencepiece_model(vocab_size=80, normalization_rule_name="identity")
            (folder / options["model_file"]).write_bytes(model)
        if "truecase_model" in options:
            pairs = [(with_names(source), with_names(target)) for source, target in pairs]
            forms = [with_names(word).split(" ")[0] for word in words()[0]]
            write_lines(folder / options["truecase_model"], [f"{form} (9/9)" for form in forms])
        files = {}
        for split, chosen in (("train", pairs[60:]), ("valid", pairs[:60])):
            for side, lines in zip(("source", "target"), zip(*chosen, strict=True), strict=True):
                files[f"{split}_{side}"] = write_lines(folder / f"{split}.{side}", lines).name
        return ["data_prep.parallel_text", *flags({**files, **options})]

    return prepare


MOSES = {
    "source_language": "en",
    "target_language": "en",
    "is_tokenised": True,
    "is_truecased": True,
    "truecase_model": "truecase.en",
}
UNKNOWN = [("ba xylo más", "xylo ba")]  # words and letters outside every vocabulary
RUNS = {
    "copy_k_memory": Recipe(
        "tensorflow",
        copy_task,
        {"attention": "k_memory:4", "encoder_layers": 2, "decoder_layers": 2},
    ),
    "copy_bahdanau": Recipe(
        "jax", copy_task, {"attention": "bahdanau", "bidirectional": False, "num_updates": 400}
    ),
    "subwords_k_memory": Recipe(
        "jax",
        text(longest=3, kind="subwords", vocab_size=330),
        {
            "attention": "k_memory:6",
            "position_encoding": "mean_one",
            "decoder_score": "sigmoid",
            "tied_embeddings": "all",
        },
        [("日本 ne", "日本")],  # encoded as bytes
    ),
    "subwords_bahdanau": Recipe(
        "tensorflow",
        text(longest=4, kind="subwords", model_file="given.model"),
        {"attention": "bahdanau", "read": "before", "decoder_cell": "gru", "encoder_cell": "gru"},
    ),
    "words_k_memory": Recipe(
        "tensorflow",
        text(longest=5, kind="words", vocab_size=24, separate_vocabularies=True),
        {
            "attention": "k_memory:5",
            "encoder_cell": "gru",
            "decoder_cell": "gru",
            "tied_embeddings": "target",
            "num_updates": 400,
        },
        UNKNOWN,
    ),
    "words_flexible": Recipe(
        "tensorflow",
        text(longest=8, kind="words", vocab_size=44),
        {"attention": "flexible", "threshold": 1.2, "num_updates": 400},
        UNKNOWN,
    ),
    "words_truecased": Recipe(
        "jax",
        text(longest=5, kind="words", vocab_size=45, **MOSES),
        {"attention": "bahdanau", "input_feeding": False, "num_updates": 300},
    ),
    "characters_flexible": Recipe(
        "jax",
        text(longest=3, kind="characters", vocab_size=25),
        {"attention": "flexible", "decoder_cell": "gru"},
        UNKNOWN,
    ),
}


def main(names: Sequence[str]) -> None:
    """Makes the runs with these names, or all runs."""
    for name in names or RUNS:
        with tempfile.TemporaryDirectory() as folder:
            make(RUNS[name], Path(folder), STORED / name)


def make(recipe: Recipe, folder: Path, stored: Path) -> None:
    """Makes a run in a folder; stores the files that decoding needs, and decoded pairs."""

    def command(name: str, *arguments: str) -> None:
        variables = {**os.environ, "PYTHONPATH": str(ROOT), "KERAS_BACKEND": recipe.backend}
        line = [sys.executable, "-m", name, *arguments]
        subprocess.run(line, cwd=folder, env=variables, check=True)

    command(*recipe.prepare(folder), "--output_dir=data")
    options = {"config": "copy_20_k4", "data_dir": "data", "run_dir": "run", **TRAINING}
    command("experiments.train", *flags({**options, **recipe.options}))
    shutil.rmtree(stored, ignore_errors=True)
    store(folder / "run", stored)
    pairs = steady_pairs(load_run(stored), [*recipe.pairs, *valid_pairs(folder / "data")])
    write_lines(stored / "sources.txt", [source for source, _ in pairs])
    write_lines(stored / "targets.txt", [target for _, target in pairs])
    records = (json.dumps(record, ensure_ascii=False) for record in decoded(stored))
    write_lines(stored / "translations.json", ["[", ",\n".join(records), "]"])


def store(run_dir: Path, stored: Path) -> None:
    """Copies the files that decoding needs, without this machine's paths in the command."""
    manifest = read_manifest(run_dir, check_files=False)
    vocabularies = vocabulary_files(manifest.source_vocabulary, manifest.target_vocabulary)
    truecase_model = manifest.text_form.get("truecase_model", "")
    stored.mkdir()
    for name in filter(None, (*vocabularies, truecase_model, MANIFEST_NAME, BEST_NAME)):
        shutil.copyfile(run_dir / name, stored / name)
    config = json.loads((run_dir / CONFIG_NAME).read_text(encoding="utf-8"))
    config["command"][0] = "experiments/train.py"
    write_lines(stored / CONFIG_NAME, [json.dumps(config, indent=2)])


def valid_pairs(data_dir: Path) -> Pairs:
    """The pairs of the validation set without empty lines."""
    split = read_manifest(data_dir).split("valid")
    files = [data_dir / split.files_of(side)[0].path for side in ("source", "target")]
    return [pair for pair in zip(*map(read_lines, files), strict=True) if all(pair)]


def steady_pairs(run: Run, pairs: Pairs) -> Pairs:
    """The first pairs whose translations stay the same when every weight changes a little.

    Args:
        run: `Run`. The function changes its weights.
        pairs: pairs in the form of the corpus.

    Returns:
        `NUM_LINES` pairs, with sources as plain text.

    Raises:
        ValueError: if there are fewer.
    """
    sources = run.text_form.readable([source for source, _ in pairs])
    weights, generator = run.model.get_weights(), np.random.default_rng(0)

    def tokens() -> list[Any]:
        searches = [translations(run, sources, *sizes) for sizes in SEARCHES.values()]
        return [
            [translation["tokens"] for of_line in found for translation in of_line]
            for found in zip(*searches, strict=True)
        ]

    before, changed = tokens(), []
    for _ in range(3):
        factors = [1 + NOISE * generator.standard_normal(array.shape) for array in weights]
        run.model.set_weights([a * b for a, b in zip(weights, factors, strict=True)])
        changed.append(tokens())
    steady = [
        (source, target)
        for source, (_, target), *found in zip(sources, pairs, before, *changed, strict=True)
        if all(again == found[0] for again in found)
    ]
    if len(steady) < NUM_LINES:
        raise ValueError(f"expected {NUM_LINES} steady pairs; got {len(steady)} of {len(pairs)}")
    return steady[:NUM_LINES]


def flags(options: Mapping[str, Any]) -> list[str]:
    """Options as flags of a command."""
    return [f"--{name}={value}" for name, value in options.items()]


if __name__ == "__main__":
    main(sys.argv[1:])
