"""The studies have the rows of the papers, and each row has a preset of the same name."""

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest

from experiments.reproduction.rows import Scale
from experiments.reproduction.study import make_study, study_names
from experiments.studies import _flexible, multi30k_sizes, one_slot, table1, table2
from seq2seq_memattn.presets import small_text
from seq2seq_memattn.presets.copy_task import ATTENTIONS, LENGTHS
from seq2seq_memattn.presets.load import PRESETS, load_preset


@pytest.mark.parametrize("name", study_names())
@pytest.mark.parametrize("scale", ["tiny", "small", "full"])
def test_rows_have_names_of_their_own_and_options_that_there_are(
    name: str, scale: Scale, tmp_path: Path
) -> None:
    study = make_study(name, scale, [], tmp_path, tmp_path)
    names = [row.name for row in study.rows]
    assert len(set(names)) == len(names) and set(study.names()) <= set(names)
    for row in study.rows if name != "decoding" else ():
        row.preset()  # raises for an unknown preset or option


def test_every_preset_is_in_a_study() -> None:
    scales: tuple[Scale, ...] = ("small", "full")
    studied = {row.config for scale in scales for row in (*table1.rows(scale), *table2.rows(scale))}
    studied |= {row.config for name in _flexible.CORPORA for row in _flexible.corpus_rows(name)}
    assert set(PRESETS) == studied


def test_table_1_has_the_papers_figures_for_each_row() -> None:
    rows = table1.rows("full")
    assert [row.name for row in rows] == [
        f"copy_{length}_{name}" for length in LENGTHS for name in ATTENTIONS
    ]
    for row in rows:
        assert row.options == {} and row.length == int(row.name.split("_")[1])
        assert 0 < row.paper["bleu"] <= 100 and row.paper["seconds"] > 0


def test_small_and_tiny_rows_keep_the_attention() -> None:
    small, tiny = (table1.row(20, "k32", scale).preset() for scale in ("small", "tiny"))  # type: ignore[arg-type]
    assert small.model.attention == tiny.model.attention == "k_memory:32"
    assert small.training.learning_rate == table1.SMALL["learning_rate"]
    assert small.model.encoder_units == load_preset("copy_20_k32").model.encoder_units


def test_longer_sequences_are_validated_less_often_and_the_page_says_so() -> None:
    long = table1.row(200, "k4", "small").preset().training
    assert (long.num_updates, long.validate_every) == (4000, 500)
    assert long.learning_rate == table1.SMALL["learning_rate"]
    said = table1.introduction("small")
    assert "at most 6,000 updates (5,000 at L = 100, 4,000 at L = 200)" in said
    assert "every 250 updates (500 at L = 100, 500 at L = 200)" in said


@pytest.mark.parametrize(
    ("scale", "lengths"), [("small", {20}), ("tiny", {20}), ("full", {*LENGTHS})]
)
def test_rows_that_two_cores_cannot_train_are_run_when_they_are_named(
    scale: Scale, lengths: set[int], tmp_path: Path
) -> None:
    names = make_study("table1", scale, [], tmp_path, tmp_path).names()
    assert len(names) == len(lengths) * len(ATTENTIONS)
    assert {int(name.split("_")[1]) for name in names} == lengths
    one = make_study("table1", scale, ["copy_200_k4"], tmp_path, tmp_path)
    assert one.names() == ["copy_200_k4"]
    every = make_study("table1", scale, ["all"], tmp_path, tmp_path)
    assert len(every.names()) == len(LENGTHS) * len(ATTENTIONS)
    with pytest.raises(ValueError, match="expected some of .*copy_200_k4.*; got 'copy_300_k4'"):
        make_study("table1", scale, ["copy_300_k4"], tmp_path, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTENTIONS)
