"""Table 2 of the memory paper: BLEU of translation; at small scale on corpora that CPUs train."""

import dataclasses
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from experiments import bootstrap, study
from experiments.copy_rows import label
from experiments.experiment import load_experiment
from experiments.study import DataSource, Evaluation, Row, Scale, Study
from experiments.subject import markdown_table
from experiments.text_rows import PAPER, PIECES, SMALL_PIECES, SMALL_UNITS

MULTI30K_ROWS = ("bahdanau", "none", "k4", "k8", "k32", "k64", "k32_pe")
WMT_NEWS_ROWS = ("bahdanau", "k64")
# The four scoring pairs of Figure 5, beside the default's.
PAIRS = (("softmax", "softmax"), ("softmax", "sigmoid"), ("sigmoid", "softmax"), ("sigmoid",) * 2)
SEEDED = ("bahdanau", "k32")
# Each row is compared with Bahdanau by the last of its tests.
TESTS = {
    "multi30k": (
        Evaluation("flickr", "test_2016_flickr"),
        # As published figures are given: tokenised, without case.
        Evaluation("flickr_lowercase", "test_2016_flickr", ("--lowercase",)),
    ),
    "wmt_news": (Evaluation("newstest2017", "newstest2017"),),
    "wmt17": (Evaluation("newstest2016", "newstest2016"),),
}
TITLES = {"multi30k": "Multi30k", "wmt_news": "News of 2008 to 2014", "wmt17": "WMT'17"}
TINY: dict[str, Any] = {
    "embedding_dim": 8,
    "encoder_units": 8,
    "decoder_units": 8,
    "attention_units": 8,
    "batch_size": 16,
    "num_updates": 4,
    "validate_every": 2,
    "valid_examples": 8,
    "beam_size": 2,
}
HEADER = (
    *("row", "valid, paper", "test, paper", "valid", "test, tokenised", "test, standard", "chrF"),
    *("against Att", "p", "parameters", "updates", "tokens/s", "waiting for input", "hours"),
)


def introduction(scale: Scale) -> str:
    """What the page says before its table."""
    text = "BLEU of translation, beam 10, weights of the best validation"
    if scale == "full":
        return f"{text}; WMT'17 as the paper has it."
    return (
        f"{text}; one model of {SMALL_UNITS} units on small corpora, {SMALL_PIECES:,} subwords "
        "for both languages. Validation BLEU is of tokenised text. Rows against Att: the "
        "difference in tokenised BLEU of the test set, with the probability of one as large by "
        "chance (paired bootstrap)."
    )


def make_study(scale: Scale, names: Sequence[str], work_dir: Path, results_dir: Path) -> Study:
    """The rows of Table 2.

    Args:
        scale, work_dir, results_dir: as in `table1.make_study`; "full" is WMT'17 as the paper has
            it, "small" and "tiny" are Multi30k, and news.
        names: rows to run; all of the scale if empty.

    Raises:
        ValueError: for a name that is no row.
    """
    rows = _wmt17_rows() if scale == "full" else [*_multi30k_rows(), *_wmt_news_rows()]
    if scale == "tiny":
        rows = [tiny(row) for row in rows]
    return study.make_study(rows, names, f"table2/{scale}", work_dir, results_dir)


def tiny(row: Row) -> Row:
    """A trial of a row that is trained on text."""
    command = (*row.data.command[:-1], "--vocab_size=400")
    data = dataclasses.replace(row.data, folder=f"{row.data.folder}_tiny", command=command)
    return dataclasses.replace(row, options={**row.options, **TINY}, data=data)


def text_row(config: str, pieces: int) -> Row:
    """A row that is trained on text.

    Args:
        config: experiment, `CORPUS_SOURCE_TARGET_NAME`.
        pieces: of the vocabulary.
    """
    experiment = load_experiment(config)
    corpus, pair = _corpus_of(config)
    attention = experiment.model.attention
    has_positions = experiment.model.position_encoding != "none"
    return Row(
        name=config,
        config=config,
        options={},
        data=DataSource(
            f"{corpus}_{pair}_{pieces}",
            (f"data_prep.{corpus}", f"--pair={pair.replace('_', '-')}", f"--vocab_size={pieces}"),
            corpus,
        ),
        label=f"{label(attention)} + PE" if has_positions else label(attention),
        curve=f"{attention} + PE" if has_positions else attention,
        paper=experiment.paper,
        tests=TESTS[corpus],
    )


def _corpus_of(name: str) -> tuple[str, str]:
    """Corpus and pair of languages of a row, such as ("multi30k", "en_de")."""
    (corpus,) = (corpus for corpus in TESTS if name.startswith(f"{corpus}_"))
    return corpus, "_".join(name.removeprefix(f"{corpus}_").split("_")[:2])


def _wmt17_rows() -> list[Row]:
    names = (f"wmt17_{pair}_{name}" for pair, cells in PAPER.items() for name in cells)
    return [text_row(name, PIECES) for name in names]


def _wmt_news_rows() -> list[Row]:
    return [text_row(f"wmt_news_en_de_{name}", SMALL_PIECES) for name in WMT_NEWS_ROWS]


