"""The wheel contains one package, has the right requirements, and works elsewhere."""

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from seq2seq_memattn import __version__
from seq2seq_memattn.packages import EXTRAS
from tests.running import ROOT, project_files

PACKAGE = "seq2seq_memattn"
SOURCES = {".py", ".pyi", ".typed", ".toml", ".html", ".css", ".js", ".svg"}
CORE = {"absl_py", "keras", "lazy_loader", "numpy", "sacrebleu", "tqdm"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

SCRIPT = """
import numpy as np
import seq2seq_memattn
from seq2seq_memattn import ModelConfig, Seq2Seq
from seq2seq_memattn.presets.load import PRESETS

model = Seq2Seq(ModelConfig(embedding_dim=4, encoder_units=4, decoder_units=4))
ids = np.array([[3, 2]])
print(model({"source": ids, "target_inputs": ids}).shape)
print(len(PRESETS))
print(seq2seq_memattn.__file__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    sources = folder / "sources"  # a copy, because building writes files beside setup.py
    for name in project_files():
        if not name.startswith("tests/"):
            (sources / name).parent.mkdir(parents=True, exist_ok=True)
            (sources / name).write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", f"--outdir={folder}"]
    done = subprocess.run([*command, str(sources)], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    (built,) = folder.glob("*.whl")
    return built


def read(wheel: Path, ending: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(ending))
        return archive.read(name).decode()


def test_the_wheel_holds_every_source_of_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    folders = {name.partition("/")[0] for name in names}
    assert folders == {PACKAGE, f"{PACKAGE}-{__version__}.dist-info"}
    expected = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / PACKAGE).rglob("*")
        if path.suffix in SOURCES
    }
    assert f"{PACKAGE}/py.typed" in expected
    assert expected - names == set()
    assert [name for name in names if name.endswith("licenses/LICENSE")]


def test_the_wheel_has_the_command(wheel: Path) -> None:
    assert f"memattn = {PACKAGE}.__main__:main" in read(wheel, "entry_points.txt")


def requirements(names: list[str]) -> set[str]:
    found = (re.match(r"[\w-]+", name) for name in names)
    return {match[0].lower().replace("-", "_") for match in found if match}


def test_the_core_is_small_and_the_extras_bring_the_rest(wheel: Path) -> None:
    metadata = read(wheel, "METADATA")
    found = re.findall(r"^Requires-Dist: (.*)$", metadata, re.MULTILINE)
    assert requirements([one for one in found if "extra ==" not in one]) == CORE
    imported = set()
    for path in (ROOT / PACKAGE).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(str(node.module).split(".")[0])
    others = imported - set(sys.stdlib_module_names) - {PACKAGE}
    names = {"absl": "absl_py", "google": "protobuf"}  # TensorFlow installs protobuf
    assert {names.get(one, one) for one in others} - {"protobuf"} - set(EXTRAS) == CORE


def test_the_description_has_the_full_addresses_of_pages_and_pictures(wheel: Path) -> None:
    metadata = read(wheel, "METADATA")
    assert "\nDescription-Content-Type: text/markdown\n" in metadata
    links = re.findall(r'(?:\]\(|src="|srcset=")([^)"]+)', metadata)
    inside = PROJECT["urls"]["Repository"]
    assert f"{inside}/blob/main/docs/teachers.md" in links
    assert f"{inside}/raw/main/docs/images/k_memory_light.svg" in links
    assert not [link for link in links if not link.startswith(("https://", "#"))]
    for link in links:
        if found := re.fullmatch(rf"{re.escape(inside)}/(?:blob|raw)/main/([^#]+)(?:#.*)?", link):
            assert (ROOT / found[1]).exists(), link


def test_every_extra_brings_what_an_error_says_that_it_brings() -> None:
    extras = PROJECT["optional-dependencies"]
    names = {"tensorflow_serving": "tensorflow_serving_api"}
    for package, extra in EXTRAS.items():
        assert names.get(package, package) in requirements(extras[extra]), package
    assert set(EXTRAS.values()) < set(extras)


def test_the_wheel_works_where_the_sources_are_not(wheel: Path, tmp_path: Path) -> None:
    where = tmp_path / "installed"
    install = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-compile", "--quiet"]
    subprocess.run([*install, f"--target={where}", str(wheel)], check=True)
    # `-S` would hide its requirements. `where` comes before the editable install on the path.
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(where)!r}){SCRIPT}"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    shape, count, file = done.stdout.decode().splitlines()
    assert shape == "(1, 2, 23)" and int(count) == 69
    assert Path(file).is_relative_to(where)


def test_the_repository_has_one_address_and_one_version() -> None:
    address = PROJECT["urls"]["Repository"]
    project = re.escape(address.rpartition("/")[2])
    for name in (
        "CITATION.cff",
        "README.md",
        "docs/first_steps.md",
        "docs/index.md",
        "notebooks/tour.ipynb",
        "pyproject.toml",
    ):
        text = (ROOT / name).read_text(encoding="utf-8")
        # The address of a notebook on Colab contains github/OWNER/PROJECT.
        owners = re.findall(rf"github(?:\.com)?/([\w-]+)/{project}", text)
        owners += re.findall(rf"([\w-]+)\.github\.io/{project}", text)
        assert set(owners) == {address.split("/")[-2]}, name
        assert len(owners) >= (2 if name.endswith(".ipynb") else 1), name
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {__version__}\n" in citation
    assert address in citation


def test_commits_are_formatted_by_the_formatter_of_the_checks() -> None:
    pinned = re.search(r"^ruff==(.*)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert pinned
    assert f"rev: v{pinned[1]}\n" in (ROOT / ".pre-commit-config.yaml").read_text()
