"""The commands as a user types them, on a tiny run, and their errors for bad input."""

import functools
import gzip
import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

from experiments.reproduction import rows as study_rows
from experiments.studies import table1
from seq2seq_memattn.commands import train
from seq2seq_memattn.commands.draw_alignment import task_of, title_of
from seq2seq_memattn.compute.hardware import num_cores
from seq2seq_memattn.config import ModelConfig
from seq2seq_memattn.runs.alignments import align, draw_slots
from seq2seq_memattn.runs.directory import load_run
from seq2seq_memattn.runs.translator import Translator
from seq2seq_memattn.search.options import SearchOptions
from tests.conftest import TINY
from tests.documents import DOCS, blocks
from tests.marks import slow
from tests.pictures import assert_drawn
from tests.running import error_lines, run_here, run_python
from tests.texts import make_multi30k, make_tanaka


def files(work):
    return work / "data" / "valid.source.txt", work / "data" / "valid.target.txt"


def test_a_run_directory_holds_all_that_decoding_needs(work):
    names = {path.name for path in (work / "run").iterdir()}
    assert {"config.json", "manifest.json", "metrics.jsonl", "best.npz", "tensorboard"} <= names
    text = (work / "run" / "metrics.jsonl").read_text()
    kinds = [json.loads(line) for line in text.splitlines()]
    assert [line["update"] for line in kinds if line["kind"] == "train"] == [1, 2, 3, 4]
    assert [line["update"] for line in kinds if line["kind"] == "valid"] == [2, 4]


