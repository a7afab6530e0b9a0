import itertools
import math

import numpy as np
import pytest
import sacrebleu
from sacrebleu.metrics.base import Metric
from sacrebleu.significance import PairedTest

from seq2seq_memattn.metrics import (
    FORMS,
    are_exact,
    bleu_by_length,
    compare_means,
    compare_systems,
    corpus_scores,
    ribes,
    smoothed_bleu,
    tokenised_bleu,
)
from seq2seq_memattn.text.form import FormedLines, TextForm
from tests.reference import bleu as reference


def random_lines(seed: int, count: int = 40) -> tuple[list[str], list[str]]:
    """Hypotheses with random errors, and their references; the last three have empty sides."""
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
    # Hypotheses longer than the references have no brevity penalty.
    longer = [f"{line} 9 9" for line in references]
    expected = reference.corpus_bleu(longer, references).score
    assert round(tokenised_bleu(longer, references).score, 2) == round(expected, 2)


@pytest.mark.parametrize(
    ("hypotheses", "references", "expected"),
    [
        (["1 2 3 4 5", ""], ["1 2 3 4 5", ""], 100.0),
        (["1 2 3 4", "5 6 7 8"], ["1 2 3 4", "5 6 7 8"], 100.0),
        (["1 2 3 4"], ["1 2 3 4 1 2 3 4"], 100 * np.exp(-1)),
        (["1 2 3"], ["1 2 3"], 0.0),  # there is no 4-gram
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


# Lines with case and punctuation for which the scores differ.
REFERENCES = ["The cat sat on the mat .", "It is raining , again !", "We don't know why."] * 3
SYSTEM = ["The cat sat on the carpet .", "it is raining , again !", "We do not know why."] * 3
BASELINE = ["A cat is on the mat .", "it rains again", "We don't know ."] * 3


def sacrebleu_metrics(lowercase: bool) -> dict[str, Metric]:
    return {
        "bleu": sacrebleu.BLEU(
            lowercase=lowercase, tokenize="none", smooth_method="none", force=True
        ),
        "standard_bleu": sacrebleu.BLEU(lowercase=lowercase),
        "chrf": sacrebleu.CHRF(lowercase=lowercase),
    }


@pytest.mark.parametrize("lowercase", [False, True])
def test_every_score_is_that_of_sacrebleu_with_its_signature(lowercase: bool) -> None:
    found = corpus_scores(FormedLines(SYSTEM), FormedLines(REFERENCES), lowercase)
    assert tuple(found) == tuple(FORMS)
    for name, metric in sacrebleu_metrics(lowercase).items():
        assert found[name].score == metric.corpus_score(SYSTEM, [REFERENCES]).score
        assert found[name].signature == str(metric.get_signature())
    assert len({round(score.score, 3) for score in found.values()}) == 3
    assert ("case:lc" in found["bleu"].signature) == lowercase
    assert "tok:13a" in found["standard_bleu"].signature
    assert found["bleu"] == tokenised_bleu(SYSTEM, REFERENCES, lowercase)


def test_standard_bleu_has_the_tokeniser_of_its_language() -> None:
    form = TextForm("en", "zh")
    lines = [FormedLines([f"我很喜欢{each}猫和狗。"], form) for each in ("大", "小")]
    found = corpus_scores(*lines)
    assert "tok:zh" in found["standard_bleu"].signature
    assert 0 < found["bleu"].score < 100 and 0 < found["standard_bleu"].score < 100
    compared = compare_systems(*lines, lines[1])["standard_bleu"]
    assert "tok:zh" in compared.signature
    assert compared.score == found["standard_bleu"].score < compared.baseline


def test_without_case_more_is_right() -> None:
    plain, lower = (
        corpus_scores(FormedLines(SYSTEM), FormedLines(REFERENCES), lowercase)
        for lowercase in (False, True)
    )
    for name in FORMS:
        assert lower[name].score > plain[name].score
    exact = are_exact(SYSTEM, REFERENCES)
    (group,) = bleu_by_length(SYSTEM, REFERENCES, exact, num_groups=1, lowercase=True)
    assert group["bleu"] == lower["bleu"].score


@pytest.mark.parametrize("lowercase", [False, True])
def test_the_comparison_has_the_intervals_and_p_values_of_sacrebleu(
    lowercase: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    found = compare_systems(*map(FormedLines, (SYSTEM, BASELINE, REFERENCES)), lowercase)
    assert tuple(found) == tuple(FORMS)
    for name, metric in sacrebleu_metrics(lowercase).items():
        systems = [("a", BASELINE), ("b", SYSTEM)]
        ours = found[name]
        for kind in ("bs", "ar"):
            _, (before, now) = PairedTest(systems, {"x": metric}, [REFERENCES], kind)()[1].values()
            assert (ours.baseline, ours.score) == (before.score, now.score)
            if kind == "bs":  # other resamples than ours
                assert (ours.baseline_ci, ours.ci) == pytest.approx((before.ci, now.ci), rel=0.1)
            else:
                assert ours.p_value == now.p_value
        for part in ("ar:10000", "bs:1000", "seed:12345"):
            assert part in ours.signature
        assert ours.baseline < ours.score
        assert ours.score == pytest.approx(
            corpus_scores(FormedLines(SYSTEM), FormedLines(REFERENCES), lowercase)[name].score,
            rel=1e-6,
        )
    assert compare_systems(*map(FormedLines, (SYSTEM, BASELINE, REFERENCES)), lowercase) == found


def test_smoothed_bleu_is_the_mean_of_smoothed_sentences(capfd: pytest.CaptureFixture[str]) -> None:
    # In "a b x d e", 4 of 5 words are right, 2 of 4 pairs, 0 of 3 triples, 0 of 2 quadruples.
    one = 100 * math.exp(1 - 6 / 5) * (4 / 5 * 3 / 5 * 1 / 4 * 1 / 3) ** 0.25
    found = smoothed_bleu(["a b x d e", "a"], ["a b c d e f", "a"])
    assert found.score == pytest.approx((one + 100) / 2)
    assert "smooth:add-k[1.00]" in found.signature
    assert capfd.readouterr() == ("", "")
    with pytest.raises(ValueError, match="at least one reference"):
        smoothed_bleu([], [])


def test_ribes_is_that_of_its_definition() -> None:
    # Four words in the order 3 4 1 2: 2 of their 6 pairs rise, so tau is (2 - 4) / 6. Scaled to
    # 0..1, that is 1 / 3. Every word is right and none is missing.
    found = ribes(FormedLines(["c d a b"]), FormedLines(["a b c d"]))
    assert found.score == pytest.approx(100 / 3)
    # Three of four words are right and in order; the reference of five gives exp(1 - 5 / 4).
    found = ribes(FormedLines(["a b x c"]), FormedLines(["a b c d e"]))
    assert found.score == pytest.approx(100 * (3 / 4) ** 0.25 * math.exp(-1 / 4) ** 0.1)
    two = ribes(FormedLines(["c d a b", "a b"]), FormedLines(["a b c d", "A b"]))
    lower = ribes(FormedLines(["c d a b", "a b"]), FormedLines(["a b c d", "A b"]), lowercase=True)
    assert two.score < lower.score == pytest.approx((100 / 3 + 100) / 2)
    assert "case:lc|alpha:0.25|beta:0.1|nltk:" in lower.signature
    with pytest.raises(ValueError, match="as many references"):
        ribes(FormedLines(["a"]), FormedLines(["a", "b"]))


def test_a_system_does_not_differ_from_itself() -> None:
    for one in compare_systems(*map(FormedLines, (SYSTEM, SYSTEM, REFERENCES))).values():
        assert one.p_value == pytest.approx(1.0)
        assert one.score == one.baseline


@pytest.mark.parametrize(("num_better", "least"), [(1, 1.0), (2, 0.5), (3, 0.25), (6, 1 / 32)])
def test_a_few_better_lines_prove_little(num_better: int, least: float) -> None:
    hypotheses = [f"a b c d e {i}" for i in range(200)]
    baseline = [f"a b c x e {i}" if i < num_better else line for i, line in enumerate(hypotheses)]
    for one in compare_systems(*map(FormedLines, (hypotheses, baseline, hypotheses))).values():
        assert one.p_value == pytest.approx(least, rel=0.05)


def test_lines_that_differ_only_in_case_prove_nothing_without_case() -> None:
    hypotheses = [f"a b c d e {i}" for i in range(200)]
    baseline = ["a b c x e 0", *(line.upper() for line in hypotheses[1:10]), *hypotheses[10:]]
    lines = (FormedLines(each) for each in (hypotheses, baseline, hypotheses))
    for one in compare_systems(*lines, lowercase=True).values():
        assert one.p_value == 1.0


def test_nearly_equal_systems_have_a_large_p_value() -> None:
    # Both make the same errors, except in one line. sacrebleu's bootstrap gives 0.42.
    hypotheses, references = random_lines(5, 200)
    system, baseline = [*hypotheses, *references], [*references, *hypotheses]
    baseline[-20] = references[-20]
    lines = map(FormedLines, (system, baseline, [*references, *references]))
    one = compare_systems(*lines)["bleu"]
    assert 0.8 < one.p_value < 1.0


def test_a_baseline_of_other_lines_is_refused() -> None:
    with pytest.raises(ValueError, match="as many references as hypotheses, 8; got 9"):
        compare_systems(*map(FormedLines, (SYSTEM, BASELINE[1:], REFERENCES)))


def test_means_of_seeds_are_compared_on_the_same_resampled_lines() -> None:
    seeds = [random_lines(seed, 30)[0] for seed in range(4)]
    references = [f"{line} 7 8 9 6" for line in random_lines(0, 30)[1]]
    lines = [[f"{line} 7 8 9 6" for line in seed] for seed in seeds]
    formed = [FormedLines(each) for each in lines]
    found = compare_means(formed[:1], formed[1:], FormedLines(references))

    def difference(chosen: np.ndarray) -> float:
        ours, *theirs = (
            reference.corpus_bleu([each[i] for i in chosen], [references[i] for i in chosen]).score
            for each in lines
        )
        return ours - float(np.mean(theirs))

    size = len(references)
    assert found.difference == pytest.approx(difference(np.arange(size)), abs=0.01)
    generator = np.random.default_rng(1)
    resampled = [difference(generator.integers(size, size=size)) for _ in range(1000)]
    low, high = np.percentile(resampled, (2.5, 97.5))
    width = high - low
    assert width > 5
    assert found.low == pytest.approx(low, abs=width / 10)
    assert found.high == pytest.approx(high, abs=width / 10)


def test_seeds_in_another_order_have_the_same_mean() -> None:
    seeds = [FormedLines(random_lines(seed)[0]) for seed in (0, 1)]
    references = FormedLines(random_lines(0)[1])
    found = compare_means(seeds, seeds[::-1], references)
    assert found == pytest.approx((0.0, 0.0, 0.0), abs=1e-9)


def test_means_may_ignore_case() -> None:
    lines = FormedLines(["A b c d e", "f g h i j"])
    lower = FormedLines([line.lower() for line in lines.tokenised])
    assert compare_means([lines], [lower], lower, lowercase=True).difference == 0.0
    assert compare_means([lines], [lower], lower).difference < -1


def test_means_of_other_lines_are_refused() -> None:
    system, baseline, references = map(FormedLines, (SYSTEM, BASELINE[1:], REFERENCES))
    with pytest.raises(ValueError, match="as many references as hypotheses, 8; got 9"):
        compare_means([system], [baseline], references)


def test_lines_may_be_exact_but_for_their_case() -> None:
    ours, theirs = ["A b", "c", "d"], ["a b", "c", "e"]
    assert are_exact(ours, theirs) == [False, True, False]
    assert are_exact(ours, theirs, lowercase=True) == [True, True, False]


def test_bleu_by_length_is_bleu_of_each_group() -> None:
    hypotheses, references = random_lines(3)
    groups = bleu_by_length(hypotheses, references, are_exact(hypotheses, references), num_groups=4)
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
    # References of the same length are in one group.
    assert len(groups) == 4
    assert all(a["longest"] < b["shortest"] for a, b in itertools.pairwise(groups))


def test_there_are_no_more_groups_than_lines() -> None:
    (group,) = bleu_by_length(["1 2 3 4"], ["1 2 3 4"], [False], num_groups=5)
    assert group["exact"] == 0.0
    assert group["lines"] == 1
    assert group["bleu"] == pytest.approx(100.0)
