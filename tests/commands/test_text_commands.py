"""translate, score and average_checkpoints as users type them, on subwords."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from seq2seq_memattn.data.manifest import read_manifest
from seq2seq_memattn.preparation.parallel_text import prepare
from seq2seq_memattn.runs.directory import load_run
from seq2seq_memattn.runs.translator import SourceReader
from seq2seq_memattn.search.batch_decoder import BatchDecoder
from seq2seq_memattn.search.options import SearchOptions
from seq2seq_memattn.text.form import TextForm
from tests.running import ROOT, error_lines, run_here
from tests.texts import STRANGE, make_text_data, pairs, text_options, write_lines

TINY = (
    *("--embedding_dim=8", "--encoder_units=8", "--decoder_units=8", "--attention_units=8"),
    *("--batch_size=16", "--num_updates=4", "--validate_every=2", "--valid_examples=8"),
    *("--beam_size=2", "--checkpoint_minutes=0"),
)
LINES = ["ba dö ki", "", *STRANGE, "carriage\rreturn", " ", "неизвестный", "ba " * 80 + "ba", "ba"]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run and nothing else; its training data have been removed."""
    folder = tmp_path_factory.mktemp("work")
    return trained_in(folder, make_text_data(folder / "text"), "multi30k_en_de_k4")


