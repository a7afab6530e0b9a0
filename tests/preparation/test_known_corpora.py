"""Corpora by name are prepared from a made-up server or folder with their layout."""

import base64
import gzip
import io
import json
import os
import re
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from seq2seq_memattn.data.manifest import read_manifest
from seq2seq_memattn.data.splits import SplitData
from seq2seq_memattn.preparation import known_corpora
from seq2seq_memattn.preparation.known_corpora import (
    FOLDER,
    CorpusOptions,
    Multi30kOptions,
    prepare,
    read_corpus,
)
from seq2seq_memattn.preparation.stages import TextPreparation
from tests.preparation.web_server import Server, serving
from tests.running import error_lines, run_here
from tests.texts import make_tanaka, make_wmt_news, pairs

CORPORA = sorted(path.stem for path in FOLDER.glob("*.toml"))
SETS = {"corpus.tc": 300, "newstest2015.tc": 9, "newstest2016.tc": 8, "newsdev2016.tc": 7}


def text(name: str, side: int) -> bytes:
    lines = pairs(SETS[name], len(name))[side]
    return "".join(f"{line} &apos;s\n" for line in lines).encode()


def release(pair: str, prefix: str = "") -> dict[str, bytes]:
    """Files of the WMT'17 release for a pair such as "de-en", by path."""
    sides = list(enumerate(reversed(pair.split("-"))))
    sets = {  # development sets that were new in WMT'17 are in a folder of their own
        f"{prefix}{'dev/' * name.startswith('newsdev')}{name}.{language}": text(name, side)
        for name in list(SETS)[1:]
        for side, language in sides
    }
    files = {
        f"{pair}/corpus.tc.{language}.gz": gzip.compress(text("corpus.tc", side))
        for side, language in sides
    }
    models = {f"truecase-model.{language}": f"{language} (1/1)\n".encode() for _, language in sides}
    return {**files, f"{pair}/dev.tgz": archive(sets), f"{pair}/true.tgz": archive(models)}


def archive(files: dict[str, bytes]) -> bytes:
    """A compressed tar archive."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def unpacked(folder: Path, files: dict[str, bytes]) -> Path:
    """Writes files into a folder, by their paths, and returns the folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def options_in(folder: Path, pair: str = "en-de", **options: Any) -> CorpusOptions:
    given: dict[str, Any] = {"processes": 1, "output_dir": str(folder / "data")}
    if "model_file" not in options:
        given["vocab_size"] = 400
    return CorpusOptions(pair=pair, **(given | options))


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(release("de-en")) as running:
        yield running


def decoded(directory: Path, split: str) -> list[str]:
    data = SplitData(directory, split, 1)
    return [data.target_vocabulary.decode(ids) for ids in data.target]


def lines_of(name: str, side: int) -> list[str]:
    return text(name, side).decode().split("\n")[:-1]


def test_wmt17_is_downloaded_unpacked_and_prepared_once(server: Server, tmp_path: Path) -> None:
    server.cuts = [2000] * 3  # in the middle of the first file
    manifest, is_new = prepare("wmt17", options_in(tmp_path), server.url)
    assert is_new
    assert list(manifest.splits) == ["train", "valid", "newstest2016"]
    assert sorted({path for path, _ in server.requests}) == sorted(release("de-en"))
    assert manifest.text_form == {
        "source_language": "en",
        "target_language": "de",
        "is_tokenised": True,
        "has_normalised_punctuation": True,
        "splits_hyphens": True,
        "has_escapes": True,
        "is_truecased": True,
        "truecase_model": "source.truecase",
        "is_lowercased": False,
        "is_lowercased_first": False,
    }
    directory = tmp_path / "data"
    assert (directory / "source.truecase").read_text() == "en (1/1)\n"
    assert manifest == read_manifest(directory)
    assert decoded(directory, "train") == lines_of("corpus.tc", 1)
    assert decoded(directory, "valid") == lines_of("newstest2015.tc", 1)
    assert decoded(directory, "newstest2016") == lines_of("newstest2016.tc", 1)
    server.requests.clear()
    assert prepare("wmt17", options_in(tmp_path), server.url) == (manifest, False)
    (directory / "source.truecase").rename(tmp_path / "away")
    with pytest.raises(ValueError, match=r"data: expected source\.truecase in it"):
        prepare("wmt17", options_in(tmp_path), server.url)
    (tmp_path / "away").rename(directory / "source.truecase")
    # Preparing the corpus with another vocabulary downloads nothing.
    other = options_in(
        tmp_path, vocab_size=420, output_dir=str(tmp_path / "b"), unescape=True,
        download_dir=str(tmp_path / "data.downloads"),
    )  # fmt: skip
    unescaped, _ = prepare("wmt17", other, server.url)
    assert unescaped.text_form["has_escapes"] is False
    assert server.requests == []
    assert decoded(tmp_path / "b", "valid")[0] == lines_of("newstest2015.tc", 1)[0].replace(
        "&apos;", "'"
    )


