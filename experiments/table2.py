"""Table 2 of the memory paper: BLEU of translation; at small scale on Multi30k."""

import dataclasses
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments import study
from experiments.copy_rows import label
from experiments.experiment import load_experiment
from experiments.study import DataSource, Evaluation, Row, Study, hypotheses_path
from experiments.table1 import Scale
from experiments.text_rows import PAPER
from seq2seq_memattn.data.manifest import read_manifest
from seq2seq_memattn.data.text_files import read_lines
from seq2seq_memattn.text_form import FormedLines, TextForm

SMALL_ROWS = ("bahdanau", "none", "k4", "k8", "k32", "k64", "k32_pe")
# The four scoring pairs of Figure 5, beside the default's.
PAIRS = (("softmax", "softmax"), ("softmax", "sigmoid"), ("sigmoid", "softmax"), ("sigmoid",) * 2)
SEEDED = ("bahdanau", "k32")
MULTI30K_TESTS = (
    Evaluation("flickr", "test_2016_flickr"),
    # As published figures are given: tokenised, without case.
    Evaluation("flickr_lowercase", "test_2016_flickr", ("--lowercase",)),
)
COMPARED = MULTI30K_TESTS[1]
BASELINE = "multi30k_en_de_bahdanau"
WMT17_TESTS = (Evaluation("newstest2016", "newstest2016"),)
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


def introduction(scale: Scale) -> str:
    """What the page says before its table."""
    text = "Translation, beam 10, weights of the best validation."
    if scale == "full":
        return f"{text} WMT'17 as the paper has it."
    return f"{text} Multi30k English-German, BLEU of the test set of 2016."


def make_study(scale: Scale, names: Sequence[str], work_dir: Path, results_dir: Path) -> Study:
    """The rows of Table 2.

    Args:
        scale, work_dir, results_dir: as in `table1.make_study`; "full" is WMT'17 as the paper has
            it, "small" and "tiny" are Multi30k.
        names: rows to run; all of the scale if empty.

    Raises:
        ValueError: for a name that is no row.
    """
    rows = _wmt17_rows() if scale == "full" else _multi30k_rows()
    if scale == "tiny":
        rows = [
            dataclasses.replace(row, options={**row.options, **TINY}, data=_tiny(row.data))
            for row in rows
        ]
    return study.make_study(rows, names, f"table2/{scale}", work_dir, results_dir)


def _wmt17_rows() -> list[Row]:
    return [
        _row(f"wmt17_{pair}_{name}", _data("wmt17", pair, 16_000), WMT17_TESTS)
        for pair, cells in PAPER.items()
        for name in cells
    ]


def _multi30k_rows() -> list[Row]:
    data = _data("multi30k", "en_de", 8_000)
    rows = [_row(f"multi30k_en_de_{name}", data, MULTI30K_TESTS) for name in SMALL_ROWS]
    known = {row.config.removeprefix("multi30k_en_de_"): row for row in rows}
    for name in SEEDED:
        row = known[name]
        rows.append(_variant(row, "seed1", {"seed": 1}))
    for encoder, decoder in PAIRS:
        options = {"encoder_score": encoder, "decoder_score": decoder}
        if options != _scores(known["k32"]):
            rows.append(_variant(known["k32"], f"{encoder}_{decoder}", options))
    return rows


def _scores(row: Row) -> dict[str, Any]:
    model = load_experiment(row.config).model
    return {"encoder_score": model.encoder_score, "decoder_score": model.decoder_score}


def _variant(row: Row, suffix: str, options: dict[str, Any]) -> Row:
    name = f"{row.name}_{suffix}"
    return dataclasses.replace(
        row,
        name=name,
        options={**row.options, **options},
        label=f"{row.label}, {suffix.replace('_', '/')}",
        curve=name,
    )


def _row(config: str, data: DataSource, tests: tuple[Evaluation, ...]) -> Row:
    experiment = load_experiment(config)
    attention = experiment.model.attention
    has_positions = experiment.model.position_encoding != "none"
    shown = f"{label(attention)} + PE" if has_positions else label(attention)
    curve = f"{attention} + PE" if has_positions else attention
    return Row(config, config, {}, data, shown, curve, experiment.paper, tests=tests)


def _data(corpus: str, pair: str, vocab_size: int) -> DataSource:
    languages = pair.replace("_", "-")
    return DataSource(
        f"{corpus}_{pair}",
        (f"data_prep.{corpus}", f"--pair={languages}", f"--vocab_size={vocab_size}"),
        corpus,
    )


def _tiny(data: DataSource) -> DataSource:
    command = (*data.command[:-1], "--vocab_size=400")
    return dataclasses.replace(data, folder=f"{data.folder}_tiny", command=command)


def extend(of: Study) -> list[dict[str, Any]]:
    """The finished results, those of Multi30k with the paired bootstrap against Bahdanau's.

    A comparison needs the hypotheses of both runs; where they are gone there is none.
    """
    return [{**result, **_compare(of, result)} for result in of.finished()]


def _compare(of: Study, result: dict[str, Any]) -> dict[str, Any]:
    from seq2seq_memattn.metrics import paired_bootstrap

    (row,) = (row for row in of.rows if row.name == result["name"])
    paths = [hypotheses_path(of.runs_dir / name, COMPARED.name) for name in (row.name, BASELINE)]
    if row.name == BASELINE or not all(path.exists() for path in paths):
        return {}
    data = of.data_dir / row.data.folder
    form = TextForm.from_dict(dict(read_manifest(data).text_form))
    files = (*paths, data / f"{COMPARED.split}.target.txt")
    ours, theirs, references = (FormedLines(read_lines(file), form) for file in files)
    found = paired_bootstrap(ours, theirs, references, lowercase=True)
    return {"against_bahdanau": found["bleu"]._asdict()}


def tables(results: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The table, by suffix of its file; WMT'17 has one test set, Multi30k one in two forms."""
    lines = [
        "| row | BLEU, paper | valid | test, tokenised | test, standard | chrF | p, Att "
        "| parameters | tokens/s | hours |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [f"| {' | '.join(_cells(result))} |" for result in results]
    return {".md": "\n".join(lines) + "\n"}


def _cells(result: dict[str, Any]) -> list[str]:
    tests = result["tests"]
    standard = next(iter(tests.values()))
    tokenised = tests.get(COMPARED.name, standard)
    compared = result.get("against_bahdanau")
    speeds = [point["tokens_per_second"] for point in result["curve"] if point["kind"] == "train"]
    paper = result["paper"].get("test_bleu", result["paper"].get("bleu"))
    return [
        result["label"],
        f"{paper:.2f}" if paper else "-",
        f"{result['bleu']:.2f}",
        f"{tokenised['bleu']:.2f}",
        f"{standard['standard_bleu']:.2f}",
        f"{standard['chrf']:.2f}",
        f"{compared['p_value']:.3f}" if compared else "-",
        f"{result['evaluation']['parameters'] / 1e6:.1f} M",
        f"{statistics.median(speeds):,.0f}" if speeds else "-",
        f"{result['training']['seconds'] / 3600:.1f}",
    ]


def figures(results: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """One figure for each data directory."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        corpus, first, second = result["name"].split("_")[:3]
        groups.setdefault(f"{corpus}_{first}_{second}", []).append(result)
    return groups
