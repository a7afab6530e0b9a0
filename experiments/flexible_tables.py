"""Tables 1 and 2 of Shu and Nakayama (2017): how small a window of the source is enough.

REFERENCE: sections 5.1, 5.2 and 5.4. Small scale has their set-up with narrower layers, a higher
learning rate and dropout, on corpora of some ten thousand short sentences.
"""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from experiments import study, table2
from experiments.experiment import load_experiment
from experiments.flexible_rows import PAPER
from experiments.study import DataSource, Evaluation, Row, Scale, Study
from experiments.subject import markdown_table

THRESHOLDS = (0.3, 0.5, 0.8, 1.0, 1.2, 1.4, 1.6, 5.0, 8.0)  # of figure 3, beside none
SEARCHED = (0.8, 1.0, 1.2, 1.4, 1.6)  # from which tables have theirs
THRESHOLD = "chosen_threshold"  # of a result
LOSS = 0.5  # validation BLEU that a threshold may cost
WITHOUT = "all"  # names what is measured without a threshold
STRENGTH_WEIGHT = 0.1  # beta of equation 9
TUNING_RATE = 0.25  # of the learning rate; the paper does not say how fine-tuning has it

SMALL: dict[str, Any] = {
    "embedding_dim": 256,
    "encoder_units": 256,
    "decoder_units": 256,
    "attention_units": 256,
    "mixing_units": 256,
    "dropout": 0.3,
    "initializer": "uniform_0.1",
    "learning_rate": 2e-3,
    "warmup_updates": 200,
    "beam_size": 10,
    "checkpoint_minutes": 5.0,
}


class Corpus(NamedTuple):
    """What a group of rows is trained on.

    Fields:
        title: of the group.
        paper: names the figures in `PAPER`, and the experiments.
        data: `DataSource`.
        test: name of the test set.
        epoch: updates that go once through the training set.
        epochs: of the training.
        halved_from: the first epoch with half of the learning rate.
        rows: of `ATTENTIONS`.
    """

    title: str
    paper: str
    data: DataSource
    test: str
    epoch: int
    epochs: int
    halved_from: int
    rows: tuple[str, ...] = ("global", "local", "flexible")


WORDS = ("--kind=words", "--separate_vocabularies", "--max_length=51")
CORPORA = {
    "multi30k_de_en": Corpus(
        "Multi30k, German-English, words",
        "de_en",
        DataSource(
            "multi30k_de_en_words",
            ("data_prep.multi30k", "--pair=de-en", "--tokenised", *WORDS, "--vocab_size=8000"),
            "multi30k",
        ),
        "test_2016_flickr",
        epoch=453,
        epochs=10,
        halved_from=6,
    ),
    "tanaka_en_ja": Corpus(
        "small_parallel_enja, English-Japanese, words",
        "en_ja",
        DataSource(
            "small_parallel_enja_words",
            ("data_prep.small_parallel_enja", "--pair=en-ja", *WORDS, "--vocab_size=5000"),
            "small_parallel_enja",
        ),
        "test",
        epoch=781,
        epochs=8,
        halved_from=5,
    ),
    "multi30k_de_en_characters": Corpus(
        "Multi30k, German-English, characters",
        "en_ja_characters",
        DataSource(
            "multi30k_de_en_characters",
            (
                "data_prep.multi30k",
                "--pair=de-en",
                "--kind=characters",
                "--separate_vocabularies",
                "--max_length=201",
                "--vocab_size=80",
            ),
            "multi30k",
        ),
        "test_2016_flickr",
        epoch=453,
        epochs=8,
        halved_from=6,
        rows=("global", "flexible"),
    ),
    # Their training set is of 2015, and filtered otherwise.
    "wmt17_de_en": Corpus(
        "WMT'17, German-English, words",
        "de_en",
        DataSource(
            "wmt17_de_en_words",
            ("data_prep.wmt17", "--pair=de-en", *WORDS, "--vocab_size=50000"),
            "wmt17",
        ),
        "newstest2016",
        epoch=0,
        epochs=0,
        halved_from=0,
    ),
}
TABLE1 = ("multi30k_de_en", "tanaka_en_ja")
TABLE2 = ("multi30k_de_en_characters",)
TABLE1_FULL = ("wmt17_de_en",)
HEADER = (
    *("row", "τ", "window, paper", "BLEU, paper", "window", "least", "test BLEU", "RIBES"),
    *("valid window", "valid BLEU"),
)


