"""Figures 3 to 5, from made-up results of the rows of the tables."""

from pathlib import Path
from typing import Any

import pytest

from experiments.reproduction.pages import sources, write_page
from experiments.reproduction.results import write_json
from experiments.reproduction.rows import Scale
from experiments.reproduction.study import Study, load_definition, make_study
from experiments.studies import _curves, ambiguities, table1, table2
from tests.experiments.row_results import write_results_of
from tests.pictures import assert_drawn

TABLES = {"figure3a": "table1", "figure3b": "ambiguities", "figure4": "table2", "figure5": "table2"}
FILES = {
    "figure3a": ["l6"],
    "figure3b": ["l6_k32", "l6_k4"],
    "figure4": ["multi30k_en_de"],
    "figure5": ["multi30k_en_de_k32", "multi30k_en_de_k64"],
}
ROWS = {
    "figure3a": {
        f"copy_200_{name}" for name in ["none", "k1", "k4", "k16", "k32", "k64", "bahdanau"]
    },
    "figure3b": {
        f"k{slots}_{encoder}_{decoder}"
        for slots in (4, 32)
        for encoder in ("softmax_time", "sigmoid")
        for decoder in ("softmax", "sigmoid")
    },
    "figure4": {
        f"multi30k_en_de_{name}"
        for name in [
            *("bahdanau", "none", "k4", "k8", "k32", "k64", "k32_pe", "k64_pe"),
            *("bahdanau_seed1", "k32_seed1", "k64_pe_sigmoid_softmax"),
        ]
    },
    "figure5": {
        f"multi30k_en_de_{pair}"
        for pair in (
            *("k32", "k32_softmax_sigmoid", "k32_sigmoid_softmax", "k32_sigmoid_sigmoid"),
            *("k32_slots_softmax", "k32_slots_sigmoid"),
            *("k32_seed1", "k32_slots_softmax_seed1", "k32_slots_sigmoid_seed1"),
            *("k64", "k64_slots_softmax", "k64_slots_sigmoid"),
        )
    },
}


def make(name: str, scale: Scale, folder: Path, names: tuple[str, ...] = ()) -> Study:
    return make_study(name, scale, names, folder, folder / "results")


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("scale", ["tiny", "small"])
def test_rows_are_those_of_a_table_with_their_runs_and_results(
    name: str, scale: Scale, tmp_path: Path
) -> None:
    of, table = make(name, scale, tmp_path), make(TABLES[name], scale, tmp_path)
    known = {row.name: row for row in table.rows}
    assert set(of.names()) == ROWS[name]
    for row in of.rows:
        assert row == known[row.name]
        assert of.result_path(row) == table.result_path(row)
    assert (of.runs_dir, of.data_dir) == (table.runs_dir, table.data_dir)
    with pytest.raises(ValueError, match="--rows: expected some of"):
        make(name, scale, tmp_path, ("copy_20_k4",))


def test_at_full_scale_translation_is_that_of_the_paper(tmp_path: Path) -> None:
    names = make("figure4", "full", tmp_path).names()
    assert sorted(names) == sorted(
        f"wmt17_{pair}_{name}"
        for pair in ("en_fi", "en_tr")
        for name in ("k32_pe", "k64_pe", "bahdanau")
    )
    of = make("figure5", "full", tmp_path)
    assert of.names()[0] == "wmt17_en_fi_k64"  # the row with sigmoid and softmax
    ends = {name.removeprefix("wmt17_en_fi_k64") for name in of.names()}
    others = {"_softmax_softmax", "_softmax_sigmoid", "_sigmoid_sigmoid"}
    assert ends == {"", *others, "_slots_softmax", "_slots_sigmoid"}


@pytest.mark.parametrize("name", TABLES)
def test_a_page_has_its_pictures_and_says_where_they_are_from(name: str, tmp_path: Path) -> None:
    of, definition = make(name, "tiny", tmp_path), load_definition(name)
    results = write_results_of(of)
    assert definition.results(of) == results
    of.result_path(of.rows[-1]).unlink()
    write_page(name, "tiny", of, definition.results(of), tmp_path / "results")
    page = (tmp_path / "results" / f"{name}_tiny.md").read_text()
    for file in FILES[name]:
        assert f"]({name}/tiny_{file}.png)" in page
        stem = tmp_path / "results" / name / f"tiny_{file}"
        assert_drawn(stem.with_suffix(".png"), stem.with_suffix(".svg"))
    missing = of.rows[-1]
    told = f"Rows without a result so far (`--rows=NAME` makes one): `{missing.name}`."
    assert told in " ".join(page.split())
    assert definition.tables(results[:-1]).strip() in page
    assert f"```\npython -m experiments.reproduce {name} --scale=tiny\n```" in page
    assert "paper's Figure" in " ".join(page.split())


