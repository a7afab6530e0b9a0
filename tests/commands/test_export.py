import json
import shutil
from pathlib import Path

import pytest
import tensorflow as tf

from tests.marks import slow
from tests.running import error_lines, run_here

COMMAND = "experiments.export"


@pytest.mark.parametrize("precision", ["float32", "int8_products", *slow("bfloat16_products")])
def test_a_copy_task_run_is_exported_and_copies_as_the_run_does(
    work: Path, tmp_path: Path, precision: str
) -> None:
    flags = [f"--run_dir={work / 'run'}", "--beam_size=4", f"--precision={precision}"]
    more = [f"--export_dir={tmp_path / 'copy'}", "--sample=2", "--top_k=1"]
    exported = run_here(COMMAND, *flags, *more)
    assert exported.returncode == 0, exported.stderr.decode()
    figures = json.loads(exported.stdout.splitlines()[-1])
    assert figures["version"] == 1
    lines = ["3 1 4 1 5", "2", "1 2 3 4 5 6 7 8 9"]  # the last line is cut
    (tmp_path / "lines.txt").write_text("".join(f"{line}\n" for line in lines))
    files = [f"--input={tmp_path / 'lines.txt'}", f"--output={tmp_path / 'copies.txt'}"]
    translated = run_here("experiments.translate", *flags, *files)
    assert translated.returncode == 0, translated.stderr.decode()
    assert json.loads(translated.stdout.splitlines()[-1])["update"] == figures["update"]
    model = tf.saved_model.load(str(tmp_path / "copy" / "1"))
    found = model.signatures["align"](text=tf.constant(lines))
    copies = [row[0].decode() for row in found["translations"].numpy()]
    assert copies == (tmp_path / "copies.txt").read_text().splitlines()
    assert found["source_is_cut"].numpy().tolist() == [False, False, True]
    seeds = tf.zeros([len(lines)], tf.int32)
    drawn = model.signatures["sample"](text=tf.constant(lines), seed=seeds)["translations"]
    assert [len({*row}) for row in drawn.numpy().tolist()] == [1, 1, 1]  # top-k with k = 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="unknown symbol.*wrong"):
        model.signatures["align"](text=tf.constant(["3 wrong"]))
    description = json.loads((tmp_path / "copy" / "1" / "assets.extra" / "export.json").read_text())
    assert description["precision"] == precision
    assert description["n_best"] == 4  # 5, if the beam is not smaller
    assert len(description["example"].split()) == 10
    card = (tmp_path / "copy" / "1" / "model_card.md").read_text()
    assert card.startswith("# copy, version 1") and "Moses" not in card
    is_rounded = precision == "int8_products"
    assert ("stores its matrices in eight bits" in card) == is_rounded
    assert (f"precision {precision}" in card) == (not is_rounded)


@pytest.mark.slow
def test_several_runs_become_one_model_that_completes_beginnings(
    work: Path, tmp_path: Path
) -> None:
    other = shutil.copytree(work / "run", tmp_path / "other")
    runs = f"--run_dir={work / 'run'},{other}"
    done = run_here(COMMAND, runs, f"--export_dir={tmp_path / 'both'}", "--prefix")
    assert done.returncode == 0, done.stderr.decode()
    model = tf.saved_model.load(str(tmp_path / "both" / "1"))
    text, prefix = tf.constant(["3 1 4", "2"]), tf.constant(["1 4", ""])
    found = model.signatures["complete"](text=text, prefix=prefix)["translations"].numpy()
    assert all(translation.startswith(b"1 4") for translation in found[0])
    assert len(model.signatures["serving_default"](text=text)["translations"]) == 2


def test_what_cannot_be_exported_gives_one_line_and_leaves_nothing(
    work: Path, tmp_path: Path
) -> None:
    cases = {
        f"--run_dir={tmp_path / 'missing'}": "expected a run directory",
        f"--run_dir={work / 'run'}|--n_best=20": "n_best",
        f"--run_dir={work / 'run'}|--top_p=0.5": "--top_p: expected --sample too",
        f"--run_dir={work / 'run'}|--sample=2|--top_p=0": "`top_p` must be above 0",
        f"--run_dir={work / 'run'}|--example=3 wrong": "unknown symbol 'wrong'",
    }
    for given, says in cases.items():
        done = run_here(COMMAND, f"--export_dir={tmp_path / 'export'}", *given.split("|"))
        assert done.returncode == 1
        (line,) = error_lines(done)
        assert says in line
        assert not list((tmp_path / "export").glob("**/*"))
    (tmp_path / "file").write_text("a file")
    done = run_here(COMMAND, f"--run_dir={work / 'run'}", f"--export_dir={tmp_path / 'file' / 'a'}")
    (line,) = error_lines(done)
    assert done.returncode == 1 and str(tmp_path / "file") in line
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