def _multi30k_rows() -> list[Row]:
    by_name = {name: text_row(f"multi30k_en_de_{name}", SMALL_PIECES) for name in MULTI30K_ROWS}
    seeded = [_variant(by_name[name], "seed1", {"seed": 1}) for name in SEEDED]
    return [*by_name.values(), *seeded, *with_other_pairs(by_name["k32"])]


def with_other_pairs(row: Row) -> list[Row]:
    """A row of K-memory with each pair of scores that it has not."""
    default = load_experiment(row.config).model
    return [
        _variant(row, f"{encoder}_{decoder}", {"encoder_score": encoder, "decoder_score": decoder})
        for encoder, decoder in PAIRS
        if (encoder, decoder) != (default.encoder_score, default.decoder_score)
    ]


def _variant(row: Row, suffix: str, options: dict[str, Any]) -> Row:
    name = f"{row.name}_{suffix}"
    return dataclasses.replace(
        row,
        name=name,
        options={**row.options, **options},
        label=f"{row.label}, {suffix.replace('_', '/')}",
        curve=name,
    )


def extend(of: Study) -> list[dict[str, Any]]:
    """The finished results, each with the paired bootstrap against Bahdanau's of its corpus."""
    results = of.finished()
    for name in {_baseline(result["name"]) for result in results}:
        members = [result for result in results if _baseline(result["name"]) == name]
        bootstrap.compare_with(of, name, members)
    return results


def _baseline(name: str) -> str:
    return "_".join([*_corpus_of(name), "bahdanau"])


def tables(results: Sequence[dict[str, Any]]) -> dict[str, str]:
    """A table for each corpus and pair, with the signatures of its scores, by suffix of file."""
    parts = []
    for (corpus, pair), members in _groups(results).items():
        table = markdown_table(HEADER, map(_cells, members))
        title = group_title(f"{corpus}_{pair}")
        parts.append("\n".join([f"## {title}", "", table, "", *_signatures(members)]))
    return {".md": "\n\n".join(parts) + "\n"}


def group_title(name: str) -> str:
    """What people call the corpus and pair that a row or a group is of."""
    corpus, pair = _corpus_of(name)
    return f"{TITLES[corpus]}, {pair.replace('_', '-')}"


def figures(results: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """One figure for each corpus and pair."""
    return {f"{corpus}_{pair}": found for (corpus, pair), found in _groups(results).items()}


def curves(results: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """For each corpus and pair a figure of its models, and one of other seeds and scores."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name, members in figures(results).items():
        variants = [result for result in members if result["curve_name"] == result["name"]]
        models = [result for result in members if result not in variants]
        names = [result["name"] for result in variants]
        of = [
            result
            for result in models
            if any(name.startswith(f"{result['name']}_") for name in names)
        ]
        renamed = [{**result, "curve_name": result["label"]} for result in [*of, *variants]]
        found |= {name: models, f"{name}_variants": renamed if variants else []}
    return {name: shown for name, shown in found.items() if shown}


def _groups(results: Sequence[dict[str, Any]]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for result in results:
        groups.setdefault(_corpus_of(result["name"]), []).append(result)
    return groups


def _cells(result: dict[str, Any]) -> list[str]:
    standard, tokenised = first_and_last(result)
    compared = result.get(bootstrap.KEY, {}).get("bleu")
    train = [point for point in result["curve"] if point["kind"] == "train"]
    paper = result["paper"]
    return [
        result["label"],
        f"{paper['bleu']:.2f}" if paper else "-",
        f"{paper['test_bleu']:.2f}" if "test_bleu" in paper else "-",
        f"{result['bleu']:.2f}",
        f"{tokenised['bleu']:.2f}",
        f"{standard['standard_bleu']:.2f}",
        f"{standard['chrf']:.2f}",
        f"{compared['score'] - compared['baseline']:+.2f}" if compared else "-",
        f"{compared['p_value']:.3f}" if compared else "-",
        f"{result['evaluation']['parameters'] / 1e6:.2f} M",
        f"{result['evaluation']['update']:,}",
        f"{statistics.median(point['tokens_per_second'] for point in train):,.0f}"
        if train
        else "-",
        f"{100 * statistics.mean(point['waiting'] for point in train):.1f} %" if train else "-",
        f"{result['training']['seconds'] / 3600:.1f}",
    ]


def first_and_last(result: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tests that give the standard and the tokenised scores; one test may give both."""
    tests = list(result["tests"].values())
    return tests[0], tests[-1]


def _signatures(results: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What the scores of a table are, as sacrebleu says it; each that differs between rows."""
    found: dict[str, None] = {}
    for result in results:
        standard, tokenised = first_and_last(result)
        compared = result.get(bootstrap.KEY, {}).get("bleu")
        found |= {
            f"* tokenised: `{tokenised['signature']}`": None,
            f"* standard: `{standard['standard_bleu_signature']}`": None,
            f"* chrF: `{standard['chrf_signature']}`": None,
        }
        if compared:
            found[f"* paired bootstrap: `{compared['signature']}`"] = None
    yield from found
