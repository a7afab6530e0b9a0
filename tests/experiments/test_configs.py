"""Every configuration: it parses, it is a row of its table, and its tiny form trains."""

import dataclasses
import itertools
from pathlib import Path

import pytest

from experiments.copy_rows import ATTENTIONS, LENGTHS, SMALL, small, tiny
from experiments.experiment import experiment_names, load_experiment
from experiments.sizes import make_study as make_sizes
from experiments.table1 import introduction, table1_row
from experiments.table1 import make_study as make_table1
from experiments.table2 import make_study as make_table2
from experiments.text_rows import SMALL_PIECES, WIDTHS
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.training.updates.schedule import learning_rate
from tests.marks import quick

ROWS = [(length, attention) for length in LENGTHS for attention in ATTENTIONS]


def name_of(length, attention):
    return f"copy_{length}_{attention.replace('k_memory:', 'k')}"


def test_there_is_one_configuration_for_each_row_of_table_1():
    assert sorted(name_of(*row) for row in ROWS) == [n for n in experiment_names() if "copy" in n]


@pytest.mark.parametrize(("length", "attention"), ROWS)
def test_a_configuration_is_the_row_that_its_name_says(length, attention):
    experiment = load_experiment(name_of(length, attention))
    assert experiment.max_length == length
    assert experiment.model.attention == attention
    assert experiment.training.learning_rate == 1e-4
    assert experiment.training.num_updates == 200_000
    assert experiment.model.dropout == 0.2
    assert 0 < experiment.paper["bleu"] <= 100 and experiment.paper["seconds"] > 0


def test_an_unknown_configuration_is_an_error_that_names_the_others():
    with pytest.raises(ValueError, match=r"no experiment 'copy_20_k5'; there are .*copy_20_k4"):
        load_experiment("copy_20_k5")


def test_small_and_tiny_forms_keep_the_attention_and_state_their_own_options():
    experiment = load_experiment("copy_20_k32")
    assert small(experiment).model.attention == tiny(experiment).model.attention == "k_memory:32"
    assert small(experiment).training.learning_rate == SMALL["learning_rate"]
    assert small(experiment).model.encoder_units == experiment.model.encoder_units


def test_longer_sequences_are_validated_less_often_and_the_page_says_so():
    long = small(load_experiment("copy_200_k4")).training
    assert (long.num_updates, long.validate_every) == (4000, 500)
    assert long.learning_rate == SMALL["learning_rate"]
    said = introduction("small")
    assert "6,000 updates at most (5,000 at L = 100, 4,000 at L = 200)" in said
    assert "every 250 updates (500 at L = 100, 500 at L = 200)" in said


def test_a_row_of_a_study_holds_just_the_options_that_differ_from_its_configuration():
    assert table1_row("copy_20_k4", "full").options == {}
    assert set(table1_row("copy_20_k4", "small").options) == set(SMALL)


@pytest.mark.parametrize(
    ("scale", "lengths"), [("small", {20}), ("tiny", {20}), ("full", {*LENGTHS})]
)
def test_rows_that_two_cores_cannot_train_are_run_when_they_are_named(scale, lengths, tmp_path):
    study = make_table1(scale, [], tmp_path, tmp_path)
    assert len(study.rows) == len(ROWS)
    assert len(study.chosen) == len(lengths) * len(ATTENTIONS)
    assert {int(name.split("_")[1]) for name in study.chosen} == lengths
    assert make_table1(scale, ["copy_200_k4"], tmp_path, tmp_path).chosen == ["copy_200_k4"]
    assert len(make_table1(scale, ["all"], tmp_path, tmp_path).chosen) == len(ROWS)
    with pytest.raises(ValueError, match="expected some of .*copy_200_k4.*; got 'copy_300_k4'"):
        make_table1(scale, ["copy_300_k4"], tmp_path, tmp_path)


@pytest.mark.parametrize("attention", quick(ATTENTIONS, "k_memory:32"))
def test_the_tiny_form_of_a_row_takes_an_update(attention):
    import numpy as np

    from seq2seq_memattn.training.make import make_parts

    experiment = tiny(load_experiment(name_of(20, attention)))
    model, _, updater = make_parts(experiment.model, experiment.training)
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
    # K = 1: a decoder's only score is 1 whatever its energy, so nothing moves there.
    still = [v.path for v, m in zip(model.trainable_variables, moved, strict=True) if not m]
    assert all("attention_decoder_energy" in path for path in still)
    assert bool(still) == (attention == "k_memory:1")


