import sys
from pathlib import Path

import pytest

from experiments.benchmarks.peers import set_up
from experiments.benchmarks.peers.set_up import PACKAGES, commands, environment_python
from tests.running import ROOT, error_lines, run_here

COMMAND = "experiments.benchmarks.peers.set_up"


def stand_in(path: Path, log: Path, status: int = 0) -> Path:
    """A program that notes its arguments, and makes environments or ends with `status`."""
    path.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, shutil, sys\n"
        f"with open({str(log)!r}, 'a') as stream:\n"
        "    print(*sys.argv[1:], file=stream)\n"
        "if sys.argv[1:3] == ['-m', 'venv']:\n"
        "    folder = pathlib.Path(sys.argv[3], 'bin')\n"
        "    folder.mkdir(parents=True, exist_ok=True)\n"
        "    shutil.copy(__file__, folder / 'python')\n"
        "    sys.exit()\n"
        "print('no such package', file=sys.stderr)\n"
        f"sys.exit({status})\n"
    )
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("name", PACKAGES)
def test_an_environment_is_made_and_filled(name: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    python = stand_in(tmp_path / "python", log)
    done = run_here(COMMAND, name, f"--environments={tmp_path / 'peers'}", f"--python={python}")
    assert done.returncode == 0, done.stderr
    first, *installs = log.read_text().splitlines()
    assert first == f"-m venv {tmp_path / 'peers' / name}"
    assert len(installs) == len(PACKAGES[name])
    for line, packages in zip(installs, PACKAGES[name], strict=True):
        assert line.startswith("-m pip install ") and line.endswith(" ".join(packages))
    assert environment_python(tmp_path / "peers", name).exists()


def test_every_system_has_a_script_and_versions() -> None:
    for name, calls in PACKAGES.items():
        assert (Path(set_up.__file__).with_name(f"{name}.py")).exists()
        words = [word for call in calls for word in call if not word.startswith("--")]
        assert all("==" in word for word in words), words


def test_the_readme_has_the_command_of_each() -> None:
    text = (ROOT / "experiments/benchmarks/peers/README.md").read_text(encoding="utf-8")
    for name in PACKAGES:
        assert f"python -m {COMMAND} {name}\n" in text


def test_an_installation_that_fails_is_named_with_its_last_words(tmp_path: Path) -> None:
    python = stand_in(tmp_path / "python", tmp_path / "log", status=3)
    done = run_here(COMMAND, "pytorch", f"--environments={tmp_path}", f"--python={python}")
    assert error_lines(done) == ["error: pytorch: exit status 3: no such package"]


@pytest.mark.parametrize("words", [(), ("tensor2tensor",)])
def test_other_systems_are_refused(words: tuple[str, ...]) -> None:
    done = run_here(COMMAND, *words)
    assert done.returncode == 1
    assert b"expected names of systems (pytorch, opennmt_py, tensorflow_addons)" in done.stderr


def test_environments_are_of_their_own(tmp_path: Path) -> None:
    made, *installs = commands("opennmt_py", tmp_path, "python3.11")
    assert made[:3] == ["python3.11", "-m", "venv"]
    assert {call[0] for call in installs} == {str(tmp_path / "opennmt_py" / "bin" / "python")}
