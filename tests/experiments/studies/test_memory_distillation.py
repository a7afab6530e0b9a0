"""The study of what makes K-memory as good as attention: its rows, its page and its figures."""

from pathlib import Path
from typing import Any

import pytest

from experiments.reproduction.pages import write_page
from experiments.reproduction.results import Results, read_json, write_json
from experiments.reproduction.significance import MEANS_KEY
from experiments.reproduction.study import Study, make_study
from experiments.studies import memory_distillation
from experiments.studies.memory_distillation import FLICKR, LONGER, MSCOCO, UPDATES
from tests.experiments.row_results import result_of
from tests.pictures import assert_drawn

NAMES = ("att", "k64", "k64_seed1", "k64_spread", "k64_both_start")


def study(folder: Path) -> Study:
    made = make_study("memory_distillation", "small", list(NAMES), folder, folder / "results")
    for number, row in enumerate(made.rows):
        if row.name in NAMES:
            write_json(made.result_path(row), finished(row, 35.0 + number))
    return made


def finished(row: Any, bleu: float) -> dict[str, Any]:
    result = result_of(row, bleu)
    result["evaluation"] = {"update": 2000, "signature": "case:mixed"}
    scores = {FLICKR: bleu + 1, MSCOCO: bleu - 5}
    result["tests"] = {
        name: {"bleu": score, "chrf": score + 20, "signature": "case:lc"}
        for name, score in scores.items()
    }
    if row.name.startswith("k64"):
        for point in result["curve"]:
            point |= {"slots_corpus": 64.0 - point["update"] / 100, "slots_dead": 3}
            point |= {"slots_sentence": 30.0, "slots_step": 4.0}
    return result


def table_of(found: Results) -> list[str]:
    """The lines of the page about translation; the fifth is the first row of the table."""
    return memory_distillation.tables(found).partition("## Translation")[2].splitlines()


def test_every_trial_has_two_seeds_of_each_length_and_a_teacher_where_it_has_weights_of_one() -> (
    None
):
    rows = {row.name: row for row in memory_distillation.rows("small") if not row.length}
    for name, row in rows.items():
        training = row.preset().training
        assert training.num_updates == (LONGER if "_long" in name else UPDATES)
        assert training.seed == int(name.endswith("_seed1"))
        is_taught = training.alignment_weight > 0 or training.context_weight > 0
        assert bool(row.teacher) == is_taught
        assert row.needs <= {"att"}
        assert bool(row.needs) == ("teacher:" in row.label)
        assert ("distilled" in name) == bool(row.data.translated_by)
    chosen = set(memory_distillation.chosen("small"))
    assert {"att", "k64", "k64_all", "k32_all"} <= chosen
    assert not any("_long" in name or "seed1" in name for name in chosen)
    texts = {name for name in chosen if not name.startswith("copy_")}
    assert {*texts, *(f"{name}_long_seed1" for name in texts)} <= set(rows)


def test_the_page_names_the_rows_with_which_it_can_be_repeated(tmp_path: Path) -> None:
    made = study(tmp_path)
    found = memory_distillation.results(made)
    page = write_page("memory_distillation", "small", made, found, tmp_path / "results")
    command = "python -m experiments.reproduce memory_distillation --scale=small"
    assert f"{command} \\\n    --rows={','.join(NAMES)}\n" in page.read_text()


def test_the_page_has_both_test_sets_and_the_slots_in_use(tmp_path: Path) -> None:
    found = memory_distillation.results(study(tmp_path))
    assert [result["name"] for result in found] == list(NAMES)
    table = table_of(found)
    assert (
        table[4]
        == "| Att | as it is | 3,600 | 2,000 | 0 | 35.00 | 36.00 | - | 30.00 | 56.0 | - | - |"
    )
    assert {"* test_2016: `case:lc`", "* valid: `case:mixed`"} < set(table)
    spread = next(line for line in table if "| spread |" in line)
    assert spread.endswith("| 44/30/4 | 3 |")


def test_scores_have_the_interval_of_the_bootstrap(tmp_path: Path) -> None:
    of = study(tmp_path)
    rows = {row.name: row for row in of.rows}
    halves = {"baseline": 36.0, "ci": 1.64, "baseline_ci": 1.46, "p_value": 0.5}
    for result in memory_distillation.results(of):
        if result["name"] != "att":
            score = result["tests"][FLICKR]["bleu"]
            result["against_baseline"] = {"bleu": {**halves, "score": score}}
            write_json(of.result_path(rows[result["name"]]), result)
    table = table_of(memory_distillation.results(of))
    assert "| 36.00 ± 1.5 | - | 30.00 |" in table[4]
    assert "| 44.00 ± 1.6 | +8.00 | 38.00 |" in table[5]
    found = memory_distillation.results(of)
    del found[1]["against_baseline"]  # not compared yet: no other row's interval
    assert "| 44.00 | - | 38.00 |" in table_of(found)[5]


