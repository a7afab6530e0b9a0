"""Translation: the figures of Britz et al. (2017), and their findings compared with ours."""

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from experiments.reproduction import significance
from experiments.reproduction.claims import (
    IF_LONG,
    MARGIN,
    Claim,
    from_gains,
    from_gap,
    if_long,
    made_by,
    several,
    span,
)
from experiments.reproduction.pages import markdown_table, prose
from experiments.reproduction.results import Result, Results

# The paper's validation and test BLEU by pair and row. English-Turkish has no test score.
PAPER: dict[str, dict[str, tuple[float, ...]]] = {
    "en_cs": {
        "k32": (19.20, 19.37),
        "k64": (19.63, 19.65),
        "k32_pe": (19.35, 19.45),
        "k64_pe": (19.73, 20.36),
        "bahdanau": (18.61, 19.19),
    },
    "en_de": {
        "k32": (26.20, 28.82),
        "k64": (26.39, 29.53),
        "k32_pe": (26.22, 29.53),
        "k64_pe": (27.31, 30.61),
        "bahdanau": (28.13, 30.99),
    },
    "en_fi": {
        "k32": (15.90, 15.87),
        "k64": (16.35, 16.49),
        "k32_pe": (16.31, 15.86),
        "k64_pe": (16.91, 17.03),
        "bahdanau": (17.16, 17.34),
    },
    "en_tr": {
        "k32": (12.94,),
        "k64": (13.06,),
        "k32_pe": (12.97,),
        "k64_pe": (13.25,),
        "bahdanau": (13.76,),
    },
}
PAPER_UPDATES = 1_000_000
MULTI30K = "multi30k_en_de"
CORPORA = {MULTI30K: "Multi30k", "wmt_news_en_de": "news"}
# Corpora by which findings are judged. News is not one of them: no row learned to translate it.
JUDGED = (MULTI30K, *(f"wmt17_{pair}" for pair in PAPER))
AHEAD_RULE = (
    f"Reproduced if the mean gain is above {MARGIN:g} BLEU divided by the square root of the "
    "number of pairs of trainings, contradicted if it is as far below 0, otherwise undecided. "
    f"{IF_LONG} News is left out, because every row is below 10 BLEU there."
)


def claims(found: Results) -> list[Claim]:
    """The claims of Table 2, judged by test BLEU."""
    return [
        _near_attention(found),
        _ahead("K = 64 is ahead of K = 32", (("k64", "k32"), ("k64_pe", "k32_pe")), found),
        _ahead("position encodings help", (("k32_pe", "k32"), ("k64_pe", "k64")), found),
    ]


def seeds_of(found: Results, name: str) -> list[Result]:
    """The results of a row with all its seeds."""
    return [result for result in found if result["name"].partition("_seed")[0] == name]


def test_score(result: Result) -> float:
    """Tokenised BLEU on the last test, the score for comparing rows."""
    *_, last = result["tests"].values()
    return float(last["bleu"])


def _mean(results: Results) -> float:
    return statistics.mean(map(test_score, results))


class _Compared(NamedTuple):
    """Two models on each corpus that has both.

    Fields:
        gains: differences of the first model from the second in mean test BLEU, by corpus.
        pairs: pairs of trainings.
        rows: all results of both models.
    """

    gains: dict[str, float]
    pairs: int
    rows: list[Result]


def _compare(found: Results, name: str, over: str) -> _Compared:
    gains, pairs, rows = {}, 0, []
    for corpus in JUDGED:
        ours, others = (seeds_of(found, f"{corpus}_{one}") for one in (name, over))
        if ours and others:
            gains[corpus] = _mean(ours) - _mean(others)
            pairs += min(len(ours), len(others))
            rows += [*ours, *others]
    return _Compared(gains, pairs, rows)


def _paper_gains(name: str, over: str) -> list[float]:
    """The paper's gains of one row over another in test BLEU, by pair of languages."""
    tested = (rows for rows in PAPER.values() if len(rows[name]) > 1)
    return [rows[name][1] - rows[over][1] for rows in tested]