def make_table1(scale: Scale, names: Sequence[str], work_dir: Path, results_dir: Path) -> Study:
    """The rows of Table 1, words.

    Args:
        scale, names, work_dir, results_dir: as in `table1.make_study`.

    Raises:
        ValueError: for a name that is no row.
    """
    corpora = TABLE1_FULL if scale == "full" else TABLE1
    return _study("flexible_table1", corpora, scale, names, work_dir, results_dir)


def make_table2(scale: Scale, names: Sequence[str], work_dir: Path, results_dir: Path) -> Study:
    """The rows of Table 2, characters; "full" is as "small", for their corpus is not free.

    Args:
        scale, names, work_dir, results_dir: as in `table1.make_study`.

    Raises:
        ValueError: for a name that is no row.
    """
    return _study("flexible_table2", TABLE2, scale, names, work_dir, results_dir)


def _study(folder: str, corpora: Sequence[str], scale: Scale, *rest: Any) -> Study:
    rows = [row for name in corpora for row in corpus_rows(name)]
    if scale == "tiny":
        rows = [_tiny(row) for row in rows]
    names, *where = rest
    return study.make_study(rows, names, f"{folder}/{scale}", *where)


def corpus_rows(name: str) -> list[Row]:
    """The rows of one of `CORPORA`: trained from the beginning, and flexible attention's tuned.

    Args:
        name: of the corpus.
    """
    corpus = CORPORA[name]
    rows = [_row(name, corpus, attention) for attention in corpus.rows]
    return [*rows, _tuned(rows[-1], corpus)]


def _row(name: str, corpus: Corpus, attention: str) -> Row:
    config = f"flexible_{corpus.paper}_{attention}"
    return Row(
        name=f"{name}_{attention}",
        config=config,
        options={**SMALL, **_training(corpus)} if corpus.epoch else {},
        data=corpus.data,
        label=attention,
        curve=f"{name} {attention}",
        paper=load_experiment(config).paper,
        tests=_evaluations(corpus, attention == "flexible"),
    )


def _training(corpus: Corpus) -> dict[str, int]:
    return {
        "num_updates": corpus.epochs * corpus.epoch,
        "decay_start": (corpus.halved_from - 2) * corpus.epoch,
        "decay_every": corpus.epoch,
        "validate_every": corpus.epoch,
    }


def _tuned(row: Row, corpus: Corpus) -> Row:
    """Flexible attention after one epoch with the loss of equation 9."""
    training = load_experiment(row.config).with_options(row.options).training
    epoch = corpus.epoch or training.decay_every
    return dataclasses.replace(
        row,
        name=f"{row.name}_tuned",
        options={
            **row.options,
            "strength_weight": STRENGTH_WEIGHT,
            "num_updates": epoch,
            "validate_every": epoch,
            "schedule": "constant",
            "learning_rate": training.learning_rate * TUNING_RATE,
        },
        label="tuned",
        curve=f"{row.curve}, tuned",
        init_from=row.name,
    )


def _evaluations(corpus: Corpus, is_flexible: bool) -> tuple[Evaluation, ...]:
    """Of validation and test set, for flexible attention with each threshold."""
    found = []
    for threshold in (*THRESHOLDS, None) if is_flexible else (None,):
        flags = ("--window", "--ribes", *([f"--threshold={threshold}"] if threshold else []))
        for split in ("valid", corpus.test):
            name = evaluation_name(split, threshold)
            keeps = split != "valid" and threshold is None
            found.append(Evaluation(name, split, flags, keeps_lines=keeps))
    return tuple(found)


def evaluation_name(split: str, threshold: float | None) -> str:
    """Names an evaluation."""
    return f"{split}_{threshold or WITHOUT}"


def _tiny(row: Row) -> Row:
    options = {**table2.TINY, "mixing_units": 8}
    if row.init_from:
        options["num_updates"] = options["validate_every"] = 2
    few = tuple(one for one in row.tests if one.name.endswith(("_0.8", f"_{WITHOUT}")))
    return dataclasses.replace(
        row,
        options={**row.options, **options},
        data=dataclasses.replace(
            row.data,
            folder=f"{row.data.folder}_tiny",
            command=(*row.data.command[:-1], "--vocab_size=20"),
        ),
        tests=few,
    )


def introduction(scale: Scale) -> str:
    """What the pages say before their tables."""
    text = (
        "Windows are encoder states scored per decoder step, on average over the steps of the best "
        "hypotheses; beside them the least that a threshold allows, with the full penalty in every "
        "step. BLEU is of tokenised text. The threshold τ is the one of "
        f"{', '.join(map(str, SEARCHED))} with the smallest window on the validation set that "
        f"costs at most {LOSS} validation BLEU against flexible attention without one."
    )
    if scale == "full":
        return text
    return (
        f"{text} One model of {SMALL['embedding_dim']} units (theirs have 1,000; 500 for "
        "characters), with dropout, on small corpora of short sentences."
    )


