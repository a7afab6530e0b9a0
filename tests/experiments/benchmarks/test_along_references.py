from pathlib import Path

from tests.running import error_lines, run_python


def test_more_lines_than_there_are_cannot_be_joined(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("a\nb\nc\n")
    files = [f"--{name}={tmp_path / 'lines.txt'}" for name in ("source", "reference")]
    done = run_python(
        "-m", "experiments.benchmarks.along_references", "--runs=run", *files, "--joined=1,4"
    )
    assert done.returncode == 1
    assert error_lines(done)[-1].endswith("--joined: expected at most the 3 lines; got 4")