def test_evaluate_scores_a_run_and_writes_its_hypotheses(work):
    source, reference = files(work)
    baseline = work / "baseline.txt"
    baseline.write_text(reference.read_text())
    done = run_here(
        "experiments.evaluate",
        f"--run_dir={work / 'run'}",
        f"--source={source}",
        f"--reference={reference}",
        f"--baseline={baseline}",
        f"--output_dir={work / 'evaluation'}",
        "--beam_size=2",
        "--lowercase",
        "--ribes",
        "--window",
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    compared = result["baseline"]
    for name in ("bleu", "standard_bleu", "chrf"):
        assert 0 <= result[name] <= 100
        assert compared[name]["baseline"] == pytest.approx(100.0)
        assert compared[name]["score"] == pytest.approx(result[name], abs=1e-4)
        assert 0 < compared[name]["p_value"] <= 1
        assert f"{name}: {result[name]:.2f} ± ".encode() in done.stderr
    assert compared["file"] == str(baseline)
    assert 0 <= result["ribes"] <= 100
    assert "|nltk:" in result["ribes_signature"]
    assert result["window"] == 0  # a memory of fixed size scores no encoder state
    assert "tok:none" in result["signature"]
    assert "tok:13a" in result["standard_bleu_signature"]
    assert "nw:0" in result["chrf_signature"]
    for signature in (name for name in result if name.endswith("signature")):
        assert "case:lc" in result[signature]
    assert sum(group["lines"] for group in result["by_length"]) == 20
    hypotheses = (work / "evaluation" / "hypotheses.txt").read_text().split("\n")
    assert len(hypotheses) == 21
    assert json.loads((work / "evaluation" / "evaluation.json").read_text()) == result


def test_translate_keeps_order_and_empty_lines_and_cuts_long_ones(work):
    source = work / "lines.txt.gz"
    with gzip.open(source, "wt") as stream:
        stream.write("3 4\n\n1 2 3 4 5 6 7 8 9\n")
    done = run_here(
        "experiments.translate",
        f"--run_dir={work / 'run'}",
        f"--input={source}",
        f"--output={work / 'out.txt'}",
        "--n_best=2",
        f"--alignments={work / 'alignments.npz'}",
        "--beam_size=2",
    )
    assert done.returncode == 0, done.stderr
    lines = (work / "out.txt").read_text().splitlines()
    assert [line.split(" ||| ")[0] for line in lines] == ["0", "0", "1", "1", "2", "2"]
    assert lines[2] == "1 |||  ||| 0.0000"
    log_probs = [float(line.split(" ||| ")[2]) for line in lines]
    assert log_probs[0] >= log_probs[1] and log_probs[4] >= log_probs[5]
    assert b"1 sources were cut at 7 tokens" in done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["cut"] == 1
    with np.load(work / "alignments.npz") as alignments:
        assert sorted(alignments.files) == ["0.0", "0.1", "2.0", "2.1"]
        words = len(lines[0].split(" ||| ")[1].split())
        assert alignments["0.0"].shape == (words + 1, 3)
        assert alignments["2.0"].shape[1] == 7


def sampled(work, lines, *more):
    """The lines that `translate --sample=3` prints, and its figures."""
    done = run_here(
        "experiments.translate",
        *(f"--run_dir={work / 'run'}", "--input=-", "--output=-", "--sample=3", *more),
        standard_input=lines,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().splitlines(), json.loads(done.stderr.splitlines()[-1])


def test_translate_draws_translations_that_a_seed_repeats(work):
    options = ("--temperature=1.5", "--top_k=9", "--top_p=0.95")
    lines, figures = sampled(work, b"3 4\n\n1 2 3\n", *options)
    assert [line.split(" ||| ")[0] for line in lines] == [*"000111222"]
    assert lines[3:6] == ["1 |||  ||| 0.0000"] * 3
    assert all(float(line.split(" ||| ")[2]) < 0.0 for line in lines[:3] + lines[6:])
    seed = f"--sample_seed={figures['sample_seed']}"
    again, repeated = sampled(work, b"3 4\n\n1 2 3\n", *options, seed, "--batch_size=1")
    assert again == lines and repeated["sample_seed"] == figures["sample_seed"]
    others, other = sampled(work, b"3 4\n\n1 2 3\n", *options)
    assert others != lines and other["sample_seed"] != figures["sample_seed"]


def test_a_single_sample_is_written_as_text_alone_with_its_alignment(work, tmp_path):
    file = tmp_path / "alignments.npz"
    output = tmp_path / "output.txt"
    source = tmp_path / "source.txt"
    source.write_text("3 4 1\n")
    done = run_here(
        "experiments.translate",
        *(f"--run_dir={work / 'run'}", f"--input={source}", f"--output={output}"),
        *("--sample=1", "--sample_seed=5", f"--alignments={file}"),
    )
    assert done.returncode == 0, done.stderr
    text = output.read_text()
    assert "|" not in text and text.endswith("\n")
    with np.load(file) as alignments:
        assert len(alignments["0.0"]) - len(text.split()) in (0, 1)  # with or without the end token
        assert alignments["0.0"].shape[1] == 4


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--sample=2", "--beam_size=10"], "--beam_size: not with --sample"),
        (["--sample=2", "--n_best=2"], "--n_best: not with --sample"),
        (["--sample=2", "--length_penalty=0.6"], "--length_penalty: not with --sample"),
        (["--temperature=0.5"], "--temperature: expected --sample too"),
        (["--sample_seed=1"], "--sample_seed: expected --sample too"),
        (["--sample=2", "--temperature=0"], "`temperature` must be in 0.0001..10000; got 0.0"),
        (["--sample=2", "--top_k=-1"], "`top_k` must be an int >= 0; got -1"),
        (["--sample=2", "--top_p=1.5"], "`top_p` must be above 0 and at most 1; got 1.5"),
        (["--sample=2", "--sample_seed=4294967296"], "`seed` must be an int in 0..2147483647"),
        (["--sample=0"], "--sample"),
    ],
)
def test_translate_refuses_flags_that_do_not_fit_sampling(work, flags, message):
    source, _ = files(work)
    paths = (f"--run_dir={work / 'run'}", f"--input={source}", f"--output={work / 'never.txt'}")
    done = run_here("experiments.translate", *paths, *flags)
    assert done.returncode == 1
    (line,) = error_lines(done)
    assert message in line
    assert not (work / "never.txt").exists()


def test_translate_reads_standard_input_and_writes_standard_output(work):
    done = run_here(
        "experiments.translate",
        f"--run_dir={work / 'run'}",
        "--input=-",
        "--output=-",
        "--beam_size=2",
        standard_input=b"3 4\n5\n",
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.decode().split("\n")) == 3
    assert json.loads(done.stderr.splitlines()[-1])["lines"] == 2


