"""The options of an exported model, which are fixed in its graphs."""

import dataclasses
from typing import Any

from seq2seq_memattn.checks import check_int, plain_ids
from seq2seq_memattn.search.aligned_models import check_coverage
from seq2seq_memattn.search.beam import banned_tokens
from seq2seq_memattn.search.options import Lengths, Sampling, SearchOptions, options_of

# The inputs of each signature: strings, except for the seed.
INPUTS = {
    "serving_default": ("text",),
    "align": ("text",),
    "score": ("text", "translation"),
    "complete": ("text", "prefix"),
    "sample": ("text", "seed"),
}


def default_n_best(beam_size: int) -> int:
    """The number of translations of each text that a model returns by default."""
    return min(ExportOptions.n_best, beam_size)


@dataclasses.dataclass(frozen=True)
class ExportOptions:
    """Options of search in an exported model; see `beam_search`, `Lengths` and `sample`.

    Fields:
        max_source_length: int or None. See `SourceReader`.
        num_samples: int. Translations that the signature `sample` draws; 0: no such signature.
        banned: ids that are never written.
        prefix: bool. Whether the model has the signature `complete`.

    Raises:
        ValueError: if an option has the wrong type or is out of range.
    """

    beam_size: int = 10
    n_best: int = 5
    length_penalty: float = 0.0
    max_length: int | None = None
    max_source_length: int | None = None
    num_samples: int = 0
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    length_reward: float = 0.0
    coverage_penalty: float = 0.0
    min_length_ratio: float | None = None
    max_length_ratio: float | None = None
    no_repeat_ngram: int = 0
    banned: tuple[int, ...] = ()
    prefix: bool = False

    def __post_init__(self) -> None:
        if self.max_source_length is not None:
            check_int("max_source_length", self.max_source_length)
        check_int("num_samples", self.num_samples, least=0)
        if not isinstance(self.prefix, bool):
            raise ValueError(f"`prefix` must be True or False; got {self.prefix!r}.")
        # Plain numbers, as JSON needs them.
        object.__setattr__(self, "banned", plain_ids("banned", self.banned))
        # Making these records checks the other options.
        _ = self.lengths, options_of(self, (), self.n_best), self._sampling

    @property
    def lengths(self) -> Lengths:
        """How long translations may be."""
        return Lengths(self.max_length, 0, self.max_length_ratio, self.min_length_ratio)

    def search(self, model: Any) -> SearchOptions:
        """The options of beam search with a model.

        Raises:
            ValueError: if they do not fit the model.
        """
        if self.coverage_penalty:
            check_coverage(model)
        return options_of(self, banned_tokens(model, self.banned), self.n_best)

    def samples(self, model: Any) -> SearchOptions:
        """The options of the signature `sample` of a model."""
        banned = banned_tokens(model, self.banned)
        return options_of(self, banned, self.num_samples, self._sampling)

    @property
    def _sampling(self) -> Sampling:
        return Sampling(self.temperature, self.top_k, self.top_p)

    @property
    def signatures(self) -> dict[str, tuple[str, ...]]:
        """The names of the inputs of each signature, by name of the signature."""
        left_out = {"sample"} if not self.num_samples else set()
        if not self.prefix:
            left_out.add("complete")
        return {name: inputs for name, inputs in INPUTS.items() if name not in left_out}
