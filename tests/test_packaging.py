"""The wheel: it builds, holds all that the packages need, and works elsewhere."""

import ast
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.commands import ROOT

PACKAGES = ("seq2seq_memattn", "experiments", "data_prep")
SOURCES = {".py", ".pyi", ".typed", ".toml", ".lua", ".html", ".css", ".js", ".svg"}

SCRIPT = """
import experiments.experiment, data_prep.copy_task
import numpy as np
from seq2seq_memattn import ModelConfig, Seq2Seq

model = Seq2Seq(ModelConfig(embedding_dim=4, encoder_units=4, decoder_units=4))
ids = np.array([[3, 2]])
print(model({"source": ids, "target_inputs": ids}).shape)
print(len(experiments.experiment.experiment_names()))
print(experiments.experiment.__file__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    sources = folder / "sources"  # building leaves files beside setup.py
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
    ).stdout.decode()
    for name in filter(None, tracked.split("\0")):
        if (ROOT / name).is_file() and not name.startswith("tests/"):
            (sources / name).parent.mkdir(parents=True, exist_ok=True)
            (sources / name).write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", f"--outdir={folder}"]
    done = subprocess.run([*command, str(sources)], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_every_source_and_the_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    expected = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.suffix in SOURCES
    }
    assert "seq2seq_memattn/py.typed" in expected
    assert expected - names == set()
    assert not [name for name in names if name.startswith("tests/")]
    assert [name for name in names if name.endswith("licenses/LICENSE") or "info/LICENSE" in name]


def test_the_wheel_requires_all_that_its_sources_import(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode()
    found = re.findall(r"^Requires-Dist: ([\w-]+)(?!.*extra ==)", metadata, re.MULTILINE)
    required = {requirement.lower().replace("-", "_") for requirement in found}
    imported = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    imported |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    imported.add(str(node.module).split(".")[0])
    others = imported - set(sys.stdlib_module_names) - set(PACKAGES)
    names = {"absl": "absl_py"}
    # JAX, pdoc and what the server is made of are extras, of which gRPC comes with
    # tensorflow-serving-api; protobuf ("google") comes with TensorFlow.
    extras = {"jax", "pdoc", "grpc", "google"}
    extras |= {"prometheus_client", "starlette", "tensorflow_serving", "uvicorn"}
    assert {names.get(one, one) for one in others} - extras <= required
    assert {"tensorflow_text", "tensorboard", "keras"} <= required


def test_the_wheel_works_where_the_sources_are_not(wheel: Path, tmp_path: Path) -> None:
    where = tmp_path / "installed"
    install = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-compile", "--quiet"]
    subprocess.run([*install, f"--target={where}", str(wheel)], check=True)
    # `-S` would hide what it needs; the editable install comes later on the path than `where`.
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(where)!r}){SCRIPT}"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    shape, count, file = done.stdout.decode().splitlines()
    assert shape == "(1, 2, 23)" and int(count) >= 28
    assert Path(file).is_relative_to(where)
