"""Translation: the figures of Britz et al. (2017), and their findings compared with ours."""

import statistics
from collections.abc import Sequence

from experiments.reproduction import bootstrap
from experiments.reproduction.claims import SAME, Claim, Verdict, from_cases, made_by, several, span
from experiments.reproduction.pages import markdown_table
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
MULTI30K = "multi30k_en_de"
CORPORA = {MULTI30K: "Multi30k", "wmt_news_en_de": "news"}
SLOTS = ("k4", "k8", "k32", "k64")


def claims(found: Results) -> list[Claim]:
    """The claims of Table 2, judged by our rows on small corpora."""
    return [_near_attention(found), _more_slots(found), _positions(found)]


def seeds_of(found: Results, name: str) -> list[Result]:
    """The results of a row with all its seeds."""
    return [result for result in found if result["name"].partition("_seed")[0] == name]


def test_score(result: Result) -> float:
    """Tokenised BLEU on the last test, the score for comparing rows."""
    *_, last = result["tests"].values()
    return float(last["bleu"])


def p_value(result: Result) -> str:
    """The p-value of the difference from Bahdanau's row, as text; the least is 0.001."""
    compared = result.get(bootstrap.KEY, {}).get("bleu")
    if not compared:
        return "-"
    return "<= 0.001" if compared["p_value"] <= 0.001 else f"{compared['p_value']:.3f}"


def spread_of_seeds(found: Results) -> float:
    """The largest difference in test BLEU between seeds of one row."""
    names = {result["name"].partition("_seed")[0] for result in found}
    scores = ([test_score(one) for one in seeds_of(found, name)] for name in names)
    return max((max(one) - min(one) for one in scores), default=0.0)


def _mean(results: Results) -> float:
    return statistics.mean(map(test_score, results))


def _gains(name: str, over: str, score: int) -> list[float]:
    """The paper's gains of one row over another, by pair, in validation (0) or test (1) BLEU."""
    rows = (pair for pair in PAPER.values() if len(pair[name]) > score)
    return [pair[name][score] - pair[over][score] for pair in rows]


def _near_attention(found: Results) -> Claim:
    """Reproduced if K = 64 is no further behind Att than in the paper's worst pair.

    Partly reproduced if this holds on some corpora only, or is missed by at most `SAME`.
    """
    gains = _gains("k64", "bahdanau", score=1)
    what, paper = "K = 64 is close to Att, test BLEU", f"{span(gains, '+.2f')} in three pairs"
    here, rows = {}, []
    for corpus, title in CORPORA.items():
        slots, att = (seeds_of(found, f"{corpus}_{name}") for name in ("k64", "bahdanau"))
        if slots and att:
            rows += [*slots, *att]
            # The first seed on both sides, as in the paired bootstrap.
            here[title] = test_score(slots[0]) - test_score(att[0])
    if not here:
        return Claim(what, paper)
    worst = min(gains)
    verdict = from_cases([gain >= worst for gain in here.values()])
    if verdict == "not" and max(here.values()) >= worst - SAME:
        verdict = "partly"
    said = ", ".join(f"{gain:+.2f} {title}" for title, gain in here.items())
    return Claim(what, paper, said, verdict, made_by(rows))


def _more_slots(found: Results) -> Claim:
    """Reproduced if test BLEU rises with each K, partly if only K = 64 is ahead of K = 32."""
    what = "more slots are better, K = 4, 8, 32, 64"
    paper = f"K = 64 over 32: {span(_gains('k64', 'k32', score=0), '+.2f')}"
    rows = [seeds_of(found, f"{MULTI30K}_{name}") for name in SLOTS]
    if not all(rows):
        return Claim(what, paper)
    scores = list(map(_mean, rows))
    verdict = from_cases([scores == sorted(scores), scores[-1] > scores[-2]])
    return Claim(
        what, paper, several(scores), verdict, made_by([one for row in rows for one in row])
    )


def _positions(found: Results) -> Claim:
    """Reproduced if there is a gain larger than the spread of seeds, contradicted if a loss."""
    what = "position encodings help, test BLEU"
    gains = [gain for k in ("k32", "k64") for gain in _gains(f"{k}_pe", k, score=1)]
    paper = span(gains, "+.2f")
    with_them, without = (seeds_of(found, f"{MULTI30K}_{name}") for name in ("k32_pe", "k32"))
    if not with_them or not without:
        return Claim(what, paper)
    gain, spread = _mean(with_them) - _mean(without), spread_of_seeds(found)
    verdict: Verdict = "not"
    if abs(gain) > spread:
        verdict = "reproduced" if gain > 0.0 else "contradicted"
    here = f"{gain:+.2f}, K = 32; seeds differ by {spread:.2f}"
    return Claim(what, paper, here, verdict, made_by([*with_them, *without]))


def summary(found: Results, models: Sequence[str]) -> str:
    """A table of models with the scores of all their seeds.

    Args:
        found: results.
        models: names of the rows of the first seed.
    """
    header = ("corpus", "model", "seeds", "valid BLEU", "test BLEU", "against Att", "p", "updates")
    lines = []
    for name in models:
        rows = seeds_of(found, name)
        (corpus,) = (title for prefix, title in CORPORA.items() if name.startswith(prefix))
        if not rows:
            lines.append((corpus, name, "-", "not run", "-", "-", "-", "-"))
            continue
        compared = rows[0].get(bootstrap.KEY, {}).get("bleu")
        lines.append(
            (
                corpus,
                rows[0]["label"],
                str(len(rows)),
                several([row["bleu"] for row in rows], ".2f"),
                several(list(map(test_score, rows)), ".2f"),
                f"{compared['score'] - compared['baseline']:+.2f}" if compared else "-",
                p_value(rows[0]),
                several([row["training"]["best_update"] for row in rows], ","),
            )
        )
    return markdown_table(header, lines)
