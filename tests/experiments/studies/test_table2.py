"""The page of Table 2, and the comparison of its rows with Bahdanau's."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from experiments.reproduction import study
from experiments.reproduction.results import read_json, write_json
from experiments.reproduction.rows import Row, identity
from experiments.reproduction.significance import KEY, MEANS_KEY, compare_means
from experiments.reproduction.study import Study
from experiments.studies import table2
from seq2seq_memattn.text.files import read_lines
from tests.texts import make_text_data

NAMES = ("bahdanau", "k4")


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_text_data(tmp_path_factory.mktemp("text"), 60)


def evaluation(bleu: float, signature: str) -> dict[str, Any]:
    return {
        "bleu": bleu,
        "signature": signature,
        "standard_bleu": bleu - 1,
        "standard_bleu_signature": "standard",
        "chrf": bleu + 20,
        "chrf_signature": "chrf",
        "parameters": 1_234_567,
        "update": 1500,
    }


def result_of(row: Row, bleu: float) -> dict[str, Any]:
    return {
        **identity(row),
        "label": row.label,
        "curve_name": row.curve,
        "paper": dict(row.paper),
        "bleu": bleu + 2,
        "training": {"update": 2500, "seconds": 5400.0},
        "commit": "0123456789+",
        "hardware": "H",
        "evaluation": evaluation(bleu + 2, "valid"),
        "tests": {one.name: evaluation(bleu - i, f"test {i}") for i, one in enumerate(row.tests)},
        "curve": [
            {
                "kind": "train",
                "update": 20,
                "loss": 1.0,
                "tokens_per_second": 800.0,
                "waiting": 0.004,
            },
            {"kind": "valid", "update": 20, "bleu": bleu},
        ],
    }


def make_study(folder: Path, data_dir: Path) -> Study:
    """A study of Multi30k's first rows on made-up text, with made-up runs."""
    found = study.make_study("table2", "small", [], folder, folder / "results")
    rows = [
        dataclasses.replace(
            row,
            data=dataclasses.replace(row.data, folder=data_dir.name),
            tests=tuple(one._replace(split="valid") for one in row.tests),
        )
        for row in found.rows
        if row.name.removeprefix("multi30k_en_de_") in NAMES
    ]
    assert len(rows) == len(NAMES)
    of = dataclasses.replace(found, rows=rows, data_dir=data_dir.parent)
    references = read_lines(data_dir / "valid.target.txt")
    for row, wrong in zip(rows, (0.5, 0.8), strict=True):
        write_json(of.result_path(row), result_of(row, 30.0))
        lines = [
            " ".join("x" if i < wrong * len(line.split()) else word for i, word in enumerate(words))
            for line in references
            if (words := line.split())
        ]
        of.lines_path(row, "valid").write_text("".join(f"{line}\n" for line in lines))
    return of


def test_rows_are_compared_with_bahdanau_and_the_comparison_is_kept(
    tmp_path: Path, data_dir: Path
) -> None:
    of = make_study(tmp_path, data_dir)
    bahdanau, slots = table2.results(of)
    assert KEY not in bahdanau
    compared = slots[KEY]["bleu"]
    last = of.rows[0].tests[-1].name
    for result, score in ((bahdanau, "baseline"), (slots, "score")):  # as `evaluate` writes them
        result["tests"][last]["bleu"] = round(compared[score], 4)
    for row, result in zip(of.rows, (bahdanau, slots), strict=True):
        write_json(of.result_path(row), result)
    assert compared["score"] < compared["baseline"]
    assert compared["p_value"] < 0.05
    assert "|case:lc|" in compared["signature"] and "bs:1000" in compared["signature"]
    assert set(slots[KEY]) == {"bleu", "standard_bleu", "chrf"}
    stored = of.result_path(of.rows[1])
    assert read_json(stored)[KEY] == slots[KEY]
    stamp = stored.stat().st_mtime_ns
    # If the text is missing, the earlier comparison is kept.
    elsewhere = dataclasses.replace(of, data_dir=tmp_path / "elsewhere")
    assert table2.results(elsewhere)[1][KEY] == slots[KEY]
    assert table2.results(of)[1][KEY] == slots[KEY]
    assert stored.stat().st_mtime_ns == stamp
    of.lines_path(of.rows[0], "valid").rename(tmp_path / "away")
    assert table2.results(of)[1][KEY] == slots[KEY]
    (tmp_path / "away").rename(of.lines_path(of.rows[0], "valid"))
    # It is not kept if the baseline has changed.
    write_json(
        of.result_path(of.rows[0]), {**bahdanau, "tests": result_of(of.rows[0], 3.0)["tests"]}
    )
    assert KEY not in table2.results(elsewhere)[1]
    of.result_path(of.rows[0]).unlink()  # without the baseline, there is no comparison
    assert KEY not in table2.results(of)[0]