def test_translate_says_at_once_that_a_file_cannot_be_written(work):
    source, _ = files(work)
    done = run_here(
        "experiments.translate",
        f"--run_dir={work / 'run'}",
        f"--input={source}",
        f"--output={work / 'before.txt'}",
        f"--alignments={work / 'nowhere' / 'file'}",
    )
    assert done.returncode == 1
    assert "nowhere/file: expected an existing directory" in error_lines(done)[-1]
    assert not (work / "before.txt").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_an_error_names_the_output_and_not_the_file_of_alignments(work, tmp_path):
    (tmp_path / "source.txt").write_text("3 4\n")
    done = run_here(
        "experiments.translate",
        f"--run_dir={work / 'run'}",
        f"--input={tmp_path / 'source.txt'}",
        "--output=/dev/full",
        f"--alignments={tmp_path / 'alignments.npz'}",
        "--beam_size=2",
    )
    assert done.returncode == 1
    assert error_lines(done) == ["error: /dev/full: No space left on device"]
    assert [path.name for path in tmp_path.iterdir()] == ["source.txt"]


def test_draw_alignment_draws_a_sentence_and_refuses_an_empty_one(work):
    figure = work / "alignment.png"
    options = [f"--run_dir={work / 'run'}", f"--output={figure}", "--beam_size=2"]
    drawn = run_here("experiments.draw_alignment", *options, "--text=3 1 4 1 5 9 2 6")
    assert drawn.returncode == 0, drawn.stderr
    assert json.loads(drawn.stdout.splitlines()[-1])["figures"] == [str(figure)]
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert b"1 sources were cut at 7 tokens" in drawn.stderr
    figure.unlink()
    source, _ = files(work)
    lines = run_here("experiments.draw_alignment", *options, f"--source={source}", "--lines=3,1")
    assert lines.returncode == 0, lines.stderr
    assert len(json.loads(lines.stdout.splitlines()[-1])["texts"]) == 2
    assert_drawn(figure)
    figure.unlink()
    twice = run_here("experiments.draw_alignment", *options, f"--source={source}", "--lines=3,3")
    assert twice.returncode == 0, twice.stderr
    assert len(json.loads(twice.stdout.splitlines()[-1])["texts"]) == 1
    figure.unlink()
    for wrong, message in (
        (["--text="], "--text: expected a sentence"),
        ([f"--source={source}", "--lines=1000"], "--lines: expected at most"),
        (
            [f"--source={source}", "--lines=3,1", f"--slots_output={figure}.svg"],
            "--slots_output: expected one sentence, got 2",
        ),
        (["--text=3 1", f"--slots_output={figure}.pdf"], "--slots_output: expected the ending"),
        (["--text=3 1", f"--slots_output={figure}"], "--slots_output: expected another file"),
        (
            ["--text=3 1", f"--slots_output={work}/../{work.name}/{figure.name}"],
            "--slots_output: expected another file",
        ),
        (["--text=3 1", "--max_slots=3"], "--max_slots: expected --slots_output too"),
        ([f"--source={source}"], "--text: expected either --text, or --source and --lines"),
        ([], "--text: expected either --text, or --source and --lines"),
    ):
        refused = run_here("experiments.draw_alignment", *options, *wrong)
        assert refused.returncode == 1 and not figure.exists()
        assert message in error_lines(refused)[-1]


def test_an_alignment_has_the_tokens_of_its_sentence_as_far_as_it_was_read(work):
    run = load_run(work / "run")
    translator = Translator(run, SearchOptions(2), return_alignments=True)
    for text, read in (("3 1 4", "3 1 4 </s>"), ("3 1 4 1 5 9 2 6", "3 1 4 1 5 9 </s>")):
        aligned = align(run, translator, text)
        (best,) = translator([text], 1)[0]
        assert aligned.source_tokens == read.split()
        assert aligned.text == best.text
        assert aligned.target_tokens[: len(best.text.split())] == best.text.split()
        sizes = len(aligned.target_tokens), len(aligned.source_tokens)
        assert aligned.alignment.shape == sizes
        np.testing.assert_allclose(aligned.beta @ aligned.alpha.T, aligned.alignment, atol=1e-6)
    with pytest.raises(ValueError, match="--text, line 1: .*'x'"):
        align(run, translator, "3 x")