@pytest.mark.parametrize("name", [n for n in experiment_names() if n.startswith("wmt17_")])
def test_a_row_of_table_2_is_what_its_name_says(name):
    _, first, second, row = name.split("_", 3)
    experiment = load_experiment(name)
    model = experiment.model
    assert (first, second) in [("en", language) for language in ("cs", "de", "fi", "tr")]
    assert model.embedding_dim == model.encoder_units == model.decoder_units == 512
    assert experiment.training.num_updates == 1_000_000
    assert experiment.training.checkpoint_minutes == 30.0
    attention = row.removesuffix("_pe").replace("k", "k_memory:", row.startswith("k"))
    assert model.attention == attention
    assert (model.position_encoding != "none") == row.endswith("_pe")
    assert len(experiment.paper) == (1 if second == "tr" else 2)


def test_there_is_one_configuration_for_each_row_of_table_2():
    names = [n for n in experiment_names() if n.startswith("wmt17_")]
    full = make_table2("full", [], Path("work"), Path("results"))
    assert sorted(row.config for row in full.rows) == names
    assert len(names) == 20
    small = make_table2("small", [], Path("work"), Path("results"))
    assert {row.config for row in small.rows} == {
        n for n in experiment_names() if n.startswith(("multi30k_", "wmt_news_"))
    }
    assert len({row.name for row in small.rows}) == len(small.rows) == 14
    assert {row.data.corpus for row in small.rows} == {"multi30k", "wmt_news"}
    with pytest.raises(ValueError, match="--rows: expected some of multi30k_en_de_bahdanau"):
        make_table2("small", ["wmt17_en_de_k32"], Path("work"), Path("results"))


def test_the_four_pairs_of_scores_are_there_for_32_slots_once_each():
    small = make_table2("small", [], Path("work"), Path("results"))
    found = []
    for row in small.rows:
        model = load_experiment(row.config).with_options(row.options).model
        if (model.attention, model.position_encoding, model.seed) == ("k_memory:32", "none", 0):
            found.append((model.encoder_score, model.decoder_score))
    assert sorted(found) == sorted(itertools.product(("softmax", "sigmoid"), repeat=2))


def test_candidates_for_the_size_of_multi30k_differ_in_size_alone():
    rows = make_sizes("small", [], Path("work"), Path("results")).rows
    experiments = [load_experiment(row.config).with_options(row.options) for row in rows]
    assert len({one.training for one in experiments}) == 1
    plain = {dataclasses.replace(one.model, **dict.fromkeys(WIDTHS, 1)) for one in experiments}
    assert len(plain) == 1
    sizes = {
        (row.data.command[-1], one.model.embedding_dim)
        for row, one in zip(rows, experiments, strict=True)
    }
    assert len(sizes) == len(rows) == len({row.data.folder for row in rows}) + 1
    chosen = load_experiment("multi30k_en_de_k4").model
    assert (f"--vocab_size={SMALL_PIECES}", chosen.embedding_dim) in sizes


FLEXIBLE = [n for n in experiment_names() if n.startswith("flexible_")]


@pytest.mark.parametrize("name", FLEXIBLE)
def test_rates_of_flexible_attentions_rows_are_halved_when_the_paper_says(name):
    training = load_experiment(name).training
    epochs, full = (20, 17) if "characters" in name else (6, 3)
    per_epoch = training.num_updates // epochs
    assert training.num_updates == epochs * per_epoch
    for epoch in range(epochs):
        expected = 1e-4 * 0.5 ** max(0, epoch + 1 - full)
        for update in (epoch * per_epoch, (epoch + 1) * per_epoch - 1):
            assert learning_rate(training, update) == pytest.approx(expected)


@pytest.mark.parametrize("name", FLEXIBLE)
def test_rows_of_flexible_attention_are_the_models_of_its_paper(name):
    experiment = load_experiment(name)
    narrow = {"embedding_dim": 5, "attention_units": 4, "mixing_units": 7, "half_window": 2}
    sizes = {"encoder_units": 3, "decoder_units": 6}
    model = Seq2Seq(dataclasses.replace(experiment.model, **narrow, **sizes))
    assert experiment.model.mixing_units == 600
    units = 500 if "characters" in name else 1000
    assert (experiment.model.encoder_units, experiment.model.decoder_units) == (units, units)
    assert tuple(model.bridge.dense.kernel.shape) == (3, 6)
    # The embedding and the context of this step enter the cell; the output alone is read out.
    assert model.cell.cells[0].kernel.shape[0] == 5 + 6
    assert tuple(model.cell.mixing.kernel.shape) == (6, 7)
    assert model.cell.read == "before"
    assert set(experiment.paper) >= {"window", "bleu"}


def test_there_are_eight_rows_of_flexible_attention():
    assert len(FLEXIBLE) == 8