def test_a_figures_table_has_its_rows_and_what_trained_them(tmp_path: Path) -> None:
    first, second, *_ = write_results_of(make("figure3a", "tiny", tmp_path))
    assert sources([first, second]).splitlines() == [
        "| row | model | BLEU | updates | seed | commit |",
        "|---|---|---|---|---|---|",
        f"| {first['name']} | {first['label']} | 50.00 | 4,000 | 0 | 0123456789 |",
        f"| {second['name']} | {second['label']} | 51.00 | 4,000 | 0 | 0123456789 |",
        "",
        "Trained on: some GPU, jax. The JSON file of each row records the command that trained it.",
    ]


def test_curves_are_called_by_their_pairs_of_scores_for_each_number_of_slots(
    tmp_path: Path,
) -> None:
    groups = _curves.by_scores(table1.by_length)(
        write_results_of(make("figure3b", "small", tmp_path))
    )
    assert set(groups) == {"l20_k32", "l20_k4"}
    encoders = ("softmax over source", "sigmoid")
    expected = {f"{a} / {b}" for a in encoders for b in ("softmax", "sigmoid")}
    for group, members in groups.items():
        assert {member["curve_name"] for member in members} == expected
        assert all(member["name"].startswith(group.removeprefix("l20_")) for member in members)


@pytest.mark.parametrize(
    ("title", "group", "expected"),
    [
        (table1.group_title, "l200", "Copy task, L = 200"),
        (table1.group_title, "l20_k4", "Copy task, L = 20, K = 4"),
        (table2.group_title, "multi30k_en_de", "Multi30k, en-de"),
        (table2.group_title, "wmt17_en_fi_k64", "WMT'17, en-fi, K = 64"),
    ],
)
def test_titles_say_what_is_drawn(title: Any, group: str, expected: str) -> None:
    assert title(group) == expected


def test_readings_are_drawn_by_pair_and_each_pair_beside_its_variants(tmp_path: Path) -> None:
    groups = ambiguities.curves(write_results_of(make("ambiguities", "small", tmp_path)))
    assert {name for name in groups if not name.endswith("pairs")} == {
        *("l20_k32_sigmoid_softmax", "l20_k32_softmax_slots_softmax"),
        *("l20_k32_softmax_time_softmax", "l20_k4_sigmoid_softmax"),
        "l20_k4_softmax_time_softmax",
    }
    assert {name for name in groups if name.endswith("pairs")} == {
        *("l20_k32_pairs", "l20_k4_pairs", "l50_k32_pairs"),
    }
    named = {name: [one["curve_name"] for one in members] for name, members in groups.items()}
    assert {*named["l20_k4_pairs"]} == {*_curves.PAIRS_IN_ORDER}
    slots = "l20_k32_softmax_slots_softmax"
    pair = "softmax over slots / softmax"
    assert named[slots] == [pair, f"{pair}, dense bridge"]
    assert ambiguities.group_title(slots) == f"Copy task, L = 20, K = 32: variants of {pair}"
    assert ambiguities.group_title("l50_k32_pairs") == "Copy task, L = 50, K = 32: pairs of scores"


def test_the_slot_of_the_default_looks_as_in_table_1(tmp_path: Path) -> None:
    names = [row.curve for row in make("one_slot", "small", tmp_path).rows]
    assert names == ["none", "k_memory:1", "k_memory:1, softmax over slots"]


def test_results_take_their_names_from_the_rows(tmp_path: Path) -> None:
    of = make("figure3b", "small", tmp_path)
    for result in write_results_of(of):
        write_json(of.results_dir / f"{result['name']}.json", {**result, "label": "older"})
    assert [one["label"] for one in of.finished()] == [row.label for row in of.rows]
    assert of.rows[0].label == "K=32, softmax over source / softmax"