def test_an_interrupted_download_goes_on_with_the_next_start(
    server: Server, tmp_path: Path
) -> None:
    missing = server.files.pop("de-en/dev.tgz")
    with pytest.raises(OSError, match="de-en/dev.tgz: HTTP Error 404"):
        prepare("wmt17", options_in(tmp_path), server.url)
    assert not (tmp_path / "data").exists()
    server.files["de-en/dev.tgz"] = missing
    server.requests.clear()
    prepare("wmt17", options_in(tmp_path), server.url)
    assert [path for path, _ in server.requests] == ["de-en/dev.tgz", "de-en/true.tgz"]


def test_a_pair_may_be_turned_round(server: Server, tmp_path: Path) -> None:
    manifest, _ = prepare("wmt17", options_in(tmp_path, "de-en"), server.url)
    assert manifest.text_form["source_language"] == "de"
    assert decoded(tmp_path / "data", "train") == lines_of("corpus.tc", 0)


@pytest.mark.parametrize("layout", ["as on the server", "unpacked", "all in one folder"])
def test_files_that_are_there_are_not_downloaded(tmp_path: Path, layout: str) -> None:
    source = tmp_path / "there"
    for name, content in release("tr-en", prefix="./").items():
        path = source / (Path(name).name if layout == "all in one folder" else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if name.endswith(".tgz") and layout == "unpacked":
            with tarfile.open(path) as tar:
                tar.extractall(path.parent, filter="data")
            path.unlink()
    before = sorted(source.rglob("*"))
    manifest, _ = prepare("wmt17", options_in(tmp_path, "en-tr", source_dir=str(source)))
    assert decoded(tmp_path / "data", "valid") == lines_of("newsdev2016.tc", 1)
    assert decoded(tmp_path / "data", "newstest2016") == lines_of("newstest2016.tc", 1)
    assert sorted(source.rglob("*")) == before
    assert "source_dir" not in manifest.options


def test_what_is_missing_or_damaged_is_named(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    with pytest.raises(
        ValueError, match="source_dir: expected de-en/corpus.tc.en.gz, or one file of"
    ):
        prepare("wmt17", options_in(tmp_path, source_dir=str(folder)))
    with pytest.raises(ValueError, match=r"pair: expected one of en-cs, en-de.*; got 'en-xx'"):
        prepare("wmt17", options_in(tmp_path, "en-xx"), server.url)
    inside = options_in(tmp_path, download_dir=str(tmp_path / "data" / "downloads"))
    with pytest.raises(ValueError, match="--download_dir: expected a directory outside of"):
        prepare("wmt17", inside, server.url)
    with pytest.raises(ValueError, match="source_dir: expected the folder with the files of wmt_n"):
        prepare("wmt_news", options_in(tmp_path))
    server.files["de-en/dev.tgz"] = server.files["de-en/dev.tgz"][:200]
    with pytest.raises(ValueError, match=r"dev.tgz: expected a whole tar archive"):
        prepare("wmt17", options_in(tmp_path), server.url)
    empty = io.BytesIO()
    tarfile.open(fileobj=empty, mode="w:gz").close()
    server.files["de-en/dev.tgz"] = empty.getvalue()
    options = options_in(tmp_path, download_dir=str(tmp_path / "new"))
    with pytest.raises(
        ValueError, match=r"expected one file newstest2015.tc.en in it; there are 0"
    ):
        prepare("wmt17", options, server.url)


def test_text_may_come_without_its_truecase_model(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = release("de-en")
    del files["de-en/true.tgz"], server.files["de-en/true.tgz"]
    there = unpacked(tmp_path / "there", files)
    # The truecase model of another pair is not used.
    unpacked(there, {"cs-en/true.tgz": release("cs-en")["cs-en/true.tgz"]})
    without = archive({"other": b"x"})
    for name, message, options in (
        ("a", "de-en has no true.tgz", {"source_dir": str(there)}),
        ("b", "de-en/true.tgz: HTTP Error 404", {}),
        ("c", "expected one file truecase-model.en in it; there are 0", {}),
    ):
        if name == "c":
            server.files["de-en/true.tgz"] = without
        options = {**options, "output_dir": str(tmp_path / name)}
        manifest, _ = prepare("wmt17", options_in(tmp_path, **options), server.url)
        assert manifest.text_form["truecase_model"] == ""
        said = capsys.readouterr().err
        assert message in said
        assert "without the truecase model, translate does not truecase sources" in said


def test_a_start_without_the_files_does_not_stand_in_the_way_of_one_with_them(
    tmp_path: Path,
) -> None:
    with serving({}) as server, pytest.raises(OSError, match="HTTP Error 404"):
        prepare("wmt17", options_in(tmp_path), server.url)
    there = unpacked(tmp_path / "there", release("de-en"))
    options = options_in(tmp_path, source_dir=str(there), model_file=str(there / "none.model"))
    with pytest.raises(FileNotFoundError, match="none.model"):
        prepare("wmt17", options)
    assert prepare("wmt17", options_in(tmp_path, source_dir=str(there)))[1]


def test_a_preparation_does_not_go_on_with_other_files_of_the_same_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    there = unpacked(tmp_path / "there", release("de-en"))
    options = options_in(tmp_path, source_dir=str(there))
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(TextPreparation, "run", stopped)
        prepare("wmt17", options)
    (there / "de-en" / "corpus.tc.en.gz").write_bytes(gzip.compress(b"other\n" * 300))
    with pytest.raises(ValueError, match="other options or input files; remove it"):
        prepare("wmt17", options)


def test_an_archive_of_the_same_name_is_unpacked_for_itself(tmp_path: Path) -> None:
    first = unpacked(tmp_path / "first", release("de-en"))
    sets = {
        f"newstest{year}.tc.{language}": line
        for year in (2015, 2016)
        for language, line in (("en", b"new\n"), ("de", b"neu\n"))
    }
    second = unpacked(tmp_path / "second", {**release("de-en"), "de-en/dev.tgz": archive(sets)})
    for there in (first, second):
        shutil.rmtree(tmp_path / "data", ignore_errors=True)
        prepare("wmt17", options_in(tmp_path, source_dir=str(there)))
    assert decoded(tmp_path / "data", "valid") == ["neu"]


def test_both_sides_of_a_pair_are_in_one_folder(tmp_path: Path) -> None:
    there = unpacked(tmp_path / "there", release("de-en"))
    (there / "cs-en").mkdir()
    shutil.move(there / "de-en" / "corpus.tc.en.gz", there / "cs-en")
    with pytest.raises(ValueError, match="expected both sides in one folder; got .*/cs-en/corpus"):
        prepare("wmt17", options_in(tmp_path, source_dir=str(there)))


def test_a_damaged_archive_is_refused_wherever_the_damage_is(tmp_path: Path) -> None:
    noise = base64.b64encode(os.urandom(3000)) + b"\n"
    files = {f"newstest201{year}.tc.{side}": noise for year in (5, 6) for side in ("en", "de")}
    packed = archive(files)
    there = unpacked(tmp_path / "there", {**release("de-en"), "de-en/dev.tgz": packed})
    for place in range(20, len(packed), len(packed) // 7):
        damaged = bytearray(packed)
        damaged[place] ^= 1
        (there / "de-en" / "dev.tgz").write_bytes(damaged)
        with pytest.raises(ValueError, match="dev.tgz: expected a whole tar archive"):
            prepare("wmt17", options_in(tmp_path, source_dir=str(there)))
    (there / "de-en" / "dev.tgz").write_bytes(packed)
    (there / "de-en" / "true.tgz").write_bytes(damaged)
    with pytest.raises(ValueError, match="true.tgz: expected a whole tar archive"):
        prepare("wmt17", options_in(tmp_path, source_dir=str(there)))


def test_files_may_have_been_packed(tmp_path: Path) -> None:
    source = tmp_path / "there"
    files = {
        f"{name}.{language}.gz": gzip.compress("".join(f"{x}\n" for x in lines).encode())
        for name, count in (("train", 300), ("dev", 9), ("test", 8))
        for language, lines in zip(("en", "ja"), pairs(count, seed=1), strict=True)
    }
    unpacked(source, files)
    options = options_in(
        tmp_path, "en-ja", kind="words", vocab_size=40, separate_vocabularies=True,
        source_dir=str(source),
    )  # fmt: skip
    manifest, _ = prepare("small_parallel_enja", options)
    assert list(manifest.splits) == ["train", "valid", "test"]
    assert manifest.split("test").num_examples == 8
    assert manifest.text_form["is_lowercased"] is True


@pytest.mark.parametrize(("tokenised", "name"), [(False, "multi30k"), (True, "multi30k_tokenised")])
def test_multi30k_is_there_as_written_and_tokenised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokenised: bool, name: str
) -> None:
    prepared: list[str] = []
    monkeypatch.setattr(known_corpora, "prepare", lambda name, options: prepared.append(name))
    known_corpora.prepare_multi30k(
        Multi30kOptions(pair="de-en", output_dir=str(tmp_path), tokenised=tokenised)
    )
    assert prepared == [name]
    assert "tokenised" not in Multi30kOptions(pair="de-en", output_dir="d").kept()


@pytest.mark.parametrize("name", CORPORA)
def test_every_corpus_says_what_its_files_are(name: str) -> None:
    with pytest.raises(ValueError, match="expected one of") as error:
        read_corpus(name, "no-pair")
    known = str(error.value).split("expected one of ")[1].split(" (or")[0].split(", ")
    assert known
    files = set()
    for pair in known:
        corpus = read_corpus(name, pair)
        assert corpus.languages() == tuple(pair.split("-"))
        assert corpus.train and list(corpus.evaluation)[0] == "valid"
        for file in (*corpus.train, *corpus.evaluation.values()):
            assert "{language}" in file
            files |= {file.format(language=language) for language in corpus.languages()}
    assert set(corpus.sha256) in (set(), files)
    assert all(re.fullmatch("[0-9a-f]{64}", known_sum) for known_sum in corpus.sha256.values())


def test_a_download_with_another_checksum_is_refused(tmp_path: Path) -> None:
    names = [
        f"{split}.{language}" for split in ("train", "dev", "test") for language in ("en", "ja")
    ]
    with (
        serving(dict.fromkeys(names, b"another\n")) as server,
        pytest.raises(ValueError, match=r"\.(en|ja): expected sha256"),
    ):
        prepare("small_parallel_enja", options_in(tmp_path, "en-ja"), server.url)


def make_wmt17(folder: Path) -> None:
    for name, content in release("de-en").items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


@pytest.mark.parametrize(
    ("command", "pair", "make", "num_train"),
    [
        ("wmt17", "en-de", make_wmt17, 300),
        ("wmt_news", "en-de", make_wmt_news, sum(range(60, 67))),
        ("small_parallel_enja", "en-ja", make_tanaka, 300),
    ],
)
def test_the_command_prepares_from_a_folder_and_says_what_it_made(
    command: str, pair: str, make: Callable[[Path], None], num_train: int, tmp_path: Path
) -> None:
    source = tmp_path / "there"
    make(source)
    arguments = [f"data_prep.{command}", f"--output_dir={tmp_path / 'data'}", "--vocab_size=400"]
    done = run_here(*arguments, f"--pair={pair}", f"--source_dir={source}")
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert (made["command"], made["num_train"]) == (command, num_train)
    again = run_here(*arguments, f"--pair={pair}")
    assert b"already prepared" in again.stderr and again.returncode == 0
    reverse = "-".join(reversed(pair.split("-")))
    other = run_here(*arguments, f"--pair={reverse}")
    assert f"pair (there '{pair}', now '{reverse}')" in error_lines(other)[0]
