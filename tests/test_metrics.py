import numpy as np
import pytest

from seq2seq_memattn.metrics import bleu_by_length, tokenised_bleu
from tests.reference import bleu as reference


def random_lines(seed: int, count: int = 40) -> tuple[list[str], list[str]]:
    """What a poor copier makes of references, and these; the last three have empty sides."""
    generator = np.random.default_rng(seed)
    hypotheses, references = [], []
    for _ in range(count):
        tokens = generator.integers(5, size=generator.integers(0, 14))
        changed = np.where(generator.random(len(tokens)) < 0.15, 5, tokens)
        kept = changed[generator.random(len(tokens)) < generator.choice([0.0, 0.8, 1.0, 1.0])]
        references.append(" ".join(map(str, tokens)))
        hypotheses.append(" ".join(map(str, kept)))
    return [*hypotheses, "", "", "1 2"], [*references, "", "1 2 3", ""]


@pytest.mark.parametrize("seed", range(8))
def test_bleu_equals_the_definition_of_multi_bleu_to_two_decimals(seed: int) -> None:
    hypotheses, references = random_lines(seed)
    expected = reference.corpus_bleu(hypotheses, references).score
    assert 5 < expected < 95
    assert round(tokenised_bleu(hypotheses, references).score, 2) == round(expected, 2)
    # More tokens than the references have: no brevity penalty.
    longer = [f"{line} 9 9" for line in references]
    expected = reference.corpus_bleu(longer, references).score
    assert round(tokenised_bleu(longer, references).score, 2) == round(expected, 2)


@pytest.mark.parametrize(
    ("hypotheses", "references", "expected"),
    [
        (["1 2 3 4 5", ""], ["1 2 3 4 5", ""], 100.0),
        (["1 2 3 4", "5 6 7 8"], ["1 2 3 4", "5 6 7 8"], 100.0),
        (["1 2 3 4"], ["1 2 3 4 1 2 3 4"], 100 * np.exp(-1)),
        (["1 2 3"], ["1 2 3"], 0.0),  # no 4-gram
        (["", ""], ["1 2 3 4", ""], 0.0),
        (["1 2 3 4"], [""], 0.0),
        ([""], [""], 0.0),
    ],
)
def test_bleu_by_hand(hypotheses: list[str], references: list[str], expected: float) -> None:
    assert tokenised_bleu(hypotheses, references).score == pytest.approx(expected, abs=1e-9)
    assert reference.corpus_bleu(hypotheses, references).score == pytest.approx(expected, abs=1e-9)


def test_tokens_are_taken_as_they_stand() -> None:
    same = ["A b , c d.", "x-y & z w v"]
    assert tokenised_bleu(same, same).score == pytest.approx(100.0)
    assert tokenised_bleu(["a b c d e f"], ["A b c d e f"]).score < 100
    assert tokenised_bleu(["a b c d e f."], ["a b c d e f ."]).score < 100


def test_the_signature_says_how_it_was_computed() -> None:
    signature = tokenised_bleu(*random_lines(0)).signature
    assert "tok:none" in signature
    assert "smooth:none" in signature
    assert "case:mixed" in signature
    assert "version:" in signature


@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        (["1"], ["1", "2"], "expected as many references as hypotheses, 1; got 2"),
        ([], [], "expected at least one reference; got none"),
    ],
)
def test_lines_that_do_not_fit_are_refused(
    hypotheses: list[str], references: list[str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        tokenised_bleu(hypotheses, references)


def test_bleu_by_length_is_bleu_of_each_group() -> None:
    hypotheses, references = random_lines(3)
    groups = bleu_by_length(hypotheses, references, num_groups=4)
    lengths = [len(line.split()) for line in references]
    order = sorted(range(43), key=lambda i: lengths[i])
    first = 0
    for group in groups:
        chosen = order[first : first + int(group["lines"])]
        first += len(chosen)
        ours, theirs = [hypotheses[i] for i in chosen], [references[i] for i in chosen]
        assert group["shortest"] == min(lengths[i] for i in chosen)
        assert group["longest"] == max(lengths[i] for i in chosen)
        assert group["exact"] == np.mean([a == b for a, b in zip(ours, theirs, strict=True)])
        expected = reference.corpus_bleu(ours, theirs).score
        assert group["bleu"] == pytest.approx(expected, abs=5e-3)
    assert first == 43
    assert [group["lines"] for group in groups] == [10, 11, 11, 11]


def test_there_are_no_more_groups_than_lines() -> None:
    (group,) = bleu_by_length(["1 2 3 4"], ["1 2 3 4"], num_groups=5)
    assert group["lines"] == 1
    assert group["bleu"] == pytest.approx(100.0)
