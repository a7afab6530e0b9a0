"""Corpora that can be prepared by name.

Each corpus is described by a TOML file in `corpora/`, which says where its files are and how their
text was processed. This module reads the description, finds or downloads the files, and prepares
them as `parallel_text` does.
"""

import dataclasses
import gzip
import tarfile
import tomllib
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

from seq2seq_memattn.config import option
from seq2seq_memattn.data.manifest import Manifest
from seq2seq_memattn.notes import print_note
from seq2seq_memattn.preparation.download import MissingFile, fetch
from seq2seq_memattn.preparation.options import TextOptions
from seq2seq_memattn.preparation.prepare_text import prepare_text
from seq2seq_memattn.preparation.stages import FilePair, TextFiles
from seq2seq_memattn.text.files import atomic_binary
from seq2seq_memattn.text.form import TextForm

FOLDER = Path(__file__).parent / "corpora"
MEMBER = ":"  # separates the name of an archive from the name of a file in it


class MissingMember(ValueError):
    """An archive has no file of a given name, or more than one."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class CorpusOptions(TextOptions):
    """Options of a command that prepares one corpus."""

    FREE: ClassVar[tuple[str, ...]] = (*TextOptions.FREE, "source_dir", "download_dir")

    pair: str = option(
        dataclasses.MISSING, "source and target language, such as en-de", group="Files"
    )
    source_dir: str = option(
        "", "folder with the corpus files; if given, nothing is downloaded", group="Files"
    )
    download_dir: str = option(
        "",
        "folder for downloads, which are kept; by default the output folder's name with "
        "'.downloads' added",
        group="Files",
    )


@dataclasses.dataclass(frozen=True)
class Corpus:
    """One language pair of a corpus.

    File names are relative to the folder of the pair. `ARCHIVE:NAME` is a file in a tar archive.
    `{language}` stands for the language of a side.

    Args:
        name: name of the corpus.
        url: folder of the pair's files on the server; "" if they cannot be downloaded.
        folder: the same folder below `source_dir`.
        train: names of the files with training text.
        evaluation: one file name each for "valid" and the test sets, by name of the split.
        sha256: checksums by file name, as far as they are known.
        form: `TextForm` of the files.
        truecase_model: name of the model that truecased a side, or "".
    """

    name: str
    url: str
    folder: str
    train: tuple[str, ...]
    evaluation: Mapping[str, str]
    sha256: Mapping[str, str]
    form: TextForm
    truecase_model: str

    def languages(self) -> tuple[str, str]:
        """The source and the target language."""
        return self.form.source_language, self.form.target_language


def read_corpus(name: str, pair: str, url: str = "") -> Corpus:
    """Reads the description of one language pair of a corpus.

    Args:
        name: name of the file in `FOLDER`, without suffix.
        pair: source and target language, such as "en-de"; either direction is accepted.
        url: replaces the server's address if given.

    Raises:
        ValueError: if the corpus does not have the pair. The message names the pairs that it has.
    """
    with open(FOLDER / f"{name}.toml", "rb") as stream:
        content = tomllib.load(stream)
    known = content["pairs"]
    reverse = "-".join(reversed(pair.split("-")))
    found = known.get(pair) or known.get(reverse)
    if found is None:
        raise ValueError(f"pair: expected one of {', '.join(known)} (or the reverse); got {pair!r}")
    source, target = pair.split("-")
    base, folder = url or content.get("url", ""), found.get("folder", "")
    form = TextForm(source, target, **content.get("form", {}))
    return Corpus(
        name,
        "/".join(filter(None, (base, folder))) if base else "",
        folder,
        tuple(found["train"]),
        {"valid": found["valid"], **found.get("test", {})},
        content.get("sha256", {}),
        form,
        content.get("truecase_model", ""),
    )


@dataclasses.dataclass(frozen=True)
class CorpusFiles:
    """Finds the files of a corpus in a folder, or downloads them from its server.

    Args:
        corpus: `Corpus`.
        source_dir: folder with the files, in the corpus's own subfolder or anywhere below; "" to
            download them.
        download_dir: folder for downloads and for files unpacked from archives.
    """

    corpus: Corpus
    source_dir: str
    download_dir: Path

    def all(self) -> TextFiles:
        """Returns all files, after downloading and unpacking those that are missing."""
        train = tuple(self._pair(name) for name in self.corpus.train)
        return TextFiles(
            train,
            {split: self._pair(name) for split, name in self.corpus.evaluation.items()},
            dataclasses.replace(
                self.corpus.form, truecase_model=self._truecase_model(Path(train[0][0]).parent)
            ),
        )

    def _truecase_model(self, folder: Path) -> str:
        """The truecase model of the source side; "", with a note, if it cannot be found."""
        if not self.corpus.truecase_model:
            return ""
        name = self.corpus.truecase_model.format(language=self.corpus.form.source_language)
        archive, _, member = name.rpartition(MEMBER)
        if (folder / member).is_file():
            return str(folder / member)
        try:
            if not self.source_dir:
                return str(self._unpack(self._file(archive), member))
            if (folder / archive).is_file():
                return str(self._unpack(folder / archive, member))
            missing = f"{folder} has no {archive}"
        except (MissingFile, MissingMember) as error:
            missing = str(error)
        print_note(f"{missing}; without the truecase model, translate does not truecase sources")
        return ""

    def _pair(self, name: str) -> FilePair:
        source, target = (
            self._find(name.format(language=language)) for language in self.corpus.languages()
        )
        if source.parent != target.parent:  # one may belong to another language pair
            raise ValueError(f"expected both sides in one folder; got {source} and {target}")
        return str(source), str(target)

    def _find(self, name: str) -> Path:
        archive, _, member = name.rpartition(MEMBER)
        if not archive:
            return self._file(name)
        unpacked = self._in_source_dir(member)
        return unpacked or self._unpack(self._file(archive), member)

    def _in_source_dir(self, name: str) -> Path | None:
        """Finds a file below `source_dir`: by its path on the server, or else by its name alone.

        A name alone must be unique. A file with the additional suffix `.gz` is found too.
        """
        if not self.source_dir:
            return None
        for root in (Path(self.source_dir, self.corpus.folder), Path(self.source_dir)):
            for wanted in (name, f"{name}.gz"):
                if (root / wanted).is_file():
                    return root / wanted
                found = list(root.rglob(PurePosixPath(wanted).name))
                if len(found) == 1:
                    return found[0]
        return None

    def _file(self, name: str) -> Path:
        found = self._in_source_dir(name)
        if found:
            return found
        if self.source_dir:
            raise ValueError(
                f"source_dir: expected {PurePosixPath(self.corpus.folder, name)}, or one file of "
                f"that name, in {self.source_dir}"
            )
        if not self.corpus.url:
            raise ValueError(
                f"source_dir: expected the folder with the files of {self.corpus.name}, which "
                "cannot be downloaded; got none"
            )
        path = self._local(name)
        fetch(f"{self.corpus.url}/{name}", path, self.corpus.sha256.get(name, ""))
        return path

    def _unpack(self, archive: Path, member: str) -> Path:
        """Unpacks a file of an archive, unless it was unpacked before; returns its path."""
        stat = archive.stat()
        version = f"{stat.st_size}-{stat.st_mtime_ns}"
        path = self._local(f"{archive.name}.{version}.unpacked/{member}")
        if path.exists():
            return path
        try:
            _check_whole(archive)
            with tarfile.open(archive) as tar:
                content: Any = tar.extractfile(_member(tar, archive, member))
                with atomic_binary(path) as stream:
                    while chunk := content.read(1 << 20):
                        stream.write(chunk)
        except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{archive}: expected a whole tar archive, got: {error}") from None
        return path

    def _local(self, name: str) -> Path:
        path = self.download_dir / self.corpus.folder / name
        if not self.download_dir.exists():
            print_note(f"downloaded and unpacked files are kept in {self.download_dir}")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def _check_whole(archive: Path) -> None:
    """Reads an archive to its end, to verify its checksum; `tarfile` stops earlier."""
    if archive.suffix in (".gz", ".tgz"):
        with gzip.open(archive) as stream:
            while stream.read(1 << 20):
                pass


def _member(tar: tarfile.TarFile, archive: Path, name: str) -> tarfile.TarInfo:
    """The file of an archive with this path, or else the only one of this name in any folder."""
    files = [info for info in tar if info.isfile()]
    same_path = [info for info in files if PurePosixPath(info.name) == PurePosixPath(name)]
    plain = PurePosixPath(name).name
    found = same_path or [info for info in files if PurePosixPath(info.name).name == plain]
    if len(found) != 1:
        raise MissingMember(f"{archive}: expected one file {name} in it; there are {len(found)}")
    return found[0]


def prepare(name: str, options: CorpusOptions, url: str = "") -> tuple[Manifest, bool]:
    """Makes the data directory of a corpus, unless it exists already; see `prepare_text`.

    Args:
        name: name of the corpus.
        options: `CorpusOptions`.
        url: replaces the server's address if given.
    """
    corpus = read_corpus(name, options.pair, url)
    output = Path(options.output_dir)
    if output.name in ("", ".."):  # such as "."
        output = output.resolve()
    downloads = Path(options.download_dir or output.with_name(f"{output.name}.downloads"))
    if downloads.resolve().is_relative_to(output.resolve()):
        raise ValueError(f"--download_dir: expected a directory outside of {options.output_dir}")
    files = CorpusFiles(corpus, options.source_dir, downloads)
    return prepare_text(options, name, options.kept(), files.all)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Multi30kOptions(CorpusOptions):
    """Options of the command multi30k."""

    # `tokenised` changes the name of the task, so it need not be kept among the options.
    FREE: ClassVar[tuple[str, ...]] = (*CorpusOptions.FREE, "tokenised")

    tokenised: bool = option(
        False,
        "use the release's tokenised and lower-cased text, for word vocabularies",
        group="Files",
    )


def prepare_multi30k(options: Multi30kOptions) -> tuple[Manifest, bool]:
    """Makes the data directory of Multi30k, unless it exists already; see `prepare_text`."""
    return prepare("multi30k_tokenised" if options.tokenised else "multi30k", options)
