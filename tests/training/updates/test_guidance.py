"""A teacher's guidance: its losses against NumPy, its gradients, and trainings with it."""

import contextlib
import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from seq2seq_memattn.layers.teacher_forcing import Asked
from seq2seq_memattn.losses import summed_cross_entropy
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.runs.checkpoints import write_arrays
from seq2seq_memattn.runs.directory import load_run
from seq2seq_memattn.training.loop import Trainer
from seq2seq_memattn.training.make import make_parts
from seq2seq_memattn.training.start import agree_on_teacher
from seq2seq_memattn.training.updates.guidance import (
    Teacher,
    alignment_divergences,
    context_distances,
)
from seq2seq_memattn.training.updates.training_loss import TrainingLoss, total
from tests.errors import refused
from tests.inputs import randomise
from tests.running import run_here
from tests.tolerances import as_array, assert_close
from tests.training.runs import MODEL, TRAINING, arrays_of, checkpoints, copy_run, flags
from tests.training.updates.on_jax import run_on_jax
from tests.training.updates.test_tensorflow_update import BATCH, batch, make

STUDENT = dataclasses.replace(MODEL, dropout=0.0)
GUIDED = dataclasses.replace(
    TRAINING, teacher="run", context_weight=0.7, alignment_weight=0.3, learning_rate=3e-3
)
BOTH = Asked(alignments=True, contexts=True)
REAL = np.array(BATCH["target_outputs"]) != 0


def teacher_of(attention: str = "bahdanau") -> Teacher:
    model = Seq2Seq(dataclasses.replace(STUDENT, attention=attention))
    randomise(model, seed=5)
    return Teacher(model, BOTH)


def test_distances_of_contexts_are_those_of_numpy() -> None:
    teacher, student = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
    expected = ((teacher - student) ** 2).mean(axis=-1)
    assert_close(context_distances(teacher, student), expected)


def test_divergences_of_alignments_are_those_of_numpy() -> None:
    teacher, student = np.random.default_rng(0).uniform(size=(2, 3, 4, 6)).astype(np.float32)
    teacher /= teacher.sum(axis=-1, keepdims=True)
    teacher[:, :, 4:] = student[:, :, 4:] = 0.0  # padding
    first, second = (x / x.sum(axis=-1, keepdims=True) for x in (teacher, student))
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.where(first > 0, first * np.log(first / second), 0.0).sum(axis=-1)
    found = as_array(alignment_divergences(teacher, student))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert (found > 0).all()
    np.testing.assert_allclose(alignment_divergences(teacher, 3.0 * teacher), 0.0, atol=1e-5)


def test_an_alignment_that_misses_what_the_teacher_reads_has_its_full_gradient() -> None:
    energies = tf.constant([[[0.0, -30.0, -30.0]]])
    teacher = np.array([[[0.05, 0.9, 0.05]]], np.float32)
    with tf.GradientTape() as tape:
        tape.watch(energies)
        divergence = alignment_divergences(teacher, tf.nn.softmax(energies))
    gradient = as_array(tape.gradient(divergence, energies))
    assert_close(gradient, [[[0.95, -0.9, -0.05]]])


def test_double_precision_is_kept() -> None:
    teacher, student = np.random.default_rng(0).uniform(size=(2, 3, 4, 5))
    contexts = as_array(context_distances(ops.array(teacher), ops.array(student)))
    np.testing.assert_allclose(contexts, ((teacher - student) ** 2).mean(axis=-1), rtol=1e-12)
    first, second = (x / x.sum(axis=-1, keepdims=True) for x in (teacher, student))
    expected = (first * np.log(first / second)).sum(axis=-1)
    alignments = as_array(alignment_divergences(ops.array(teacher), ops.array(student)))
    np.testing.assert_allclose(alignments, expected, rtol=1e-12)


def test_the_loss_adds_both_for_real_tokens_alone() -> None:
    student = Seq2Seq(STUDENT)
    randomise(student)
    loss, ids = TrainingLoss(student, GUIDED), batch()
    assert loss.asked == BOTH
    taught = teacher_of()(ids)
    logits, decoded = student(ids, asked=loss.asked)
    found, _ = loss(ids["target_outputs"], (logits, decoded), taught)
    contexts = as_array(context_distances(taught.contexts, decoded.contexts))
    alignments = as_array(alignment_divergences(taught.alignments, decoded.alignments))
    entropy, _ = summed_cross_entropy(ids["target_outputs"], logits)
    apart = {
        "cross_entropy": as_array(entropy),
        "contexts": 0.7 * contexts[REAL].sum(),
        "alignments": 0.3 * alignments[REAL].sum(),
    }
    assert list(found) == list(apart)
    assert_close(list(found.values()), list(apart.values()))
    assert_close(total(found), sum(apart.values()))