def _near_attention(found: Results) -> Claim:
    paper = _paper_gains("k64", "bahdanau")
    claim = Claim(
        "K = 64 is close to Att, test BLEU",
        f"{span(paper, '+.2f')} in {len(paper)} pairs",
        "The bound is the paper's largest gap. Reproduced if our mean gap is smaller than the "
        f"bound by more than {MARGIN:g} BLEU divided by the square root of the number of pairs of "
        f"trainings; not reproduced if it is larger by as much; otherwise undecided. {IF_LONG} "
        "News is left out, because every row is below 10 BLEU there.",
    )
    compared = _compare(found, "k64", "bahdanau")
    if not compared.rows:
        return claim
    verdict = from_gap(list(compared.gains.values()), min(paper), compared.pairs)
    verdict = if_long(verdict, compared.rows, PAPER_UPDATES)
    here = several(list(compared.gains.values()), "+.2f")
    return claim.judged(f"{here}, mean of seeds", verdict, made_by(compared.rows))


def _ahead(what: str, models: Sequence[tuple[str, str]], found: Results) -> Claim:
    """Judges whether the first model of each pair is ahead of the second."""
    paper = [gain for pair in models for gain in _paper_gains(*pair)]
    claim = Claim(f"{what}, test BLEU", f"{span(paper, '+.2f')} in {len(paper)} cases", AHEAD_RULE)
    compared = [one for pair in models if (one := _compare(found, *pair)).rows]
    if not compared:
        return claim
    gains = [gain for one in compared for gain in one.gains.values()]
    rows = [row for one in compared for row in one.rows]
    verdict = from_gains(gains, sum(one.pairs for one in compared))
    verdict = if_long(verdict, rows, PAPER_UPDATES)
    return claim.judged(f"{several(gains, '+.2f')}, mean of seeds", verdict, made_by(rows))


BESIDE = {
    "k32": "K=32",
    "k64": "K=64",
    "k32_pe": "K=32 + PE",
    "k64_pe": "K=64 + PE",
    "bahdanau": "Att",
}


def beside_the_paper(found: Results) -> str:
    """The paper's validation and test BLEU with ours beside them; "" without our small corpora.

    Corpora differ, so only the differences from Att, in brackets, can be compared.
    """
    by_name = {result["name"]: result for result in found}
    corpora = [corpus for corpus in CORPORA if f"{corpus}_bahdanau" in by_name]
    if not corpora:
        return ""
    parts = [
        prose(
            "BLEU, with its difference from Att in brackets. Only the differences can be compared, "
            "because the corpora differ. Ours are of the first seed, with two softmaxes, after "
            f"3,600 (Multi30k) and 2,500 updates (news); the paper trains for {PAPER_UPDATES:,}."
        )
    ]
    for title, score in (("validation", 0), ("test", 1)):
        pairs = {pair: cells for pair, cells in PAPER.items() if len(cells["k32"]) > score}
        columns = [{name: cells[name][score] for name in BESIDE} for cells in pairs.values()]
        for corpus in corpora:
            ours = {name: by_name.get(f"{corpus}_{name}") for name in BESIDE}
            columns.append(
                {
                    name: result["bleu"] if score == 0 else test_score(result)
                    for name, result in ours.items()
                    if result
                }
            )
        header = [
            f"model, {title}",
            *(pair.replace("_", "-") for pair in pairs),
            *(f"{CORPORA[corpus]}, here" for corpus in corpora),
        ]
        lines = [
            [label, *(_against(column, name) for column in columns)]
            for name, label in BESIDE.items()
        ]
        parts.append(markdown_table(header, lines))
    return "\n\n".join(parts)


def _against(column: Mapping[str, float], name: str) -> str:
    """A score with its difference from Att."""
    if name not in column:
        return "not run"
    difference = column[name] - column["bahdanau"]
    return f"{column[name]:.2f}" + (f" ({difference:+.2f})" if name != "bahdanau" else "")


def summary(found: Results, models: Mapping[str, str]) -> str:
    """A table of models with the scores of all their seeds.

    Args:
        found: results.
        models: names of the rows of the first seed, with their labels.
    """
    header = ("corpus", "model", "seeds", "valid BLEU", "test BLEU", "against Att", "p", "updates")
    lines = []
    for name, label in models.items():
        rows = seeds_of(found, name)
        (corpus,) = (title for prefix, title in CORPORA.items() if name.startswith(prefix))
        if not rows:
            lines.append((corpus, label, "-", "not run", "-", "-", "-", "-"))
            continue
        lines.append(
            (
                corpus,
                label,
                str(len(rows)),
                several([row["bleu"] for row in rows], ".2f"),
                several(list(map(test_score, rows)), ".2f"),
                significance.difference(rows[0]),
                significance.p_value(rows[0]),
                several([row["training"]["best_update"] for row in rows], ","),
            )
        )
    return markdown_table(header, lines)