def test_the_title_of_an_alignment_names_model_scores_and_sentence():
    slots = ModelConfig(attention="k_memory:4", encoder_score="sigmoid")
    named = "copies: K-memory, K = 4, scores sigmoid / softmax"
    assert title_of("copies", slots, {"": "3 1 4"}) == f'{named}, "3 1 4"'
    assert title_of("copies", slots, {"line 7": "3 1 4"}) == f'{named}, line 7: "3 1 4"'
    assert title_of("copies", slots, {"line 7": "3 1 4", "line 8": "5"}) == named
    narrow = ModelConfig(attention="flexible", threshold=1.2)
    both = {"line 1": "3", "line 2": "5"}
    assert title_of("text", narrow, both) == "text: flexible, \u03c4 = 1.2"
    long = title_of("text", ModelConfig(attention="bahdanau"), {"": "3 " * 200})
    assert long.startswith('text: Bahdanau, "3 3') and long.endswith(' ..."') and len(long) < 130


def test_the_task_of_an_alignment_is_that_of_its_run(work):
    assert task_of(load_run(work / "run")) == "copy task"


def test_the_slots_of_an_alignment_are_drawn_if_it_has_any(work, tmp_path):
    run = load_run(work / "run")
    aligned = align(run, Translator(run, SearchOptions(2), return_alignments=True), "3 1 4")
    files = draw_slots(aligned, "K=4", 2, tmp_path / "slots")
    assert [file.name for file in files] == ["slots.png", "slots.svg"]
    with pytest.raises(ValueError, match="--slots_output: expected a run of K-memory, got one"):
        draw_slots(aligned._replace(alpha=None, beta=None), "Att", 2, tmp_path / "never")


def test_a_symbol_that_the_run_does_not_know_is_an_error_with_file_and_line(work):
    (work / "strange.txt").write_text("3 4\n3 x\n")
    done = run_here(
        "experiments.translate",
        f"--run_dir={work / 'run'}",
        f"--input={work / 'strange.txt'}",
        f"--output={work / 'never.txt'}",
    )
    assert done.returncode == 1
    assert "strange.txt, line 2" in error_lines(done)[-1] and "'x'" in error_lines(done)[-1]
    assert not (work / "never.txt").exists()


def test_train_takes_the_file_of_the_guide(work, tmp_path):
    (example,) = blocks("toml", (DOCS / "own_text.md").read_text(encoding="utf-8"))
    (tmp_path / "mine.toml").write_text(example)
    done = run_here(
        "experiments.train",
        f"--config={tmp_path / 'mine.toml'}",
        f"--data_dir={work / 'data'}",
        f"--run_dir={tmp_path / 'run'}",
        *TINY,
        "--position_encoding=none",  # position encodings are for K-memory only
        "--num_updates=1",
    )
    assert done.returncode == 0, done.stderr
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    expected = tomllib.loads(example)
    assert config["model"] | expected["model"] == config["model"]
    assert config["training"] | expected["training"] == config["training"]


def test_vocabulary_sizes_in_a_file_do_not_restrict_flags(work, tmp_path, monkeypatch):
    (tmp_path / "old.toml").write_text(
        "[model]\nsource_vocab_size = 8000\ntarget_vocab_size = 9000\n"
        'attention = "none"\nembedding_dim = 256\n'
    )
    given = []
    monkeypatch.setattr(train, "train", lambda data_dir, run_dir, model, *more: given.append(model))
    done = run_here(
        "experiments.train",
        f"--config={tmp_path / 'old.toml'}",
        f"--data_dir={work / 'data'}",
        f"--run_dir={tmp_path / 'run'}",
        "--tied_embeddings=all",
    )
    assert done.returncode == 0, done.stderr
    assert [model.tied_embeddings for model in given] == ["all"]


def test_a_run_of_another_configuration_is_refused_and_left_as_it_is(work):
    before = (work / "run" / "config.json").read_bytes()
    done = run_here(
        "experiments.train",
        "--config=copy_20_k4",
        f"--data_dir={work / 'data'}",
        f"--run_dir={work / 'run'}",
        *TINY,
        "--learning_rate=0.5",
    )
    assert done.returncode == 1
    assert "learning_rate was 0.0001, is 0.5" in error_lines(done)[-1]
    assert (work / "run" / "config.json").read_bytes() == before