def finished(of: Study) -> list[dict[str, Any]]:
    """The finished results, those of flexible attention with their thresholds."""
    results = of.finished()
    add_thresholds(results)
    return results


def finished_chosen(of: Study) -> list[dict[str, Any]]:
    """As `finished`, of the rows that are run alone: thresholds need others too."""
    return [result for result in finished(of) if result["name"] in of.names()]


def add_thresholds(results: Sequence[dict[str, Any]]) -> None:
    """Adds to results of flexible attention the threshold that tables have them with, or None.

    It is measured against the BLEU of flexible attention before fine-tuning, without a threshold;
    where that is missing, there is none.
    """
    for members in by_corpus(results).values():
        best = {r["label"]: measured(r, "valid")["bleu"] for r in members}.get("flexible", math.inf)
        for result in members:
            if result["label"] in ("flexible", "tuned"):
                result[THRESHOLD] = chosen_threshold(result, best - LOSS)


def tables(results: Sequence[dict[str, Any]]) -> dict[str, str]:
    """A table for each corpus, by suffix of file."""
    parts = []
    for name, members in by_corpus(results).items():
        table = markdown_table(HEADER, _lines(CORPORA[name], members))
        first = measured(members[0], CORPORA[name].test)
        signatures = (first["signature"], first["ribes_signature"])
        said = [f"* `{signature}`" for signature in signatures]
        parts.append("\n".join([f"## {CORPORA[name].title}", "", table, "", *said]))
    return {".md": "\n\n".join(parts) + "\n"}


def by_corpus(results: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Results by the name of their corpus."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        groups.setdefault(corpus_of(result["name"]), []).append(result)
    return groups


def corpus_of(name: str) -> str:
    """The name of a row's corpus, which its own begins with."""
    return name.removesuffix("_tuned").rpartition("_")[0]


def _lines(corpus: Corpus, results: Sequence[dict[str, Any]]) -> list[list[str]]:
    """The cells of a corpus's table, row by row."""
    by_label = {result["label"]: result for result in results}
    lines = []
    for label, text in (("global", "Global"), ("local", "Local"), ("flexible", "Flexible")):
        if label in by_label:
            lines.append(_cells(corpus, text, by_label[label], label, None))
    for label, text, paper in (
        ("flexible", "Flexible", "threshold"),
        ("tuned", "+ fine-tuning", "tuned"),
    ):
        if label in by_label:
            threshold = by_label[label][THRESHOLD]
            lines.append(_cells(corpus, text, by_label[label], paper, threshold))
    return lines


def chosen_threshold(result: dict[str, Any], needed: float) -> float | None:
    """The threshold of `SEARCHED` with the smallest window on the validation set.

    Args:
        result: of a row of flexible attention.
        needed: validation BLEU that is to be had with it.

    Returns:
        None if there is no such threshold.
    """
    found = {t: result["tests"].get(evaluation_name("valid", t)) for t in SEARCHED}
    good = {t: one for t, one in found.items() if one and one["bleu"] >= needed}
    return min(good, key=lambda threshold: good[threshold]["window"], default=None)


def measured(result: dict[str, Any], split: str, threshold: float | None = None) -> dict[str, Any]:
    """What the evaluation of a row on a split gave, with a threshold or none."""
    found: dict[str, Any] = result["tests"][evaluation_name(split, threshold)]
    return found


def _cells(
    corpus: Corpus, text: str, result: dict[str, Any], paper: str, threshold: float | None
) -> list[str]:
    test = measured(result, corpus.test, threshold)
    valid = measured(result, "valid", threshold)
    theirs = PAPER[corpus.paper].get(paper, ())
    is_flexible = result["label"] in ("flexible", "tuned")
    return [
        text,
        ("∞" if threshold is None else f"{threshold}") if is_flexible else "-",
        f"{theirs[0]:.1f}" if theirs else "-",
        f"{theirs[1]:.2f}" if theirs else "-",
        f"{test['window']:.2f}",
        f"{test['window_floor']:.2f}" if "window_floor" in test else "-",
        f"{test['bleu']:.2f}",
        f"{test['ribes']:.3f}",
        f"{valid['window']:.2f}",
        f"{valid['bleu']:.2f}",
    ]


def figures(results: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Learning curves: a figure for each corpus."""
    return by_corpus(results)
