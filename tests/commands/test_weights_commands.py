"""score, average_checkpoints, `--checkpoint` and `--init_from` as a user types them."""

import json
import math
from pathlib import Path

import pytest

from seq2seq_memattn.commands.average_checkpoints import output_path
from seq2seq_memattn.commands.score import _perplexity
from tests.conftest import TINY
from tests.running import error_lines, run_here, run_python


def command(name, work, *arguments, run="run", standard_input=b""):
    return run_here(
        f"experiments.{name}",
        f"--run_dir={work / run}",
        *arguments,
        standard_input=standard_input,
    )


def refused(work, folder, name, **texts):
    """Runs a command on files of these texts, by flag, which it must refuse without output.

    Returns:
        The line of the error, and all that standard error has.
    """
    for flag, text in texts.items():
        (folder / f"{flag}.txt").write_text(text)
    files = [f"--{flag}={folder / flag}.txt" for flag in (*texts, "output")]
    done = command(name, work, *files)
    assert done.returncode == 1
    assert not (folder / "output.txt").exists()
    (line,) = error_lines(done)
    return line, done.stderr


def translated(work, *more):
    """What `translate` finds for some sources: (source, translation, log_prob) each."""
    sources = (work / "data" / "valid.source.txt").read_text().splitlines()[:8] + ["", "3"]
    done = command(
        "translate",
        work,
        "--input=-",
        "--output=-",
        "--n_best=3",
        "--beam_size=3",
        *more,
        standard_input="\n".join(sources).encode(),
    )
    assert done.returncode == 0, done.stderr
    found = [line.split(" ||| ") for line in done.stdout.decode().splitlines()]
    return [(sources[int(number)], text, float(score)) for number, text, score in found]


def test_score_gives_the_log_probabilities_that_translate_found(work, tmp_path):
    triples = translated(work)
    (tmp_path / "source.txt").write_text("".join(f"{source}\n" for source, _, _ in triples))
    (tmp_path / "target.txt").write_text("".join(f"{target}\n" for _, target, _ in triples))
    done = command(
        "score",
        work,
        f"--source={tmp_path / 'source.txt'}",
        f"--target={tmp_path / 'target.txt'}",
        f"--output={tmp_path / 'scores.txt'}",
        "--batch_size=7",
    )
    assert done.returncode == 0, done.stderr
    scores = [float(line) for line in (tmp_path / "scores.txt").read_text().splitlines()]
    assert len(scores) == len(triples) == 30
    compared = 0
    for (source, target, log_prob), score in zip(triples, scores, strict=True):
        # Translations cut at the search's limit have no end token; `score` adds one.
        if len(target.split()) < 2 * (len(source.split()) + 1) + 10:
            assert score == pytest.approx(log_prob, abs=2e-4)
            compared += 1
    assert compared > 10
    result = json.loads(done.stdout.splitlines()[-1])
    scored = [
        (target, score)
        for (source, target, _), score in zip(triples, scores, strict=True)
        if source
    ]
    assert 3 <= len(triples) - len(scored) == result["empty_sources"]
    assert (result["pairs"], result["cut"]) == (30, 0)
    assert result["tokens"] == sum(len(target.split()) + 1 for target, _ in scored)
    assert result["log_prob"] == pytest.approx(sum(score for _, score in scored), abs=1e-3)
    expected = math.exp(-result["log_prob"] / result["tokens"])
    assert result["perplexity"] == pytest.approx(expected)
    assert result["seconds"] >= 0


@pytest.mark.parametrize(
    ("log_prob", "num_tokens", "expected"),
    [(-math.log(8.0), 3, 2.0), (0.0, 0, None), (-1e6, 10, None), (-math.inf, 10, None)],
)
def test_a_perplexity_that_is_not_finite_is_left_out(
    log_prob: float, num_tokens: int, expected: float | None
) -> None:
    found = _perplexity(log_prob, num_tokens)
    assert found == (expected and pytest.approx(expected))