def test_position_encodings_for_shorter_sources_than_those_of_the_data_are_refused(work):
    done = run_here(
        "experiments.train",
        "--config=copy_20_k4",
        f"--data_dir={work / 'data'}",
        f"--run_dir={work / 'never'}",
        "--position_encoding=masked",
        "--max_source_length=6",
    )
    assert done.returncode == 1
    assert "--max_source_length: expected at least 7" in error_lines(done)[-1]
    assert error_lines(done)[-1].endswith("got 6")
    assert not (work / "never").exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--source={a}", "--reference={b}"], "expected as many lines in both, got 2 and 3"),
        (["--source={a}", "--reference={none}"], "none.txt"),
        (["--source={empty}", "--reference={a}"], "empty.txt"),
        (["--source={bytes}", "--reference={a}"], "bytes.txt"),
        (["--source={a}"], "--reference"),
        (["--source={a}", "--reference={a}", "--beam_size=0"], "beam_size"),
        (["--source={a}", "--reference={a}", "--baseline={b}"], "expected 2 lines, got 3"),
        (["--source={a}", "--reference={a}"], "expected a run directory"),
    ],
)
def test_evaluate_says_in_one_line_what_is_wrong(tmp_path, arguments, expected):
    contents = {"a": b"1\n2\n", "b": b"1\n2\n3\n", "empty": b"", "bytes": b"1\n\xff\n"}
    for name, content in contents.items():
        (tmp_path / f"{name}.txt").write_bytes(content)
    names = {name: tmp_path / f"{name}.txt" for name in (*contents, "none")}
    done = run_here(
        "experiments.evaluate",
        f"--run_dir={tmp_path / 'run'}",
        *[argument.format(**names) for argument in arguments],
    )
    assert done.returncode == 1
    assert len(error_lines(done)) == 1 and expected in error_lines(done)[0]


def test_speed_measures_untrained_models_that_decode_or_train_and_writes_its_rows(tmp_path):
    done = run_here(
        "experiments.speed",
        "--lengths=3",
        "--attentions=k_memory:4",
        "--modes=exact,train",
        "--num_sentences=6",
        "--batch_size=3",
        "--beam_size=2",
        "--units=8",
        "--repeats=1",
        "--graphs=plain",
        f"--output={tmp_path / 'new/speed.json'}",
        f"--figure={tmp_path / 'time'}",
    )
    assert done.returncode == 0, done.stderr
    written = json.loads((tmp_path / "new/speed.json").read_text())
    rows = json.loads(done.stdout.splitlines()[-1])["rows"]
    assert written["rows"] == rows and written["commit"] and written["hardware"]
    assert [(row["mode"], row["attention"]) for row in rows] == [
        (mode, "k_memory:4") for mode in ("exact", "train")
    ]
    for row in rows:
        assert row["seconds"] > 0 and row["target_tokens_per_second"] > 0
        assert row["threads"] == num_cores()
        is_training = row["mode"] == "train"
        assert ("beam_size" in row) == ("jit_compile" in row) == (not is_training)
    assert rows[0]["target_tokens"] == 6 * 4
    assert rows[0]["weights"] == "untrained, lengths forced"
    assert min(rows[0]["encoding_seconds"], rows[0]["steps_seconds"]) > 0
    assert_drawn(tmp_path / "time_exact_float32_plain.png")


@pytest.mark.slow
def test_speed_measures_a_run_and_its_memory(work):
    done = run_python(
        "-m",
        "experiments.speed",
        f"--run_dir={work / 'run'}",
        f"--source={work / 'data' / 'valid.source.txt'}",
        "--num_sentences=5",
        "--repeats=1",
        "--memory",
        "--threads=1",
    )
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout.splitlines()[-1])["rows"]
    assert (row["mode"], row["attention"], row["weights"]) == ("run", "k_memory:4", "trained")
    assert row["target_tokens"] > 0 and row["target_tokens_per_second"] > 0
    assert 0 < row["peak_memory_mib"] < 2000
    assert row["threads"] == 1


