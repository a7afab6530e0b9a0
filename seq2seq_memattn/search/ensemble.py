"""`Ensemble`: several models that search together."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from keras import ops

from seq2seq_memattn.checks import check_choice
from seq2seq_memattn.compute.precision import at_least_float32
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.search.prepared import PreparedModel
from seq2seq_memattn.search.searchable import Searchable, refuse_copy

MEANS = ("probabilities", "log_probabilities")


class Ensemble:
    """Several models that search together: `beam_search(Ensemble([first, second]), source)`.

    At each step, the probability of a token is the mean of the models' probabilities. All models
    continue the same hypotheses. The models may differ in everything but their vocabularies, for
    example in their training runs, attentions or sizes. A search takes at most as long as separate
    searches with each model, one after the other.

    Args:
        models: two or more, each a `Seq2Seq` or a `Searchable`.
        mean: "probabilities" (the arithmetic mean), or "log_probabilities" (the geometric mean,
            divided by its sum over the vocabulary).

    Raises:
        ValueError: if there are fewer than two models, if one is neither a `Seq2Seq` nor a
            `Searchable`, if the sizes of their vocabularies or their ids of padding, start and end
            differ, or if `mean` is unknown.

    Example:
    >>> import numpy as np
    >>> from seq2seq_memattn import Ensemble, ModelConfig, Seq2Seq, beam_search
    >>> sizes = {"source_vocab_size": 9, "target_vocab_size": 9}
    >>> models = [Seq2Seq(ModelConfig(attention=name, **sizes)) for name in ("bahdanau", "none")]
    >>> found = beam_search(Ensemble(models), np.array([[5, 3, 2]]), beam_size=4, max_length=6)
    >>> tuple(found.tokens.shape)
    (1, 1, 6)
    """

    __reduce_ex__ = refuse_copy

    def __init__(self, models: Sequence[Any], mean: str = "probabilities") -> None:
        if not isinstance(models, Sequence):
            raise ValueError(f"`models`: expected a list of models; got {type(models).__name__}.")
        self.models = list(models)
        for model in self.models:
            if not isinstance(model, (Seq2Seq, Searchable)):
                raise ValueError(
                    "`models`: expected each to be a `Seq2Seq` or a `Searchable`; got "
                    f"{type(model).__name__}."
                )
        if len(self.models) < 2:
            raise ValueError(f"`models`: expected two or more; got {len(self.models)}.")
        check_choice("mean", mean, MEANS)
        self._mean = mean
        for name in ("source_vocab_size", "vocab_size", "num_tokens", "pad_id"):
            _check_same(name, [getattr(model, name) for model in self.models])
        first, *others = self.models
        for number, model in enumerate(others, 2):
            tokens = np.arange(first.num_tokens)
            if not np.array_equal(first.to_ids(tokens), model.to_ids(tokens)):
                raise ValueError(
                    "`models`: expected the same ids of padding, start and end token; those of "
                    f"model {number} differ from those of model 1."
                )
        self.vocab_size, self.num_tokens = first.vocab_size, first.num_tokens
        self.pad_id = first.pad_id
        sizes = [model.source_vocab_size for model in self.models]
        self.source_vocab_size = min((size for size in sizes if size is not None), default=None)

    @property
    def mean(self) -> str:
        """See the argument. It cannot be changed: compiled searches would not notice."""
        return self._mean

    @property
    def longest_source(self) -> int | None:
        """The maximum number of tokens in a source, end token included; None: no limit."""
        limits = [model.longest_source for model in self.models]
        return min((limit for limit in limits if limit is not None), default=None)

    @property
    def variables(self) -> list[Any]:
        """The variables of all models. A variable that models share is listed once."""
        return list({id(v): v for model in self.models for v in model.variables}.values())

    def count_params(self) -> int:
        """The number of weights of all models."""
        return sum(model.count_params() for model in self.models)

    def to_tokens(self, ids: Any) -> Any:
        """Search's tokens, see `Preparable`, for ids: the inverse of `to_ids`."""
        return self.models[0].to_tokens(ids)

    def to_ids(self, tokens: Any) -> Any:
        """The ids of search's tokens."""
        return self.models[0].to_ids(tokens)


def _check_same(name: str, values: Sequence[int | None]) -> None:
    """Raises ValueError if an attribute of models differs; None is unknown, and fits any value."""
    known = [(number, value) for number, value in enumerate(values, 1) if value is not None]
    for number, value in known[1:]:
        first, expected = known[0]
        if value != expected:
            raise ValueError(
                f"`models`: expected the same vocabularies; `{name}` is {expected} in model "
                f"{first} and {value} in model {number}."
            )


def members(model: Any) -> list[Any]:
    """The models of an ensemble, or the one model."""
    return model.models if isinstance(model, Ensemble) else [model]


class PreparedEnsemble:
    """An `Ensemble`, prepared for search; see `SearchedModel` and `AlignedModel`.

    Memory, state and scores are tuples with those of each model.

    Args:
        model: `Ensemble`.
        parts: its models, prepared.
    """

    def __init__(self, model: Ensemble, parts: Sequence[PreparedModel]) -> None:
        self.model = model
        self._parts = parts

    def start(self, source: Any, num_queries: int) -> tuple[Any, Any]:
        """See `SearchedModel`."""
        starts = [part.start(source, num_queries) for part in self._parts]
        return tuple(memory for memory, _ in starts), tuple(state for _, state in starts)

    def step(self, tokens: Any, memory: Any, state: Any) -> tuple[Any, Any, Any]:
        """See `SearchedModel`.

        The logits are logarithms of the arithmetic or geometric mean of the models' probabilities.
        """
        steps = [
            part.step(tokens, *own) for part, *own in zip(self._parts, memory, state, strict=True)
        ]
        log_probs = [ops.log_softmax(at_least_float32(logits), axis=-1) for logits, *_ in steps]
        scores, states = (tuple(step[place] for step in steps) for place in (1, 2))
        if self.model.mean == "probabilities":
            mean = ops.logaddexp(log_probs[0], log_probs[1])
            for each in log_probs[2:]:
                mean = ops.logaddexp(mean, each)
            return mean - np.log(len(log_probs)), scores, states
        return sum(log_probs) / len(log_probs), scores, states

    def without_sources(self, memory: Any) -> Any:
        """See `PreparedModel.without_sources`."""
        return tuple(
            part.without_sources(own) for part, own in zip(self._parts, memory, strict=True)
        )

    def alignment(self, scores: Any, memory: Any) -> Any:
        """The mean of the models' alignments: [batch, queries, source_length].

        Models without attention have an alignment of zeros and do not count.
        """
        each = [ops.cast(array, "float32") for array in self._of_each("alignment", scores, memory)]
        count = sum(ops.cast(ops.any(x != 0.0, axis=2, keepdims=True), "float32") for x in each)
        return sum(each) / ops.maximum(count, 1.0)

    def positions_scored(self, scores: Any, memory: Any) -> Any:
        """Number of encoder states scored by all models together: float32 [batch, queries]."""
        return sum(self._of_each("positions_scored", scores, memory))

    def _of_each(self, method: str, scores: Any, memory: Any) -> list[Any]:
        parts = zip(self._parts, scores, memory, strict=True)
        return [getattr(part, method)(*own) for part, *own in parts]