@pytest.mark.parametrize("attention", ["bahdanau", "k_memory:3"])
def test_what_the_teacher_reads_are_its_alignment_and_the_context_of_it(attention: str) -> None:
    teacher, ids = teacher_of(attention), batch()
    model, source, reading = teacher._model, ids["source"], teacher(ids)
    encoded = model.encoder(model.source_embedding(source), mask=ops.not_equal(source, 0))
    weights = as_array(reading.alignments)
    assert_close(weights[REAL].sum(axis=-1), np.ones(REAL.sum()))
    # With K-memory too: the rows are sums over the source, weighted by alpha.
    contexts = np.einsum("bts,bsn->btn", weights, as_array(encoded.outputs))
    assert_close(as_array(reading.contexts)[REAL], contexts[REAL])


def test_the_loss_has_no_gradient_into_the_teacher() -> None:
    teacher, student = teacher_of(), Seq2Seq(STUDENT)
    randomise(student)
    loss, ids = TrainingLoss(student, GUIDED), batch()
    with tf.GradientTape() as tape:
        taught = teacher(ids)
        terms, _ = loss(ids["target_outputs"], student(ids, asked=loss.asked), taught)
        found = total(terms)
    sources = [teacher._model.trainable_variables, student.trainable_variables]
    into_teacher, into_student = tape.gradient(found, sources)
    assert all(gradient is None for gradient in into_teacher)
    assert all(gradient is not None for gradient in into_student)


def test_updates_move_the_student_alone_and_bring_it_closer() -> None:
    teacher = teacher_of()
    before = [as_array(value) for value in teacher.values]

    def distance(model: Seq2Seq) -> tuple[float, float]:
        taught, (_, decoded) = teacher(batch()), model(batch(), asked=BOTH)
        contexts = as_array(context_distances(taught.contexts, decoded.contexts))
        alignments = as_array(alignment_divergences(taught.alignments, decoded.alignments))
        return contexts[REAL].mean(), alignments[REAL].mean()

    found = []
    for config, own in ((TRAINING, None), (GUIDED, teacher)):
        config = dataclasses.replace(config, learning_rate=3e-3, clip_norm=0.0)
        model, _, updater = make(STUDENT, config, teacher=own)
        for _ in range(40):
            assert updater(batch()).is_applied
        found.append(distance(model))
    (contexts, alignments), (guided_contexts, guided_alignments) = found
    assert guided_contexts < contexts and guided_alignments < alignments
    for value, old in zip(teacher.values, before, strict=True):
        np.testing.assert_array_equal(as_array(value), old)


@pytest.mark.parametrize("input_feeding", [True, False])
def test_a_batch_in_parts_gives_the_update_of_the_whole(input_feeding: bool) -> None:
    config = dataclasses.replace(STUDENT, input_feeding=input_feeding)
    weights, terms = [], []
    for parts in (1, 3):
        training = dataclasses.replace(GUIDED, accumulate=parts, adam_epsilon=1e-3)
        model, _, updater = make(config, training, teacher=teacher_of())
        result = updater(batch())
        assert result.is_applied and result.loss == pytest.approx(sum(result.terms.values()))
        weights.append([as_array(v) for v in model.trainable_variables])
        terms.append(result.terms)
    assert_close(*weights)
    assert set(terms[0]) == {"cross_entropy", "contexts", "alignments"}
    assert terms[0] == pytest.approx(terms[1])


@pytest.mark.parametrize(
    ("option", "tolerance"),
    [({"jit_compile": True}, 1e-5), ({"precision": "mixed_bfloat16"}, 0.05)],
)
def test_xla_and_bfloat16_guide_as_float32_does(option: dict[str, Any], tolerance: float) -> None:
    found = []
    for changes in ({}, option):
        _, _, updater = make(STUDENT, dataclasses.replace(GUIDED, **changes), teacher=teacher_of())
        result = updater(batch())
        assert result.is_applied
        found.append({**result.terms, "gradient_norm": result.gradient_norm})
    assert found[1] == pytest.approx(found[0], rel=tolerance)


# Trainings