def test_means_of_two_seeds_have_their_difference_from_those_of_attention(tmp_path: Path) -> None:
    of = study(tmp_path)
    rows = {row.name: row for row in of.rows}
    for name, bleu in (("att", 35.0), ("att_seed1", 38.0), ("k64", 44.0), ("k64_seed1", 46.0)):
        write_json(of.result_path(rows[name]), finished(rows[name], bleu))
    second = of.result_path(rows["k64_seed1"])
    # A comparison is kept if it is of these scores; the text is not here.
    for difference, shown in ((8.5, "+8.5 (+6.2, +9.1)"), (7.0, "-")):
        kept = {MEANS_KEY: {"att": {"difference": difference, "low": 6.2, "high": 9.06}}}
        write_json(second, read_json(second) | kept)
        page = memory_distillation.tables(memory_distillation.results(of))
        part = page.partition("## Translation")[0]
        assert part.startswith("## Means of two seeds\n\n")
        assert [line for line in part.splitlines() if line.startswith("| ")][1:] == [
            "| Att | as it is | 3,600 | 36.50 | 37.50 | 31.50 | 57.5 | - | - |",
            f"| K=64 | as it is | 3,600 | 45.00 | 46.00 | 40.00 | 66.0 | {shown} | - |",
        ]
    kept = {MEANS_KEY: {"att": {"difference": 8.5, "low": 6.2, "high": 9.06}}}
    write_json(second, read_json(second) | kept)
    of.result_path(rows["att_seed1"]).unlink()
    page = memory_distillation.tables(memory_distillation.results(of))
    assert "| 45.00 | 46.00 | 40.00 | 66.0 | - | - |" in page


def test_figures_show_slots_and_teachers_apart(tmp_path: Path) -> None:
    of = study(tmp_path)
    titles = memory_distillation.draw(of, memory_distillation.results(of), tmp_path / "small")
    assert set(titles) == {"slots", "teacher", "slots_use", "teacher_use"}
    for ending in titles:
        assert_drawn(tmp_path / f"small_{ending}.png")


def test_rows_are_compared_with_attention_that_was_trained_as_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: dict[str, list[str]] = {}

    def compare(study: Study, baseline: str, found: Any) -> None:
        compared[baseline] = [result["name"] for result in found]

    monkeypatch.setattr(memory_distillation.significance, "compare_with", compare)
    of = study(tmp_path)
    for row in of.rows:
        if row.name in ("att_long", "k64_long"):
            write_json(of.result_path(row), finished(row, 36.0))
    memory_distillation.results(of)
    assert compared == {"att": list(NAMES), "att_long": ["att_long", "k64_long"]}


def test_copies_say_after_how_many_updates_they_are_good(tmp_path: Path) -> None:
    rows = {row.name: row for row in memory_distillation.rows("small") if row.length}
    assert rows["copy_100_k32_all"].needs == {"copy_100_att"}
    assert rows["copy_100_k32"].needs == set()
    assert rows["copy_50_k32_all"].preset().model.slot_hidden == 256
    first, then = (rows[f"copy_50_k32_all_250{end}"] for end in ("", "_then"))
    assert (first.needs, first.teacher) == ({"copy_50_att"}, "copy_50_att")
    assert (then.needs, then.teacher) == ({first.name}, "")
    assert first.preset().training.num_updates + then.preset().training.num_updates == 2000
    limits = [rows[f"copy_50_k32{name}"].preset().training.num_updates for name in ("", "_start")]
    assert limits == [6000, 2000]
    found = []
    names = ("50_k32", "50_k32_all_250", "50_k32_all_250_then", "100_att", "100_k32_both_start")
    for name, bleu in zip(names, (98.0, 70.0, 99.2, 99.9, 99.5), strict=True):
        result = result_of(rows[f"copy_{name}"], bleu)
        result["evaluation"], result["training"]["update"] = {"exact": 0.5}, 4000
        found.append(result)
    (alone,) = memory_distillation._with_first_parts(found[2:3])
    assert [point["update"] for point in alone["curve"]] == [2250, 4250]
    found = memory_distillation._with_first_parts(found)
    assert [point["update"] for point in found[2]["curve"]] == [2000, 4000, 2250, 4250]
    page = memory_distillation.tables(found)
    assert page.startswith("## Copying\n\nAs in [Table 1]")
    assert [line for line in page.splitlines() if line.startswith("| ")][1:] == [
        "| 50 | K=32 | as it is | - | 98.00 | 50.0 % | 4,000 |",
        "| 50 | K=32 | hidden, spread, teacher: weights, contexts, alignments, 250 updates | 4,250 "
        "| 99.20 | 50.0 % | 4,250 |",
        "| 100 | Att | as it is | 4,000 | 99.90 | 50.0 % | 4,000 |",
        "| 100 | K=32 | teacher: weights, contexts, alignments | 4,000 | 99.50 | 50.0 % | 4,000 |",
    ]
    of = make_study("memory_distillation", "small", [], tmp_path, tmp_path)
    assert set(memory_distillation.draw(of, found, tmp_path / "small")) == {"l50", "l100"}