def test_means_over_seeds_are_compared_and_the_comparison_is_kept(
    tmp_path: Path, data_dir: Path
) -> None:
    of = make_study(tmp_path, data_dir)
    bahdanau, slots = table2.results(of)
    name = bahdanau["name"]
    compare_means(of, [bahdanau, slots], [bahdanau], name)
    found, of_one = slots[MEANS_KEY][name], slots[KEY]["bleu"]
    # The mean has half of the difference, because one of the two is the baseline itself.
    assert found["difference"] == pytest.approx((of_one["score"] - of_one["baseline"]) / 2)
    assert found["low"] < found["difference"] < found["high"] < 0
    stored = of.result_path(of.rows[1])
    assert read_json(stored)[MEANS_KEY] == {name: found}
    last = of.rows[0].tests[-1].name
    for result, score in ((bahdanau, "baseline"), (slots, "score")):
        result["tests"][last]["bleu"] = round(of_one[score], 4)
    elsewhere = dataclasses.replace(of, data_dir=tmp_path / "elsewhere")
    compare_means(elsewhere, [bahdanau, slots], [bahdanau], name)
    assert slots[MEANS_KEY] == {name: found}
    bahdanau["tests"][last]["bleu"] += 0.01
    compare_means(elsewhere, [bahdanau, slots], [bahdanau], name)
    assert not slots[MEANS_KEY]


def test_the_page_has_a_table_for_each_corpus_with_its_signatures(
    tmp_path: Path, data_dir: Path
) -> None:
    results = table2.results(make_study(tmp_path, data_dir))
    others = ("wmt_news_en_de_k64", "wmt17_en_tr_k32", "wmt17_en_de_k32")
    results += [result_of(table2.text_row(name, 400), 5.0) for name in others]
    multi30k, newstest, turkish, german, beside = table2.tables(results).split("## ")[1:]
    assert multi30k.startswith("Multi30k, en-de\n")
    assert newstest.startswith("News of 2008 to 2014, en-de\n")
    scores, costs = (
        [line for line in multi30k.splitlines() if line[:1] == "|" and line.count("|") == bars]
        for bars in (10, 8)
    )
    difference = results[1][KEY]["bleu"]["score"] - results[1][KEY]["bleu"]["baseline"]
    expected = f"| K=4 | 0 | 32.00 | 29.00 | 29.00 | 50.00 | {difference:+.2f} | <= 0.001 | 1,500 |"
    assert scores[3] == expected
    assert costs[3].startswith("| K=4 | 1.23 M | 800 | 0.4 % | 2,500 | 1.5 | 0123456789 with")
    assert scores[2].endswith("| - | - | 1,500 |")  # the baseline itself
    said = [line for line in multi30k.splitlines() if line.startswith("* ")]
    assert said[:3] == ["* tokenised: `test 1`", "* standard: `standard`", "* chrF: `chrf`"]
    assert said[3].startswith("* p: `nrefs:1|bs:1000|ar:10000")
    assert "Trained on: H (commit 0123456789 with changed files)." in german
    assert "| 5.00 | 4.00 |" in newstest  # one test set, one score
    assert "| - | - | 1,500 | 12.94 | - |" in turkish  # the paper gives no test score
    assert "| - | - | 1,500 | 26.20 | 28.82 |" in german
    assert "| model, validation | en-cs | en-de | en-fi | en-tr | Multi30k, here |" in beside
    assert "| K=64 | 19.63 (+1.02) | 26.39 (-1.74) | 16.35 (-0.81) | 13.06 (-0.70) |" in beside
    assert "| Att | 19.19 | 30.99 | 17.34 | 29.00 |" in beside


def test_the_page_has_the_papers_settings_beside_ours_and_says_how_equation_5_is_read() -> None:
    said = table2.introduction("small")
    assert "Equation 5 is read as a softmax over the source" in said
    assert "best of four pairs" in said
    settings = table2.settings("small")
    assert "| encoder | 2 layers of 512 units, bidirectional | 1 layer of 384 units in" in settings
    assert "| updates at most | 1,000,000 | 3,600; 2,500 |" in settings
    assert "| batch | 128, 8 workers | 128 |" in table2.settings("full")


def test_a_figure_has_all_seeds_of_a_model_on_its_curve_and_no_other_scores() -> None:
    names = ["bahdanau", "k32", "k32_pe", "k32_seed1", "k32_sigmoid_softmax"]
    rows = {row.name: row for row in table2.rows("tiny")}
    chosen = [f"multi30k_en_de_{name}" for name in names]
    curves = table2.curves([result_of(rows[name], 1.0) for name in chosen])
    shown = {name: [result["curve_name"] for result in found] for name, found in curves.items()}
    models = ["bahdanau", "k_memory:32", "k_memory:32 + PE", "k_memory:32"]
    assert shown == {"multi30k_en_de": models}
    assert list(table2.curves([result_of(rows[chosen[0]], 1.0)])) == ["multi30k_en_de"]


def test_figures_are_by_corpus_and_pair(tmp_path: Path, data_dir: Path) -> None:
    results = make_study(tmp_path, data_dir).finished()
    other = result_of(table2.text_row("wmt17_en_cs_k32", 16_000), 10.0)
    groups = table2.by_pair([*results, other])
    assert {name: len(found) for name, found in groups.items()} == {
        "multi30k_en_de": 2,
        "wmt17_en_cs": 1,
    }