def test_score_writes_to_standard_output_and_answers_empty_sources_as_translate_does(
    work, tmp_path
):
    (tmp_path / "source.txt").write_text("\n\n1 2 3 4 5 6 7 8 9\n")
    (tmp_path / "target.txt").write_text("\n3\n\n")
    pair = [f"--source={tmp_path / 'source.txt'}", f"--target={tmp_path / 'target.txt'}"]
    done = command("score", work, *pair)
    assert done.returncode == 0, done.stderr
    first, second, third = done.stdout.decode().splitlines()
    assert (first, second) == ("0.000000", "-inf")
    assert -9 < float(third) < 0
    result = json.loads(done.stderr.splitlines()[-1])
    assert (result["tokens"], result["empty_sources"], result["cut"]) == (1, 2, 1)
    assert result["log_prob"] == pytest.approx(float(third), abs=1e-6)
    assert b"1 sources were cut at 7 tokens" in done.stderr


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("3\n4\n", "3\n", "expected as many lines in both, got 2 and 1"),
        ("3\n4\n", "3\nx\n", "target.txt, line 2: unknown symbol 'x'"),
    ],
)
def test_score_says_in_one_line_what_is_wrong(work, tmp_path, source, target, expected):
    line, _ = refused(work, tmp_path, "score", source=source, target=target)
    assert expected in line


def test_translate_checks_every_beginning_before_the_work(work, tmp_path):
    line, printed = refused(work, tmp_path, "translate", input="3\n4\n", prefixes="3\nx\n")
    assert "prefixes.txt, line 2: unknown symbol 'x'" in line
    assert b"sentence" not in printed  # the bar of the translation


@pytest.mark.slow
def test_checkpoints_are_averaged_into_weights_that_decoding_reads(work):
    done = command("average_checkpoints", work, "--last=5")
    assert done.returncode == 1
    (line,) = error_lines(done)
    there = len(list((work / "run" / "checkpoints").glob("*.npz")))  # new bests and the last
    assert f"expected 5 checkpoints to average; there are {there} " in line
    assert not (work / "run" / "average.npz").exists()

    trained = run_here(
        "experiments.train",
        "--config=copy_20_k4",
        f"--data_dir={work / 'data'}",
        f"--run_dir={work / 'many'}",
        *TINY,
        "--checkpoint_minutes=0",
        "--learning_rate=0.1",
    )
    assert trained.returncode == 0, trained.stderr
    done = command("average_checkpoints", work, "--last=2", run="many")
    assert done.returncode == 0, done.stderr
    output = work / "many" / "average.npz"
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "run_dir": str(work / "many"),
        "output": str(output),
        "updates": [3, 4],
    }
    pair = [f"--{side}={work / 'data' / 'valid.target.txt'}" for side in ("source", "target")]
    scores = set()
    for name in ("checkpoint-000000003.npz", "average.npz"):
        done = command("score", work, *pair, f"--checkpoint={name}", run="many")
        assert done.returncode == 0, done.stderr
        scores.add(json.loads(done.stderr.splitlines()[-1])["log_prob"])
    assert len(scores) == 2


@pytest.mark.parametrize(
    "name", ["best.npz", "checkpoint-000000003.npz", "folder/a.npz", "average"]
)
def test_an_average_has_a_name_of_its_own_in_the_run(name):
    with pytest.raises(ValueError, match=f"--output: expected .*; got '{name}'"):
        output_path("run", name)
    assert output_path("run", "mean.npz") == Path("run/mean.npz")


@pytest.mark.slow
def test_a_run_that_jax_trained_begins_one_of_tensorflow(work, tmp_path, monkeypatch):
    """Both backends continue from the same weights in the same way, with every new option."""

    def train(run_dir, backend, *more):
        monkeypatch.setenv("KERAS_BACKEND", backend)
        done = run_python(
            "-m",
            "experiments.train",
            "--config=copy_20_k4",
            f"--data_dir={work / 'data'}",
            f"--run_dir={run_dir}",
            *TINY,
            "--encoder_layers=1",
            "--decoder_layers=1",
            "--tied_embeddings=all",
            "--label_smoothing=0.1",
            "--schedule=inverse_sqrt",
            "--warmup_updates=2",
            "--learning_rate=0.01",
            "--dropout=0",
            "--batch_size=100",
            "--bucket_width=9",
            *more,
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]

    first = train(tmp_path / "first", "jax")
    runs = [
        train(tmp_path / backend, backend, f"--init_from={tmp_path / 'first'}", "--seed=1")
        for backend in ("jax", "tensorflow")
    ]
    kinds = [line["kind"] for line in first]
    assert kinds.count("train") == 4 and kinds.count("valid") == 2
    rates = [line["learning_rate"] for line in first if line["kind"] == "train"]
    assert rates == pytest.approx([0.005, 0.01, 0.01 * (2 / 3) ** 0.5, 0.01 * 0.5**0.5], rel=1e-5)
    for ours, theirs in zip(*runs, strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-4)
        assert ours.get("learning_rate") == theirs.get("learning_rate")
    assert runs[0][0]["loss"] < first[0]["loss"]
