from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from seq2seq_memattn.config import ModelConfig
from seq2seq_memattn.runs.directory import Run
from seq2seq_memattn.runs.translator import SourceReader, Translator
from seq2seq_memattn.search.options import Sampling, SearchOptions, samples
from seq2seq_memattn.text.form import TextForm
from seq2seq_memattn.vocabulary import SymbolVocabulary
from tests.search.models import small_model


def reader(limit: int | None, **config: Any) -> SourceReader:
    longest = ModelConfig(attention="k_memory:4", **config).longest_source
    model = SimpleNamespace(longest_source=longest)
    run: Any = SimpleNamespace(
        directory=Path("run"), source_vocabulary=SymbolVocabulary("123456789"), model=model
    )
    return SourceReader(run, limit)


WITH_POSITIONS = {"position_encoding": "masked", "max_source_length": 7}


@pytest.mark.parametrize(
    ("limit", "config", "expected"),
    [
        (None, {}, None),
        (5, {}, 5),
        (None, {"max_source_length": 7}, None),  # this model ignores the option
        (None, WITH_POSITIONS, 7),
        (5, WITH_POSITIONS, 5),
        (21, WITH_POSITIONS, 7),  # positions beyond 7 have no encoding
    ],
)
def test_sources_are_cut_at_the_smaller_limit(
    limit: int | None, config: dict[str, Any], expected: int | None
) -> None:
    read = reader(limit, **config)
    assert read.limit == expected
    lines = ["1 2", " ".join(["3"] * 30)]
    lengths = [len(source) for source in read(lines, "source")]
    assert lengths == [2, 30 if expected is None else expected - 1]
    assert read.num_cut == (expected is not None)


def test_every_line_needs_a_prefix_if_one_has_one() -> None:
    vocabulary = SymbolVocabulary("abc")
    run = Run(Path("run"), small_model(), vocabulary, vocabulary, 1, {}, TextForm(), [])
    translate = Translator(run, SearchOptions(2))
    for prefixes in (["a"], ["a", "b", ""]):
        message = f"begin: expected as many lines as in, 2; got {len(prefixes)}"
        with pytest.raises(ValueError, match=message):
            translate(["a b", "c"], 2, "in", prefixes=prefixes, prefixes_name="begin")


def test_a_line_has_the_same_samples_in_whatever_part_of_a_file_it_comes() -> None:
    sources, targets = SymbolVocabulary("vwxyz"), SymbolVocabulary("abc")
    run = Run(Path("run"), small_model(), sources, targets, 1, {"update": 1}, TextForm(), [])
    translate = Translator(run, samples(4, Sampling()), seed=3)
    lines = ["x y x", "", "v w x y z z y", "x y x"]
    together = [[one.text for one in found] for found in translate(lines, 4)]
    apart = [
        [one.text for one in found]
        for part, first in ((lines[:1], 1), (lines[1:], 2))
        for found in translate(part, 2, first_line=first)
    ]
    assert apart == together
    assert together[0] != together[3]  # equal lines get different samples
    assert together[1] == [""] * 4