def test_the_tiny_form_of_a_row_takes_an_update(name: str) -> None:
    from seq2seq_memattn.training.make import make_parts

    preset = table1.row(20, name, "tiny").preset()
    model, _, updater = make_parts(preset.model, preset.training)
    before = [np.asarray(v) for v in model.trainable_variables]
    ids = np.array([[5, 4, 2], [7, 2, 0]], np.int32)
    starts = np.array([[1, 5, 4], [1, 7, 0]], np.int32)
    result = updater({"source": ids, "target_inputs": starts, "target_outputs": ids})
    assert result.is_applied
    assert result.num_tokens == 5
    assert result.loss == pytest.approx(np.log(23), rel=0.05)
    moved = [
        not np.array_equal(a, np.asarray(b))
        for a, b in zip(before, model.trainable_variables, strict=True)
    ]
    # K = 1: a softmax over one slot is always 1, so decoder energies have no effect.
    still = [v.path for v, m in zip(model.trainable_variables, moved, strict=True) if not m]
    assert all("attention_decoder_energy" in path for path in still)
    assert bool(still) == (name == "k1")


def test_table_2_has_each_row_of_the_paper_and_of_the_miniature(tmp_path: Path) -> None:
    full, small = table2.rows("full"), table2.rows("small")
    assert len(full) == 20
    assert all(len(row.paper) == (1 if "en_tr" in row.name else 2) for row in full)
    assert len({row.name for row in small}) == len(small) == 25
    assert {row.data.corpus for row in small} == {"multi30k", "wmt_news"}
    with pytest.raises(ValueError, match="--rows: expected some of multi30k_en_de_bahdanau"):
        make_study("table2", "small", ["wmt17_en_de_k32"], tmp_path, tmp_path)


def test_the_pairs_of_scores_are_there_for_32_slots_with_each_axis_once() -> None:
    found: dict[str, list[tuple[str, str]]] = {"time": [], "slots": []}
    rows = (row for row in table2.rows("small") if row.data.corpus == "multi30k")
    for row in rows:
        model = row.preset().model
        if (model.attention, model.position_encoding, model.seed) == ("k_memory:32", "none", 0):
            found[model.normalise_over].append((model.encoder_score, model.decoder_score))
    assert sorted(found["time"]) == sorted(itertools.product(("softmax", "sigmoid"), repeat=2))
    assert sorted(found["slots"]) == [("softmax", "sigmoid"), ("softmax", "softmax")]


def test_the_printed_softmax_has_a_second_seed() -> None:
    rows = [row for row in table2.rows("small") if row.options.get("normalise_over") == "slots"]
    seeds = {row.name: row.preset().model.seed for row in rows}
    assert sorted(seeds.values()) == [0, 0, 0, 0, 1, 1]
    assert all(name.endswith("_seed1") == bool(seed) for name, seed in seeds.items())


def test_one_slot_is_read_in_both_ways_beside_no_attention() -> None:
    models = [row.preset().model for row in one_slot.rows("small")]
    assert [(model.attention, model.normalise_over) for model in models] == [
        ("none", "time"),
        ("k_memory:1", "time"),
        ("k_memory:1", "slots"),
    ]
    assert {row.preset().training.num_updates for row in one_slot.rows("small")} == {9000}


def test_candidates_for_the_size_of_multi30k_differ_in_size_alone() -> None:
    rows = multi30k_sizes.rows("small")
    presets = [row.preset() for row in rows]
    assert len({one.training for one in presets}) == 1
    widths = dict.fromkeys(multi30k_sizes.WIDTHS, 1)
    assert len({dataclasses.replace(one.model, **widths) for one in presets}) == 1
    sizes = {
        (row.data.command[-1], one.model.embedding_dim)
        for row, one in zip(rows, presets, strict=True)
    }
    assert len(sizes) == len(rows) == len({row.data.folder for row in rows}) + 1
    chosen = load_preset("multi30k_en_de_k4").model
    assert (f"--vocab_size={small_text.PIECES}", chosen.embedding_dim) in sizes
