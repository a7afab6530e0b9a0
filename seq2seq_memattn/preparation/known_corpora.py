"""Corpora that are prepared by name: where their files are, and what is in them.

A corpus is a TOML file in `corpora/`; this module reads it, finds or fetches the files
and prepares them as `parallel_text` does.
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
from seq2seq_memattn.preparation.prepare_text import FilePair, TextFiles, prepare_text
from seq2seq_memattn.text.files import atomic_binary
from seq2seq_memattn.text.form import TextForm

FOLDER = Path(__file__).parent / "corpora"
MEMBER = ":"  # between an archive's name and that of a file in it


class MissingMember(ValueError):
    """A file that an archive does not have, or not once."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class CorpusOptions(TextOptions):
    """Options of a command that prepares one corpus."""

    FREE: ClassVar[tuple[str, ...]] = (*TextOptions.FREE, "source_dir", "download_dir")

    pair: str = option(
        dataclasses.MISSING, "source and target language, such as en-de", group="Files"
    )
    source_dir: str = option(
        "", "folder with the corpus files; nothing is downloaded", group="Files"
    )
    download_dir: str = option(
        "",
        "folder for downloads, which are kept; by default OUTPUT_DIR.downloads",
        group="Files",
    )


@dataclasses.dataclass(frozen=True)
class Corpus:
    """One pair of languages of a corpus.

    Args:
        name: of the corpus.
        url: folder of the pair's files on the server; "" if they cannot be downloaded.
        folder: the same folder below `source_dir`.
        train: names of files of the training text; `{language}` stands for each side's.
        evaluation: the same for "valid" and the test sets, one file each.
        sha256: checksums by name of file, as far as they are known.
        form: `TextForm`.
        truecase_model: name of the file by which each side was truecased, or "".

    Names are relative to the folder; `ARCHIVE:NAME` is a file in a tar archive.
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
        """Source and target language."""
        return self.form.source_language, self.form.target_language


def read_corpus(name: str, pair: str, url: str = "") -> Corpus:
    """Reads what is known of a corpus.

    Args:
        name: of the file in `FOLDER`, without suffix.
        pair: languages, as "en-de"; either way round.
        url: replaces the server's address.

    Raises:
        ValueError: if the corpus has no such pair; names those that it has.
    """
    with open(FOLDER / f"{name}.toml", "rb") as stream:
        content = tomllib.load(stream)
    known = content["pairs"]
    reverse = "-".join(reversed(pair.split("-")))
    found = known.get(pair) or known.get(reverse)
    if found is None:
        raise ValueError(
            f"pair: expected one of {', '.join(known)} (or turned round); got {pair!r}"
        )
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
    """Finds the files of a corpus, in a folder or on its server.

    Args:
        corpus: `Corpus`.
        source_dir: folder that has the files, in the corpus's own folder or all together, or "".
        download_dir: where downloads go, and what is unpacked from archives.
    """

    corpus: Corpus
    source_dir: str
    download_dir: Path

    def all(self) -> TextFiles:
        """Every file; fetches and unpacks those that are not there."""
        train = tuple(self._pair(name) for name in self.corpus.train)
        return TextFiles(
            train,
            {split: self._pair(name) for split, name in self.corpus.evaluation.items()},
            dataclasses.replace(
                self.corpus.form, truecase_model=self._truecase_model(Path(train[0][0]).parent)
            ),
        )

    def _truecase_model(self, folder: Path) -> str:
        """The source side's, from the folder of the text; whoever has the text may lack it."""
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
        print_note(f"{missing}; without it, translate leaves the case of sources as it is")
        return ""

    def _pair(self, name: str) -> FilePair:
        source, target = (
            self._find(name.format(language=language)) for language in self.corpus.languages()
        )
        if source.parent != target.parent:  # perhaps of another pair of languages
            raise ValueError(f"expected both sides in one folder; got {source} and {target}")
        return str(source), str(target)

    def _find(self, name: str) -> Path:
        archive, _, member = name.rpartition(MEMBER)
        if not archive:
            return self._file(name)
        unpacked = self._in_source_dir(member)
        return unpacked or self._unpack(self._file(archive), member)

    def _in_source_dir(self, name: str) -> Path | None:
        """The file below `source_dir`: by its path on the server, else the only one of its name.

        It may have been packed, which its name then says.
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
        """The file of an archive, unpacked."""
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
            print_note(f"what is downloaded or unpacked goes to {self.download_dir}, and stays")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def _check_whole(archive: Path) -> None:
    """Reads an archive to its checksum, which `tarfile` does not come to."""
    if archive.suffix in (".gz", ".tgz"):
        with gzip.open(archive) as stream:
            while stream.read(1 << 20):
                pass


def _member(tar: tarfile.TarFile, archive: Path, name: str) -> tarfile.TarInfo:
    """The file of an archive by its path, else the only one that is called so in any folder."""
    files = [info for info in tar if info.isfile()]
    same_path = [info for info in files if PurePosixPath(info.name) == PurePosixPath(name)]
    plain = PurePosixPath(name).name
    found = same_path or [info for info in files if PurePosixPath(info.name).name == plain]
    if len(found) != 1:
        raise MissingMember(f"{archive}: expected one file {name} in it; there are {len(found)}")
    return found[0]


def prepare(name: str, options: CorpusOptions, url: str = "") -> tuple[Manifest, bool]:
    """Makes the data directory of a corpus unless it is there; see `prepare_text`.

    Args:
        name: of the corpus.
        options: `CorpusOptions`.
        url: replaces the server's address.
    """
    corpus = read_corpus(name, options.pair, url)
    downloads = Path(options.download_dir or f"{options.output_dir.rstrip('/')}.downloads")

    files = CorpusFiles(corpus, options.source_dir, downloads)
    return prepare_text(options, name, options.kept(), files.all)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Multi30kOptions(CorpusOptions):
    """Options of this command."""

    FREE: ClassVar[tuple[str, ...]] = (*CorpusOptions.FREE, "tokenised")  # the task's name says it

    tokenised: bool = option(
        False,
        "use the release's tokenised and lower-cased text, for word vocabularies",
        group="Files",
    )


def prepare_multi30k(options: Multi30kOptions) -> tuple[Manifest, bool]:
    """Makes the data directory unless it is there; see `prepare_text`."""
    return prepare("multi30k_tokenised" if options.tokenised else "multi30k", options)
