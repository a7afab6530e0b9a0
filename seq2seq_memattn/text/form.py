"""The form of a corpus's text, and conversion between this form and plain text."""

import dataclasses
import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Self

from seq2seq_memattn.checks import check_file_name
from seq2seq_memattn.config import Options, option
from seq2seq_memattn.packages import needed

TOKENISED_MARKS = (" @-@ ", "&apos;", "&quot;", "&#124;", "&#91;", "&#93;")
# Languages written without spaces between words. Moses' tokeniser does not find their words.
UNSPACED_LANGUAGES = frozenset({"ja", "km", "lo", "my", "th", "zh"})
# A space between letters of Thai, Lao, Burmese or Khmer. Moses' detokeniser joins only Chinese and
# Japanese.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_SPACES = re.compile(rf"(?<=[{_UNSPACED}]) (?=[{_UNSPACED}])")


@dataclasses.dataclass(frozen=True)
class TextForm(Options):
    """The form of a corpus's text: how it was processed before this project read it.

    The package sacremoses does Moses' tokenisation and truecasing.
    """

    source_language: str = option(
        "", "language code of the source, such as en; selects tokenisers", group="Form of the text"
    )
    target_language: str = option(
        "", "language code of the target, such as de; selects tokenisers", group="Form of the text"
    )
    is_tokenised: bool = option(
        False,
        "the text was tokenised by Moses' tokenizer.perl; Chinese or Japanese: divided into words",
        group="Form of the text",
    )
    splits_hyphens: bool = option(
        False,
        "the tokenizer was called with -a, which writes a hyphen in a word as @-@",
        group="Form of the text",
    )
    has_escapes: bool = option(
        True,
        "the tokenizer was called without -no-escape and wrote an ampersand as &amp;",
        group="Form of the text",
    )
    is_truecased: bool = option(
        False,
        "the text was truecased by Moses' truecase.perl",
        group="Form of the text",
    )
    truecase_model: str = option(
        "",
        "truecase.perl's model file for sources; in a manifest, name of a file beside the manifest",
        group="Form of the text",
    )
    is_lowercased: bool = option(False, "the text was lower-cased", group="Form of the text")
    is_lowercased_first: bool = option(
        False,
        "if lower-cased and tokenised: the text was lower-cased before the tokenizer was called; "
        "the dot after a sentence inside a line then stays at its word",
        group="Form of the text",
    )
    has_normalised_punctuation: bool = option(
        True,
        "if tokenised: normalize-punctuation.perl was called before the tokenizer",
        group="Form of the text",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.truecase_model and not self.is_truecased:
            raise ValueError("truecase_model: expected only with is_truecased")
        if self.is_lowercased_first and not self.is_lowercased:
            raise ValueError("is_lowercased_first: expected only with is_lowercased")

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Makes the form from a dict, whose `truecase_model` must be a name without directories."""
        if values.get("truecase_model", ""):
            check_file_name("truecase_model", values["truecase_model"])
        return super().from_dict(values)

    @property
    def is_as_written(self) -> bool:
        """Whether the text is plain text, as people write it."""
        return not (self.is_tokenised or self.is_truecased or self.is_lowercased)

    @property
    def tokenises_sources(self) -> bool:
        """Whether `as_trained` tokenises sources.

        Sources in a language written without spaces are not tokenised: their words must already
        have spaces between them.
        """
        return self._is_tokenised_in(self._source)

    @property
    def _source(self) -> str:
        return _without_region(self.source_language)

    @property
    def _target(self) -> str:
        return _without_region(self.target_language)

    def _is_tokenised_in(self, language: str) -> bool:
        return self.is_tokenised and language not in UNSPACED_LANGUAGES

    def as_trained(self, sources: Sequence[str], folder: Path) -> list[str]:
        """Converts plain source lines to the form of the corpus.

        Args:
            sources: lines.
            folder: directory of the truecase model. Without a model, case changes only if the
                corpus is lower-cased.
        """
        return self.source_converter(folder)(sources)

    def source_converter(self, folder: Path) -> Callable[[Sequence[str]], list[str]]:
        """A function that does what `as_trained` does, but reads the truecase model only once."""
        steps = self._tokenising(self._source)
        if self.truecase_model:
            steps.append(_truecaser(folder / self.truecase_model))
        steps = self._with_lower_case(steps)
        return lambda sources: _changed(sources, steps)

    def _tokenising(self, language: str) -> list[Callable[[str], str]]:
        """What was done to plain lines of a language to tokenise them; [] if nothing was."""
        if not self._is_tokenised_in(language):
            return []
        tokenise = _tokeniser(language, self.splits_hyphens, self.has_escapes)
        return [_normaliser(language), tokenise] if self.has_normalised_punctuation else [tokenise]

    def _with_lower_case(self, steps: list[Callable[[str], str]]) -> list[Callable[[str], str]]:
        """The steps, and lower-casing where it belongs."""
        if not self.is_lowercased:
            return steps
        return [str.lower, *steps] if self.is_lowercased_first else [*steps, str.lower]

    def beginnings_as_trained(self, beginnings: Sequence[str]) -> list[str]:
        """Converts beginnings of target lines from plain text to the form of the corpus.

        Their case changes only for lower-cased corpora: there is no truecase model for targets.
        """
        return _changed(beginnings, self._with_lower_case(self._tokenising(self._target)))

    def tokenised(self, targets: Sequence[str]) -> list[str]:
        """Target lines with spaces between their tokens, as multi-bleu.perl expects them.

        Lines that are tokenised already, or whose language is not known, stay as they are. In
        languages written without spaces, every character is a token.
        """
        if self.is_tokenised or not self._target:
            return list(targets)
        if self._target in UNSPACED_LANGUAGES:
            return [" ".join("".join(line.split())) for line in targets]
        return _changed(targets, [_tokeniser(self._target)])

    @property
    def standard_tokeniser(self) -> str:
        """The tokeniser of sacrebleu for `readable` lines: its default, if that can be used."""
        if self._target not in UNSPACED_LANGUAGES:
            return "13a"
        return "zh" if self._target == "zh" else "char"

    def readable(self, targets: Sequence[str]) -> list[str]:
        """Target lines as plain text, but lower-cased text stays lower-cased."""
        steps = [_detruecaser()] if self.is_truecased else []
        if self.is_tokenised:
            steps.append(_detokeniser(self._target, self.has_escapes))
        return _changed(targets, steps)


def _without_region(code: str) -> str:
    """The language of a code, without region or script: zh for zh-CN."""
    return re.split("[-_]", code)[0].lower()


def _changed(lines: Sequence[str], steps: Sequence[Callable[[str], str]]) -> list[str]:
    """Lines after each step."""
    changed = list(lines)
    for step in steps:
        changed = [step(line) for line in changed]
    return changed


AS_GIVEN = TextForm()


def looks_tokenised(lines: Sequence[str]) -> bool:
    """Whether any line has a mark that only Moses' tokenizer.perl writes."""
    return any(mark in line for line in lines for mark in TOKENISED_MARKS)


class FormedLines:
    """Target lines in the two forms that scores need; each form is computed at first use and kept.

    Args:
        lines: target lines, str.
        form: `TextForm` of the lines. With the default, no line is changed.

    Attributes:
        lines: the lines as given.
        form: as given.
    """

    def __init__(self, lines: Sequence[str], form: TextForm = AS_GIVEN) -> None:
        self.lines = list(lines)
        self.form = form

    def __len__(self) -> int:
        return len(self.lines)

    @cached_property
    def tokenised(self) -> list[str]:
        """As `TextForm.tokenised`."""
        return self.form.tokenised(self.lines)

    @cached_property
    def readable(self) -> list[str]:
        """As `TextForm.readable`."""
        return self.form.readable(self.lines)


@lru_cache
def _tokeniser(
    language: str, splits_hyphens: bool = False, escapes: bool = False
) -> Callable[[str], str]:
    with needed():
        from sacremoses import MosesTokenizer

    tokeniser: Any = MosesTokenizer(language or "en")
    return lambda line: tokeniser.tokenize(
        line, aggressive_dash_splits=splits_hyphens, return_str=True, escape=escapes
    )


@lru_cache
def _normaliser(language: str) -> Callable[[str], str]:
    with needed():
        from sacremoses import MosesPunctNormalizer

    normaliser: Any = MosesPunctNormalizer(language or "en")
    return normaliser.normalize


def check_truecase_model(path: Path) -> None:
    """Raises ValueError if a file is not a model of Moses' truecase.perl."""
    try:
        _truecaser(path)
    except ValueError as error:
        raise ValueError(f"{path}: expected a model of truecase.perl; {error}") from None


def _truecaser(model_file: Path) -> Callable[[str], str]:
    return _read_truecaser(str(model_file), os.stat(model_file).st_mtime_ns)


@lru_cache(maxsize=4)  # models are large, and a server may read many
def _read_truecaser(model_file: str, changed: int) -> Callable[[str], str]:
    del changed  # part of the cache key, so that a replaced file is read again
    with needed():
        from sacremoses import MosesTruecaser

    MosesTruecaser.MAX_MODEL_ENTRIES = sys.maxsize  # models of large corpora may exceed the default
    truecaser: Any = MosesTruecaser(model_file)
    if not truecaser.model["best"]:
        raise ValueError("it has no words")
    # As in truecase.perl: inside a sentence, a word keeps its case if the model knows the word in
    # that case.
    # sacremoses refuses line breaks, which a text sent to a server may have.
    return lambda line: truecaser.truecase(line.replace("\n", " "), return_str=True, use_known=True)


@lru_cache
def _detokeniser(language: str, has_escapes: bool) -> Callable[[str], str]:
    with needed():
        from sacremoses import MosesDetokenizer

    detokeniser: Any = MosesDetokenizer(language or "en")
    standard: Any = MosesDetokenizer("en")

    def detokenise(line: str) -> str:
        tokens = line.split(" ")
        try:
            text = detokeniser.detokenize(tokens, unescape=has_escapes)
        except TypeError:  # sacremoses fails at Czech apostrophes before "- li" or "- mail"
            text = standard.detokenize(tokens, unescape=has_escapes)
        return _SPACES.sub("", text) if language in UNSPACED_LANGUAGES else text

    return detokenise


@lru_cache
def _detruecaser() -> Callable[[str], str]:
    with needed():
        from sacremoses import MosesDetruecaser

    detruecaser: Any = MosesDetruecaser()
    return lambda line: detruecaser.detruecase(line, return_str=True)