@pytest.fixture(scope="module")
def moses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with attention over the source, for text that was tokenised and truecased."""
    folder = tmp_path_factory.mktemp("moses")
    (folder / "model").write_text("the (9/10) The (1/10)\n")
    options = text_options(
        folder / "text",
        pairs(300, 1),
        pairs(20, 2),
        source_language="en",
        target_language="de",
        is_tokenised=True,
        is_truecased=True,
        truecase_model=str(folder / "model"),
    )
    prepare(options)
    (folder / "model").unlink()
    return trained_in(folder, Path(options.output_dir), "multi30k_en_de_bahdanau")


def trained_in(folder: Path, data: Path, config: str) -> Path:
    """Trains a run of a preset in a folder, and removes its data."""
    trained = run_here(
        *("experiments.train", f"--config={config}"),
        *(f"--data_dir={data}", f"--run_dir={folder / 'run'}", *TINY),
    )
    assert trained.returncode == 0, trained.stderr
    (folder / "text").rename(folder / "elsewhere")
    return folder


def command(name: str, work: Path, *arguments: str) -> dict[str, object]:
    """Runs a command on the run; returns the figures that it prints."""
    done = run_here(f"experiments.{name}", f"--run_dir={work / 'run'}", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def lines_of(path: Path) -> list[str]:
    return path.read_bytes().decode().split("\n")


def test_strange_lines_are_translated_and_scored_line_by_line(work: Path, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "source.txt", LINES)
    output, scores = tmp_path / "output.txt", tmp_path / "scores.txt"
    options = (f"--input={source}", f"--output={output}", "--beam_size=2")
    result = command("translate", work, *options, "--max_source_length=60")
    assert (result["lines"], result["cut"]) == (len(LINES), 1)
    translations = lines_of(output)
    assert len(translations) == len(LINES) + 1 and translations[-1] == ""
    assert translations[1] == translations[LINES.index(" ")] == ""
    assert not any("\r" in line for line in translations)
    result = command("average_checkpoints", work, "--last=2")
    result = command(
        *("score", work, f"--source={source}", f"--target={source}", f"--output={scores}"),
        "--checkpoint=average.npz",
    )
    assert (result["pairs"], result["empty_sources"]) == (len(LINES), 2)
    found = [float(line) for line in lines_of(scores)[:-1]]
    assert found[1] == 0.0
    assert all(score < -1.0 for score, line in zip(found, LINES, strict=True) if line.strip())


def test_lines_are_exact_if_they_were_equal_before_tokenisation(work: Path, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "source.txt", ["ba dö ki", "ki ba", "dö", "ba"])
    output = tmp_path / "output.txt"
    command("translate", work, f"--input={source}", f"--output={output}", "--beam_size=2")
    first, *others, _ = lines_of(output)
    references = write_lines(tmp_path / "references.txt", [first, *(f" {one}" for one in others)])
    options = (f"--source={source}", f"--reference={references}", "--beam_size=2")
    result = command("evaluate", work, *options)
    assert (result["exact"], result["bleu"]) == (0.25, 100.0)
    assert sum(group["exact"] * group["lines"] for group in result["by_length"]) == 1.0


def test_prefixes_ensembles_and_rules_of_search_in_translate(work: Path, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "source.txt", ["ba dö ki", "", "ki ba"])
    prefixes = write_lines(tmp_path / "prefixes.txt", ["dö ki", "ba", ""])
    output = tmp_path / "output.txt"
    options = (f"--input={source}", f"--output={output}", "--beam_size=2")
    rules = ("--coverage_penalty=0.1", "--length_reward=0.1", "--no_repeat_ngram=2")
    result = command("translate", work, *options, f"--prefixes={prefixes}", *rules)
    assert result["update"] == 4
    first, empty, free, _ = lines_of(output)
    assert first.startswith("dö ki") and empty == ""
    (tmp_path / "both").mkdir()
    shutil.copytree(work / "run", tmp_path / "both" / "other")
    runs = f"--run_dir={work / 'run'},{tmp_path / 'both' / 'other'}"
    done = run_here("experiments.translate", *options, runs, "--banned=<unk>", *rules)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["update"] == [4, 4]
    assert [bool(line) for line in lines_of(output)] == [True, False, bool(free), False]
    reference = (f"--source={source}", f"--reference={source}", "--beam_size=2")
    done = run_here("experiments.evaluate", runs, *reference)
    assert done.returncode == 0, done.stderr


def test_surplus_prefixes_leave_an_earlier_output_as_it_was(work: Path, tmp_path: Path) -> None:
    output = write_lines(tmp_path / "output.txt", ["earlier"])
    prefixes = write_lines(tmp_path / "prefixes.txt", ["ba", "ki"])
    flags = (f"--run_dir={work / 'run'}", "--input=-", f"--prefixes={prefixes}")
    done = run_here("experiments.translate", *flags, f"--output={output}", standard_input=b"ba\n")
    assert done.returncode == 1
    assert "prefixes.txt: expected 1 lines, got 2" in error_lines(done)[-1]
    assert lines_of(output) == ["earlier", ""]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--ensemble_mean=probabilities"], "--ensemble_mean: expected several runs"),
        (["--banned=zzzz"], "--banned: expected a token of the target vocabulary, got 'zzzz'"),
        (["--prefixes={short}"], "short.txt: expected 2 lines, got 1"),
        (["--prefixes={short}x"], "short.txtx: no such file"),
        (["--run_dir=one,two"], "one: expected a run directory"),
        (["--sample=2", "--coverage_penalty=0.1"], "--coverage_penalty: not with --sample"),
        (["--coverage_penalty=-1"], "--coverage_penalty"),
        (["--input=-", "--prefixes=-"], "--prefixes: expected a file, since --input takes"),
        (["--max_length_ratio=0"], "flag --max_length_ratio=0: 0.0 is not number >= 0.01"),
        (
            ["--min_length_ratio=2", "--max_length_ratio=1"],
            "`min_length_ratio` must be at most `max_length_ratio`, 1.0; got 2.0.",
        ),
        (["--no_repeat_ngram=33"], "`no_repeat_ngram` must be an int in 0..32; got 33."),
    ],
)
def test_flags_of_rules_that_do_not_fit_are_refused(
    work: Path, tmp_path: Path, flags: list[str], message: str
) -> None:
    source = write_lines(tmp_path / "source.txt", ["ba", "dö"])
    short = write_lines(tmp_path / "short.txt", ["ba"])
    paths = (f"--run_dir={work / 'run'}", f"--input={source}", f"--output={tmp_path / 'out.txt'}")
    done = run_here("experiments.translate", *paths, *(flag.format(short=short) for flag in flags))
    assert done.returncode == 1
    (line,) = error_lines(done)
    assert message in line
    assert not (tmp_path / "out.txt").exists()


@pytest.mark.parametrize("flag", ["slots", "window"])
def test_evaluate_refuses_figures_of_one_run_for_several(work: Path, flag: str) -> None:
    run = work / "run"
    files = (f"--source={work / 'text.en'}", f"--reference={work / 'text.en'}")
    write_lines(work / "text.en", ["ba"])
    done = run_here("experiments.evaluate", f"--run_dir={run},{run}", *files, f"--{flag}")
    assert done.returncode == 1
    assert f"--{flag}: expected one run, got several" in error_lines(done)[-1]


def test_evaluate_refuses_the_use_of_slots_for_attention_over_the_source(moses: Path) -> None:
    write_lines(moses / "text.en", ["ba"])
    files = (f"--source={moses / 'text.en'}", f"--reference={moses / 'text.en'}")
    done = run_here("experiments.evaluate", f"--run_dir={moses / 'run'}", *files, "--slots")
    assert done.returncode == 1
    assert "--slots: expected K-memory, got bahdanau" in error_lines(done)[-1]


def test_evaluate_says_at_once_that_it_could_not_write(work: Path, tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "text.en", ["ba"])
    options = (f"--source={lines}", f"--reference={lines}", f"--output_dir={lines}")
    done = run_here("experiments.evaluate", f"--run_dir={work / 'run'}", *options)
    assert done.returncode == 1 and b"sentence" not in done.stderr  # no progress bar
    assert str(lines) in error_lines(done)[-1]


def test_evaluate_leaves_out_a_score_that_lines_are_too_long_for(
    work: Path, tmp_path: Path
) -> None:
    source = write_lines(tmp_path / "text.en", ["ba"])
    reference = write_lines(tmp_path / "text.de", ["ba " * 2001])  # NLTK takes 2,000 tokens
    options = (f"--source={source}", f"--reference={reference}", f"--output_dir={tmp_path}")
    done = run_here("experiments.evaluate", f"--run_dir={work / 'run'}", *options, "--ribes")
    assert done.returncode == 0 and b"no RIBES: " in done.stderr and b"2000" in done.stderr
    assert len((tmp_path / "hypotheses.txt").read_text().splitlines()) == 1
    result = json.loads((tmp_path / "evaluation.json").read_text())
    assert "bleu" in result and "ribes" not in result


def test_score_has_no_eight_bits_and_translate_writes_two_files_into_two(
    work: Path, tmp_path: Path
) -> None:
    lines = write_lines(tmp_path / "text.en", ["ba"])
    same = f"{tmp_path / 'same'}"
    for name, options, message in (
        (
            "score",
            [f"--source={lines}", f"--target={lines}", "--precision=int8_products"],
            "--precision: int8_products is for search",
        ),
        (
            "translate",
            [f"--input={lines}", f"--output={same}", f"--alignments={same}"],
            "--alignments: expected another file than --output",
        ),
    ):
        done = run_here(f"experiments.{name}", f"--run_dir={work / 'run'}", *options)
        assert done.returncode == 1 and message in error_lines(done)[-1]


def test_evaluate_counts_lines_that_are_empty_or_too_long(work: Path, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "source.txt", LINES)
    options = (f"--source={source}", f"--reference={source}", "--beam_size=2")
    result = command("evaluate", work, *options, "--max_source_length=60", "--slots")
    assert (result["lines"], result["empty"], result["cut"]) == (len(LINES), 2, 1)
    slots = result["slots"]
    assert isinstance(slots, dict) and slots["slots"] == 4
    assert 1.0 <= slots["step"] <= slots["sentence"] <= slots["corpus"] <= 4.0


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("translate", ["--input={file}", "--output={output}"]),
        ("score", ["--source={file}", "--target={file}", "--output={output}"]),
    ],
)
def test_files_that_are_missing_or_empty_are_named(
    work: Path, tmp_path: Path, name: str, options: list[str]
) -> None:
    (tmp_path / "empty.txt").write_bytes(b"")
    for file in ("none.txt", "empty.txt"):
        where = {"file": tmp_path / file, "output": tmp_path / "output.txt"}
        given = [option.format(**where) for option in options]
        done = run_here(f"experiments.{name}", f"--run_dir={work / 'run'}", *given)
        assert done.returncode == 1, file
        (error,) = error_lines(done)
        assert file in error
        assert not (tmp_path / "output.txt").exists()


@pytest.mark.slow
def test_sources_are_brought_into_the_form_of_the_corpus_and_translations_out_of_it(
    moses: Path, tmp_path: Path
) -> None:
    form = TextForm.from_dict(dict(read_manifest(moses / "run", check_files=False).text_form))
    written = ["The ba, dö (ki).", "", 'He said "ba" & ki.', *STRANGE, "carriage\rreturn"]
    given = form.as_trained(written, moses / "run")
    assert given[0] == "the ba , dö ( ki ) ."
    assert not any("\n" in line for line in given)
    people = write_lines(tmp_path / "people.txt", written)
    corpus = write_lines(tmp_path / "corpus.txt", given)
    found = {}
    for name, source, more in (
        ("readable", people, ()),
        ("raw", corpus, ("--noreadable_sources", "--noreadable")),
    ):
        output = tmp_path / f"{name}.txt"
        options = (f"--input={source}", f"--output={output}", "--beam_size=2", *more)
        assert command("translate", moses, *options)["lines"] == len(written)
        found[name] = lines_of(output)[:-1]
    assert found["readable"] == form.readable(found["raw"])
    assert found["readable"][1] == ""
    # If the input is already tokenised, a note says so.
    output = tmp_path / "again.txt"
    done = run_here(
        *("experiments.translate", f"--run_dir={moses / 'run'}", "--beam_size=2"),
        *(f"--input={corpus}", f"--output={output}"),
    )
    assert b"corpus.txt: looks tokenised already; use --noreadable_sources" in done.stderr


def interactive(work: Path, *more: str) -> "subprocess.Popen[bytes]":
    """Starts translate, which waits for lines on a pipe."""
    arguments = (f"--run_dir={work / 'run'}", "--input=-", "--output=-", "--beam_size=2", *more)
    return subprocess.Popen(
        [sys.executable, "-m", "experiments.translate", *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )


@pytest.mark.slow
def test_a_line_of_a_pipe_is_answered_before_the_next_is_written(work: Path) -> None:
    with interactive(work, "--n_best=2") as process:
        assert process.stdin is not None and process.stdout is not None
        answers = []
        for line in ("ba dö ki", "", "te po", "ba dö ki"):
            process.stdin.write(f"{line}\n".encode())
            answers.append([process.stdout.readline().decode() for _ in range(2)])
        process.stdin.close()
        assert process.stdout.read() == b""
        assert process.stderr is not None
        assert b'"lines": 4' in process.stderr.read()
    assert process.returncode == 0
    for number, answer in enumerate(answers):
        assert [line.split(" ||| ")[0] for line in answer] == [str(number)] * 2
    assert answers[1][0] == "1 |||  ||| 0.0000\n"
    assert [line[1:] for line in answers[0]] == [line[1:] for line in answers[3]]


@pytest.mark.slow
def test_what_ends_a_command_that_waits_for_lines_is_said_in_one(work: Path) -> None:
    for ends, status, said in (
        (lambda process: process.stdin.write(b"d\xf6\n"), 1, "standard input: line 2: expected UT"),
        (lambda process: process.send_signal(signal.SIGINT), 130, "interrupted"),
    ):
        with interactive(work) as process:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(b"ba\n")
            process.stdout.readline()
            ends(process)
            assert process.wait(timeout=60) == status
            assert process.stderr is not None
            errors = process.stderr.read().decode().splitlines()
            assert [line for line in errors if "rror" in line][-1].startswith(f"error: {said}")
            assert "Fatal" not in "".join(errors)


def test_a_wrong_byte_far_behind_is_said_before_the_work(work: Path, tmp_path: Path) -> None:
    source = tmp_path / "source.txt"
    source.write_bytes(b"ba\n" * 3 + b"d\xf6\n")
    output = tmp_path / "output.txt"
    done = run_here(
        *("experiments.translate", f"--run_dir={work / 'run'}"),
        *(f"--input={source}", f"--output={output}"),
    )
    assert done.returncode == 1
    (error,) = error_lines(done)
    assert error.endswith("line 4: expected UTF-8, got byte 0xf6 at byte 10 of the file")
    assert not output.exists()


@pytest.mark.slow
def test_other_ways_to_decode_give_the_same_translations(work: Path) -> None:
    run = load_run(work / "run")
    sources = [source for source in SourceReader(run)(LINES, "lines") if len(source)]

    def scores(size: int = 5, model: Any = run.model, **way: Any) -> list[float]:
        found = BatchDecoder(model, SearchOptions(2), **way)(sources, size)
        return [best[0].normalised_log_prob for best in found]

    first = scores()
    assert scores() == first
    ways: tuple[dict[str, Any], ...] = (
        {"size": 1},
        {"size": 3},
        {"folded": False},
        {"jit_compile": True},
    )
    for way in ways:
        assert scores(**way) == pytest.approx(first, abs=1e-4), way
    rounded = load_run(work / "run", precision="bfloat16_products")
    assert scores(model=rounded.model) != first
