"""The form that a corpus's text has, and the way from it to text as people write it, and back."""

import dataclasses
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any

from seq2seq_memattn.config import Options, option


@dataclasses.dataclass(frozen=True)
class TextForm(Options):
    """What was done to the text of a corpus before this project got it.

    Moses' tokenisation and truecasing are those of sacremoses.
    """

    source_language: str = option("", "code of the source's language, such as en")
    target_language: str = option("", "code of the target's language, such as de")
    is_tokenised: bool = option(
        False, "Moses' tokenizer.perl separated words and punctuation, with or without escapes"
    )
    is_truecased: bool = option(
        False, "Moses' truecase.perl gave first words the case that they have inside sentences"
    )

    def tokenised(self, targets: Sequence[str]) -> list[str]:
        """Lines of the target side with their tokens between spaces, as multi-bleu.perl wants them.

        Lines that are so already, or whose language is not known, stay as they are.
        """
        if self.is_tokenised or not self.target_language:
            return list(targets)
        tokenise = _tokeniser(self.target_language)
        return [tokenise(line) for line in targets]

    def readable(self, targets: Sequence[str]) -> list[str]:
        """Lines of the target side as people write them."""
        lines = list(targets)
        if self.is_truecased:
            detruecase = _detruecaser()
            lines = [detruecase(line) for line in lines]
        if self.is_tokenised:
            detokenise = _detokeniser(self.target_language)
            lines = [detokenise(line) for line in lines]
        return lines


AS_GIVEN = TextForm()


class FormedLines:
    """Lines of the target side in the forms that scores are computed from, each made once.

    Args:
        lines: str each.
        form: `TextForm` that they have; the default changes nothing.

    Attributes:
        lines: as they came.
    """

    def __init__(self, lines: Sequence[str], form: TextForm = AS_GIVEN) -> None:
        self.lines = list(lines)
        self._form = form

    def __len__(self) -> int:
        return len(self.lines)

    @cached_property
    def tokenised(self) -> list[str]:
        """As `TextForm.tokenised`."""
        return self._form.tokenised(self.lines)

    @cached_property
    def readable(self) -> list[str]:
        """As `TextForm.readable`."""
        return self._form.readable(self.lines)


@lru_cache
def _tokeniser(language: str) -> Callable[[str], str]:
    from sacremoses import MosesTokenizer

    tokeniser: Any = MosesTokenizer(language)
    return lambda line: tokeniser.tokenize(line, return_str=True, escape=False)


@lru_cache
def _detokeniser(language: str) -> Callable[[str], str]:
    from sacremoses import MosesDetokenizer

    detokeniser: Any = MosesDetokenizer(language or "en")
    return lambda line: detokeniser.detokenize(line.split(" "))


@lru_cache
def _detruecaser() -> Callable[[str], str]:
    from sacremoses import MosesDetruecaser

    detruecaser: Any = MosesDetruecaser()
    return lambda line: detruecaser.detruecase(line, return_str=True)
