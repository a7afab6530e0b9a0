"""The common part of the studies of Shu and Nakayama (2017): how small a window is enough?

Source: sections 5.1, 5.2 and 5.4 of the paper. With `--scale=small`, the set-up is the paper's, but
layers are narrower, the learning rate is higher, dropout is added, and the corpora have only tens
of thousands of short sentences.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from experiments.reproduction.pages import learning_curves, markdown_table, prose, trained_at
from experiments.reproduction.results import Result, Results, grouped
from experiments.reproduction.rows import DataSource, Evaluation, Row, Scale
from experiments.reproduction.study import Study
from experiments.studies import table2
from experiments.studies._setups import setup_table
from seq2seq_memattn.presets.load import load_preset
from seq2seq_memattn.training.updates.schedule import learning_rate

# Tables 1 and 2 of the paper, by corpus and row: window per step (words or characters), BLEU, and
# for English-Japanese RIBES. "global", "local" and "flexible" are without a threshold. "threshold"
# and "tuned" are flexible attention with a threshold, before and after fine-tuning.
PAPER: dict[str, dict[str, tuple[float, ...]]] = {
    "en_ja": {
        "global": (24.4, 34.87, 0.810),
        "local": (18.4, 34.52, 0.809),
        "flexible": (24.4, 35.01, 0.814),
        "threshold": (16.4, 34.90, 0.812),
        "tuned": (10.7, 34.78, 0.807),
    },
    "de_en": {
        "global": (20.7, 20.62),
        "local": (15.7, 21.09),
        "flexible": (20.7, 21.31),
        "threshold": (7.8, 21.11),
        "tuned": (7.4, 20.79),
    },
    "en_ja_characters": {
        "global": (144.9, 26.18, 0.767),
        "flexible": (144.9, 26.68, 0.763),
        "threshold": (80.4, 26.18, 0.757),
        "tuned": (77.4, 26.23, 0.757),
    },
}

THRESHOLDS = (0.3, 0.5, 0.8, 1.0, 1.2, 1.4, 1.6, 5.0, 8.0)  # thresholds of figure 3
SEARCHED = (0.8, 1.0, 1.2, 1.4, 1.6)  # thresholds from which the tables choose
THRESHOLD = "chosen_threshold"  # key of a result
LOSS = 0.5  # validation BLEU that a threshold may cost
WITHOUT = "all"  # names evaluations without a threshold
STRENGTH_WEIGHT = 0.1  # beta of equation 9
TUNING_RATE = 0.25  # factor of the learning rate in fine-tuning; the paper does not give it

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
    """The corpus of a group of rows, and how models are trained on it.

    Fields:
        title: title of the group.
        short: short name of the corpus.
        paper: key in `PAPER`; presets have it in their names.
        data: `DataSource`.
        test: name of the test set.
        epoch: updates in one pass over the training set.
        epochs: number of epochs of training.
        halved_from: the first epoch with half of the learning rate.
        rows: names of the attentions in presets.
    """

    title: str
    short: str
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
        "de-en",
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
        "en-ja",
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
        "characters",
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
    # The paper's training set is from WMT'15, and is filtered differently.
    "wmt17_de_en": Corpus(
        "WMT'17, German-English, words",
        "WMT'17",
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
HEADER = (
    *("row", "τ", "window, paper", "BLEU, paper", "window", "full penalty", "test BLEU", "RIBES"),
    *("valid window", "valid BLEU"),
)


def rows_of(corpora: Sequence[str], scale: Scale) -> list[Row]:
    """The rows of some of `CORPORA`."""
    rows = [row for name in corpora for row in corpus_rows(name)]
    return [_tiny(row) for row in rows] if scale == "tiny" else rows


def corpus_rows(name: str) -> list[Row]:
    """The rows of one of `CORPORA`: each attention from scratch, then flexible attention tuned.

    Args:
        name: name of the corpus.
    """
    corpus = CORPORA[name]
    rows = [_row(name, corpus, attention) for attention in corpus.rows]
    return [*rows, _tuned(rows[-1], corpus)]


def _row(name: str, corpus: Corpus, attention: str) -> Row:
    config = f"flexible_{corpus.paper}_{attention}"
    options = {**SMALL, **_training(corpus)} if corpus.epoch else {}
    beam_size = load_preset(config).with_options(options).training.beam_size
    return Row(
        name=f"{name}_{attention}",
        config=config,
        options=options,
        data=corpus.data,
        label=attention,
        curve=f"{name} {attention}",
        paper=dict(zip(("window", "bleu", "ribes"), PAPER[corpus.paper][attention], strict=False)),
        tests=_evaluations(corpus, attention == "flexible", beam_size),
    )


def _training(corpus: Corpus) -> dict[str, int]:
    return {
        "num_updates": corpus.epochs * corpus.epoch,
        "decay_start": (corpus.halved_from - 2) * corpus.epoch,
        "decay_every": corpus.epoch,
        "validate_every": corpus.epoch,
    }


def _tuned(row: Row, corpus: Corpus) -> Row:
    """The row that fine-tunes flexible attention for one epoch with the loss of equation 9."""
    training = row.preset().training
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


def _evaluations(corpus: Corpus, is_flexible: bool, beam_size: int) -> tuple[Evaluation, ...]:
    """Evaluations of validation and test set; for flexible attention, with each threshold."""
    found = []
    for threshold in (*THRESHOLDS, None) if is_flexible else (None,):
        flags = ["--window", "--ribes", f"--beam_size={beam_size}"]
        flags += [f"--threshold={threshold}"] if threshold else []
        for split in ("valid", corpus.test):
            name = evaluation_name(split, threshold)
            keeps = split != "valid" and threshold is None
            found.append(Evaluation(name, split, tuple(flags), keeps_lines=keeps))
    return tuple(found)


def evaluation_name(split: str, threshold: float | None) -> str:
    """The name of an evaluation."""
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
    """The text of the pages before their tables."""
    text = (
        "How small a window of the source is enough? A window is the number of encoder states "
        "scored per decoder step, on average over the steps of the best hypotheses. Flexible "
        "attention skips positions with a penalty of τ or more. The full-penalty window is the "
        "mean window that τ would leave if the penalty had its full strength (g = 1) at every step "
        "and were centred on each source position equally often. "
        "BLEU is of tokenised text; learning curves show the mean smoothed BLEU of sentences, "
        "by which the best weights are chosen, as in the paper. We chose the threshold τ on the "
        f"validation set: of {', '.join(map(str, SEARCHED))}, the one with the smallest window "
        f"whose BLEU is at most {LOSS} below that of flexible attention without fine-tuning and "
        "without a threshold. If none is that good, the row has no threshold (∞). As in the paper, "
        "global attention scores with a layer that reads the previous decoder state and the "
        "encoder state (equation 3); figures call it Luong, concat. Local attention is the "
        "predictive variant (local-p) with a half-window of 10. The paper averages windows over "
        "all hypotheses of the beam."
    )
    if scale == "full":
        return text
    return (
        f"{text} Models have {SMALL['embedding_dim']} units (the paper's have 1,000; 500 for "
        "characters) and dropout, and are trained on small corpora of short sentences. One seed "
        "each."
    )


def settings(
    rows: Sequence[Row], paper: Mapping[str, str], corpora: Sequence[tuple[str, str, str]]
) -> str:
    """A table of settings, the paper's and ours.

    Args:
        rows: rows of a study.
        paper: the paper's settings, from `_setups`.
        corpora: lines about the data, for the top of the table.
    """
    presets = [row.preset() for row in rows if not row.init_from and row.label == "global"]
    last = [learning_rate(one.training, one.training.num_updates - 1) for one in presets]
    tuned = [row.preset().training for row in rows if row.init_from]
    fine_tuning = (
        "fine-tuning",
        "1 epoch; learning rate not given",
        f"1 epoch; rate {_either(f'{one.learning_rate:g}' for one in tuned)} after "
        f"{_either(f'{one.warmup_updates}' for one in tuned)} warm-up updates, with new moments "
        f"(training ends at {_either(f'{rate:.2g}' for rate in last)})",
    )
    return f"{setup_table(paper, presets, corpora)}\n| {' | '.join(fine_tuning)} |"


def _either(values: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(values))


def with_thresholds(study: Study) -> list[Result]:
    """The finished results; those of flexible attention have their chosen thresholds."""
    results = study.finished()
    add_thresholds(results)
    return results


def chosen_with_thresholds(study: Study) -> list[Result]:
    """The chosen rows of `with_thresholds`; choosing thresholds needs the other rows too."""
    return [result for result in with_thresholds(study) if result["name"] in study.names()]


def add_thresholds(results: Results) -> None:
    """Adds the threshold for the tables, or None, to the results of flexible attention.

    A threshold is judged by the BLEU of flexible attention without a threshold, before fine-tuning.
    If that row is missing, no threshold is chosen.
    """
    for members in by_corpus(results).values():
        best = {r["label"]: measured(r, "valid")["bleu"] for r in members}.get("flexible", math.inf)
        for result in members:
            if result["label"] in ("flexible", "tuned"):
                result[THRESHOLD] = chosen_threshold(result, best - LOSS)


def tables(results: Results) -> str:
    """A table for each corpus."""
    parts = []
    for name, members in by_corpus(results).items():
        table = markdown_table(HEADER, _lines(CORPORA[name], members))
        first = measured(members[0], CORPORA[name].test)
        signatures = (first["signature"], first["ribes_signature"])
        said = [f"* `{signature}`" for signature in signatures]
        parts.append("\n".join([f"## {CORPORA[name].title}", "", table, "", *said]))
    updates = (f"{r['name']}: {r['training']['best_update']:,}" for r in results)
    parts.append(prose(f"Updates before the best validation: {'; '.join(updates)}."))
    parts.append(prose(trained_at(results)))
    return "\n\n".join(parts) + "\n"


def curves(results: Results) -> dict[str, list[Result]]:
    """The rows trained from scratch on each corpus; one epoch of fine-tuning has no curve."""
    named = [
        {**result, "curve_name": result["configuration"]["model"]["attention"]}
        for result in results
        if not result["init_from"]
    ]
    return by_corpus(named)


draw_curves = learning_curves(
    curves, lambda name: CORPORA[name].title, measure="mean validation BLEU of sentences"
)


def by_corpus(results: Results) -> dict[str, list[Result]]:
    """Groups results by the name of their corpus."""
    return grouped(results, lambda result: corpus_of(result["name"]))


def corpus_of(name: str) -> str:
    """The name of a row's corpus; the name of the row begins with it."""
    return name.removesuffix("_tuned").rpartition("_")[0]


def _lines(corpus: Corpus, results: Results) -> list[list[str]]:
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


def chosen_threshold(result: Result, needed: float) -> float | None:
    """The threshold of `SEARCHED` with the smallest window on the validation set.

    Args:
        result: result of a row of flexible attention.
        needed: minimum validation BLEU with the threshold.

    Returns:
        The threshold; None if none has the needed BLEU.
    """
    found = {t: result["tests"].get(evaluation_name("valid", t)) for t in SEARCHED}
    good = {t: one for t, one in found.items() if one and one["bleu"] >= needed}
    return min(good, key=lambda threshold: good[threshold]["window"], default=None)


def measured(result: Result, split: str, threshold: float | None = None) -> dict[str, Any]:
    """The evaluation of a row on a split, with a threshold or without one."""
    found: dict[str, Any] = result["tests"][evaluation_name(split, threshold)]
    return found


def _cells(
    corpus: Corpus, text: str, result: Result, paper: str, threshold: float | None
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