def test_speed_says_in_one_line_what_is_wrong():
    done = run_here("experiments.speed", "--lengths=20,abc")
    assert done.returncode == 1
    assert error_lines(done) == ["error: --lengths: expected whole numbers above 0; got 'abc'"]


@pytest.mark.parametrize(
    ("study", "rows", "figure"),
    [
        ("table1", "copy_20_k4", "l6"),
        *slow(
            ("table1", "copy_20_none,copy_20_k4", "l6"),
            ("table2", "multi30k_en_de_bahdanau,multi30k_en_de_k32_pe", "multi30k_en_de"),
            ("multi30k_sizes", "pieces2000_units256", "valid"),
            ("ambiguities", "k4_sigmoid_softmax", "l6_k4_pairs"),
            (
                "flexible_table3",
                "multi30k_de_en_characters_global,multi30k_de_en_characters_flexible,"
                "multi30k_de_en_characters_flexible_tuned",
                "",
            ),
            ("flexible_figure3", "tanaka_en_ja_flexible_tuned", "tanaka_en_ja"),
            (
                "flexible_figure4",
                "multi30k_de_en_flexible_tuned",
                "multi30k_de_en_flexible_tuned",
            ),
        ),
    ],
)
def test_reproduce_runs_a_tiny_study_and_does_not_run_it_again(
    in_this_process, tmp_path, study, rows, figure
):
    # The study that the rows belong to, and the figures that the study draws.
    made = {"flexible_table3": "flexible_table2"}.get(study, study)
    made = "flexible_table1" if "flexible_figure" in study else made
    drawn_files = [f"tiny_{figure}.png"] if figure else []
    make_multi30k(tmp_path / "corpora" / "multi30k")
    make_tanaka(tmp_path / "corpora" / "small_parallel_enja")
    arguments = [
        "experiments.reproduce",
        study,
        "--scale=tiny",
        f"--rows={rows}",
        f"--work_dir={tmp_path}",
        f"--source_dir={tmp_path / 'corpora'}",
    ]
    first = run_here(*arguments)
    assert first.returncode == 0, first.stderr
    results = tmp_path / "results"
    page = (results / f"{study}_tiny.md").read_text()
    for file in drawn_files:
        assert (results / study / file).exists()
        assert f"]({study}/{file})" in page
    found = json.loads(first.stdout.splitlines()[-1])["rows"]
    assert set(found) >= set(rows.split(","))  # and the rows whose weights they start with
    stamps = {path: path.stat().st_mtime_ns for path in (results / made / "tiny").iterdir()}
    again = run_here(*arguments)
    assert b"finished already" in again.stderr
    assert json.loads(again.stdout.splitlines()[-1])["rows"] == found
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    for file in drawn_files:
        (results / study / file).unlink()
    refused = run_here(*arguments[:3], f"--work_dir={tmp_path / 'none'}", "--only_tables")
    assert refused.returncode == 1 and not (tmp_path / "none").exists()
    assert "expected results; run without --only_tables" in error_lines(refused)[-1]
    drawn = run_here(*arguments[:3], f"--work_dir={tmp_path}", "--only_tables")
    assert json.loads(drawn.stdout.splitlines()[-1])["rows"] == found
    assert all((results / study / file).exists() for file in drawn_files)


@pytest.mark.slow
def test_the_demo_ends_with_rows_figures_and_a_result(in_this_process, monkeypatch, tmp_path):
    # With more cores, the demo would train both models at the same time.
    monkeypatch.setattr("seq2seq_memattn.compute.hardware.num_cores", lambda: 1)
    tiny_data = functools.partial(study_rows.copy_data, is_tiny=True)
    monkeypatch.setattr(study_rows, "copy_data", tiny_data)
    for name in ("embedding_dim", "encoder_units", "decoder_units", "attention_units"):
        monkeypatch.setitem(table1.SMALL, name, 8)
    done = run_here(
        "experiments.demo", f"--run_dir={tmp_path}", "--max_length=4", "--num_updates=2"
    )
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    assert [row["label"] for row in result["rows"]] == ["K=32", "Att"]
    assert len(result["figures"]) == 4
    assert_drawn(*map(Path, result["figures"]))