@pytest.fixture(scope="module")
def taught_by(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run with Bahdanau's attention."""
    run_dir = tmp_path_factory.mktemp("teacher") / "run"
    model = dataclasses.replace(MODEL, attention="bahdanau")
    training = dataclasses.replace(TRAINING, num_updates=4, validate_every=4)
    Trainer(run_dir, data_dir, model, training).run()
    return run_dir


def test_a_run_with_a_teacher_resumes_as_if_it_had_not_stopped(
    data_dir: Path, taught_by: Path, tmp_path: Path
) -> None:
    training = dataclasses.replace(
        TRAINING, num_updates=6, teacher=str(taught_by), alignment_weight=0.5
    )
    Trainer(tmp_path / "whole", data_dir, MODEL, training).run()
    lines = (tmp_path / "whole" / "metrics.jsonl").read_text().splitlines()
    trained = [line for line in map(json.loads, lines) if line["kind"] == "train"]
    assert trained
    for line in trained:
        apart = line["loss_cross_entropy"] + line["loss_alignments"]
        assert line["loss"] == pytest.approx(apart) and line["loss_alignments"] > 0.0
    stopped = copy_run(tmp_path / "whole", tmp_path / "stopped")
    for path in checkpoints(stopped)[1:]:
        path.unlink()
    Trainer(stopped, data_dir, MODEL, training).run()
    whole, stopped = (checkpoints(tmp_path / name)[-1] for name in ("whole", "stopped"))
    first, second = arrays_of(whole)[0], arrays_of(stopped)[0]
    untaught = dataclasses.replace(TRAINING, num_updates=2)
    Trainer(tmp_path / "untaught", data_dir, MODEL, untaught).run()
    assert len(first) == len(arrays_of(checkpoints(tmp_path / "untaught")[-1])[0])
    # Keras numbers the seed generators of a process.
    for array, other in zip(first.values(), second.values(), strict=True):
        np.testing.assert_array_equal(array, other)


@pytest.mark.parametrize("context_weight", [0.0, 0.5])
def test_contexts_of_other_weights_are_told(
    data_dir: Path,
    taught_by: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    context_weight: float,
) -> None:
    training = dataclasses.replace(
        TRAINING,
        num_updates=1,
        validate_every=1,
        teacher=str(taught_by),
        alignment_weight=0.5,
        context_weight=context_weight,
    )
    Trainer(tmp_path / "run", data_dir, MODEL, training).run()
    said = f"begin with the teacher's weights, --init_from={taught_by}" in capsys.readouterr().err
    assert said == bool(context_weight)


def test_a_run_does_not_go_on_with_a_teacher_that_has_learned_more(
    data_dir: Path, taught_by: Path, tmp_path: Path
) -> None:
    teacher = copy_run(taught_by, tmp_path / "teacher")
    training = dataclasses.replace(
        TRAINING, num_updates=2, validate_every=2, teacher=str(teacher), alignment_weight=0.5
    )
    Trainer(tmp_path / "run", data_dir, MODEL, training).run()
    weights = load_run(teacher).model.weights
    write_arrays(teacher / "best.npz", weights, {"update": 9, "bleu": 1.0})
    before = (tmp_path / "run" / "config.json").read_text()
    training = dataclasses.replace(training, num_updates=9)
    message = refused(Trainer, tmp_path / "run", data_dir, MODEL, training)
    assert (tmp_path / "run" / "config.json").read_text() == before
    assert re.fullmatch(
        f"{teacher}: expected the weights that this teacher had when the run began, "
        "update 4, SHA-256 (\\w+); they are now update 9, SHA-256 \\1",
        message,
    )


def test_a_teacher_may_move_but_not_change(data_dir: Path, taught_by: Path, tmp_path: Path) -> None:
    teacher = copy_run(taught_by, tmp_path / "teacher")
    training = dataclasses.replace(
        TRAINING, num_updates=1, validate_every=1, teacher=str(teacher), alignment_weight=0.5
    )
    Trainer(tmp_path / "run", data_dir, MODEL, training).run()
    moved = tmp_path / "moved"
    teacher.rename(moved)
    training = dataclasses.replace(training, num_updates=2, teacher=str(moved))
    assert Trainer(tmp_path / "run", data_dir, MODEL, training).run().update == 2
    run = load_run(moved)
    weight = run.model.weights[0]
    weight.assign(as_array(weight) + 1.0)
    write_arrays(moved / "best.npz", run.model.weights, {"update": run.update, "bleu": 1.0})
    message = refused(Trainer, tmp_path / "run", data_dir, MODEL, training)
    assert message.startswith(f"{moved}: expected the weights that this teacher had when the run")
    alone = dataclasses.replace(training, teacher="", alignment_weight=0.0)
    message = refused(Trainer, tmp_path / "run", data_dir, MODEL, alone)
    assert "alignment_weight" in message, message


def test_all_processes_need_the_same_teacher() -> None:
    class Others:
        named_losses = contextlib.nullcontext

        def from_chief(self, own: Any) -> Any:
            return {**own, "sha256": "0" * 64}

    others: Any = Others()
    message = refused(agree_on_teacher, "run", teacher_of().identity, others)
    assert message == "run: expected the same weights as the chief: update 0, SHA-256 00000000"


def test_a_damaged_checkpoint_of_the_teacher_is_told(
    data_dir: Path, taught_by: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    teacher = copy_run(taught_by, tmp_path / "teacher")
    (teacher / "best.npz").unlink()
    newest = checkpoints(teacher)[-1]
    newest.with_name("checkpoint-000000009.npz").write_bytes(b"PK")
    training = dataclasses.replace(
        TRAINING, num_updates=1, validate_every=1, teacher=str(teacher), alignment_weight=0.5
    )
    Trainer(tmp_path / "run", data_dir, MODEL, training).run()
    assert "checkpoint-000000009.npz: damaged checkpoint" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"teacher": "{run}"}, "`teacher` needs a positive `context_weight` or `alignment_weight`"),
        ({"alignment_weight": 0.5}, "`teacher` needs a positive `context_weight`"),
        ({"teacher": "{run}", "context_weight": -1.0}, "`context_weight`"),
        ({"teacher": "{none}", "alignment_weight": 0.5}, "none: expected a run directory"),
    ],
)
def test_flags_that_do_not_fit_are_refused(
    data_dir: Path, taught_by: Path, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    options = {
        name: value.format(run=taught_by, none=tmp_path / "none") if name == "teacher" else value
        for name, value in options.items()
    }
    given = [flag for flag in flags(data_dir, tmp_path / "run") if not flag.startswith("--teacher")]
    given += [f"--{name}={value}" for name, value in options.items()]
    done = run_here("experiments.train", *given)
    assert done.returncode == 1
    assert message in done.stderr.decode().splitlines()[-1]
    assert not (tmp_path / "run").exists()


def test_teachers_that_do_not_fit_are_refused(
    data_dir: Path, taught_by: Path, tmp_path: Path
) -> None:
    wide = dataclasses.replace(MODEL, encoder_units=5)
    training = dataclasses.replace(TRAINING, teacher=str(taught_by), context_weight=0.1)
    message = refused(make_parts, wide, training)
    assert message.endswith(
        "its contexts are 8 wide and those of this model 10; they can be "
        "compared only if they are equally wide"
    )
    fixed = dataclasses.replace(MODEL, attention="constant")
    message = refused(make_parts, fixed, training)
    assert message.endswith(
        "expected a student that learns what to read; its attention is constant."
    )
    short = dataclasses.replace(TRAINING, num_updates=1, validate_every=1)
    for attention in ("none", "constant", "linear"):
        blind = tmp_path / attention
        Trainer(blind, data_dir, dataclasses.replace(MODEL, attention=attention), short).run()
        training = dataclasses.replace(training, teacher=str(blind))
        expected = f"{blind}: expected a teacher with attention over the source"
        assert refused(make_parts, MODEL, training) == expected


def test_a_teacher_of_shorter_sources_is_refused(
    data_dir: Path, taught_by: Path, tmp_path: Path
) -> None:
    teacher = copy_run(taught_by, tmp_path / "teacher")
    config = json.loads((teacher / "config.json").read_text())
    config["model"] |= {"attention": "luong_location", "max_source_length": 3}
    (teacher / "config.json").write_text(json.dumps(config))
    training = dataclasses.replace(TRAINING, teacher=str(teacher), alignment_weight=0.5)
    assert re.fullmatch(
        rf"{teacher}: expected a teacher for sources of \d+ tokens; it was made for at most 3",
        refused(Trainer, tmp_path / "run", data_dir, MODEL, training),
    )


def test_a_teacher_with_another_vocabulary_is_refused_before_anything_is_written(
    data_dir: Path, taught_by: Path, tmp_path: Path
) -> None:
    teacher = copy_run(taught_by, tmp_path / "teacher")
    manifest = json.loads((teacher / "manifest.json").read_text())
    manifest["source_vocabulary"]["symbols"][0] = "another"
    (teacher / "manifest.json").write_text(json.dumps(manifest))
    training = dataclasses.replace(TRAINING, teacher=str(teacher), alignment_weight=0.5)
    assert refused(Trainer, tmp_path / "run", data_dir, MODEL, training) == (
        f"{teacher}: expected a run with the vocabularies of {data_dir}; its source_vocabulary is "
        "different"
    )
    assert not (tmp_path / "run").exists()


ON_JAX = """
result = updater(batch)
assert result.is_applied, result
assert set(result.terms) == {"cross_entropy", "balance", "contexts", "alignments"}
np.savez(f"{folder}/after.npz", *[np.asarray(v) for v in model.trainable_variables])
"""


def test_an_update_on_jax_equals_that_of_tensorflow(taught_by: Path, tmp_path: Path) -> None:
    training = dataclasses.replace(
        GUIDED, teacher=str(taught_by), balance_weight=0.7, adam_epsilon=1e-3
    )
    model, _, updater = make_parts(STUDENT, training)
    randomise(model)
    run_on_jax(ON_JAX, tmp_path, model, STUDENT, training)
    assert updater(batch()).is_applied
    with np.load(tmp_path / "after.npz") as after:
        for name, variable in zip(after.files, model.trainable_variables, strict=True):
            assert_close(after[name], as_array(variable))
