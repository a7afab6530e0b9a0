"""Table 2: translation.

Britz, Guan and Luong (2017): BLEU; at small scale, on corpora small enough for CPUs.
"""

import dataclasses
import statistics
from collections.abc import Iterator
from typing import Any

from experiments.reproduction import significance
from experiments.reproduction.pages import (
    commit_in_words,
    learning_curves,
    markdown_table,
    prose,
    table_label,
    trained_at,
)
from experiments.reproduction.results import Result, Results, grouped
from experiments.reproduction.rows import DataSource, Evaluation, Row, Scale
from experiments.reproduction.study import Study
from experiments.studies import _translation_claims
from experiments.studies._curves import pair_of_scores
from experiments.studies._setups import TRANSLATION, setup_table
from experiments.studies._translation_claims import PAPER
from seq2seq_memattn.presets import small_text
from seq2seq_memattn.presets.load import load_preset
from seq2seq_memattn.presets.wmt17 import PIECES

MULTI30K_ROWS = ("bahdanau", "none", "k4", "k8", "k32", "k64", "k32_pe", "k64_pe")
WMT_NEWS_ROWS = ("bahdanau", "k32", "k64", "k32_pe", "k64_pe")
# The four pairs of scores of Figure 5.
PAIRS = (("softmax", "softmax"), ("softmax", "sigmoid"), ("sigmoid", "softmax"), ("sigmoid",) * 2)
SEEDED = ("bahdanau", "k32")
# Rows with equation 5 as printed, with their decoder scores; those of k32 have two seeds.
PRINTED = tuple((k, score) for k in ("k32", "k64") for score in ("softmax", "sigmoid"))
# The last test of a row is the one for comparing it with Bahdanau.
TESTS = {
    "multi30k": (
        Evaluation("flickr", "test_2016_flickr"),
        # Published figures are tokenised and ignore case.
        Evaluation("flickr_lowercase", "test_2016_flickr", ("--lowercase",)),
    ),
    "wmt_news": (Evaluation("newstest2017", "newstest2017"),),
    "wmt17": (Evaluation("newstest2016", "newstest2016"),),
}
TITLES = {"multi30k": "Multi30k", "wmt_news": "News of 2008 to 2014", "wmt17": "WMT'17"}
TINY: dict[str, Any] = {
    "embedding_dim": 8,
    "encoder_units": 8,
    "decoder_units": 8,
    "attention_units": 8,
    "batch_size": 16,
    "num_updates": 4,
    "validate_every": 2,
    "valid_examples": 8,
    "beam_size": 2,
}
CORPORA = (
    (
        "training pairs",
        "WMT'17: 207,373 (en-tr) to 52 M (en-cs)",
        "Multi30k 29,000; news 19,000",
    ),
    ("validation set", "newstest2015", "Multi30k's own; newstest2015"),
    ("test set", "newstest2016", "test_2016_flickr; newstest2017"),
    ("subwords, shared", f"{PIECES:,}", f"{small_text.PIECES:,}"),
)
HEADER = (
    *("row", "seed", "valid", "test, tokenised", "test, standard", "chrF", "against Att", "p"),
    "updates",
)
PAPER_HEADER = ("valid, paper", "test, paper")
COST_HEADER = (
    *("row", "parameters", "tokens/s", "waiting for input", "updates", "hours"),
    "commit",
)


def introduction(scale: Scale) -> str:
    """The text of the page before its table."""
    text = (
        "How close does K-memory come to attention over the source in translation? BLEU is of "
        "beam search (beam size 10) with the weights of the best validation; updates are counted "
        'up to that validation. Validation BLEU is of tokenised text. "Against Att" is the '
        "difference in tokenised test BLEU from the first row, and p its two-sided p-value by "
        "approximate randomisation. PE stands for position encodings. The scores of encoder and "
        "decoder can each be a softmax or a sigmoid. Each cell of the paper's Table 2 has the "
        "best of four pairs, chosen on the validation set; the paper does not say which."
    )
    if scale == "full":
        here = (
            "Here: WMT'17 as in the paper, a sigmoid while encoding and a softmax while decoding."
        )
        return f"{text} {here}"
    return (
        f"{text}\n\nHere, corpora and models are much smaller. Both scores are softmaxes unless a "
        "row names others. Equation 5 is read as a softmax over the source, so that each slot is "
        "an average of the source. The paper prints it over the K slots; rows with that softmax "
        'are named "softmax over slots". Each row is one training with the seed shown. Tokenised '
        "test BLEU of Multi30k ignores case."
    )


def settings(scale: Scale) -> str:
    """A table of settings, the paper's and ours; variants of rows are left out."""
    presets = [row.preset() for row in rows(scale) if "encoder_score" not in row.options]
    return setup_table(TRANSLATION, presets, () if scale == "full" else CORPORA)


def rows(scale: Scale) -> list[Row]:
    """At full scale WMT'17 as in the paper, otherwise Multi30k and news."""
    if scale == "full":
        names = (f"wmt17_{pair}_{name}" for pair, cells in PAPER.items() for name in cells)
        return [text_row(name, PIECES) for name in names]
    news = [text_row(f"wmt_news_en_de_{name}", small_text.PIECES) for name in WMT_NEWS_ROWS]
    found = [*_multi30k_rows(), *news]
    return [tiny(row) for row in found] if scale == "tiny" else found


def tiny(row: Row) -> Row:
    """The tiny form of a row that is trained on text."""
    command = (*row.data.command[:-1], "--vocab_size=400")
    data = dataclasses.replace(row.data, folder=f"{row.data.folder}_tiny", command=command)
    return dataclasses.replace(row, options={**row.options, **TINY}, data=data)


def text_row(config: str, pieces: int) -> Row:
    """A row that is trained on text.

    Args:
        config: name of the preset, `CORPUS_SOURCE_TARGET_NAME`.
        pieces: size of the vocabulary.
    """
    model = load_preset(config).model
    corpus, pair = _corpus_of(config)
    has_positions = model.position_encoding != "none"
    paper = PAPER[pair][config.removeprefix(f"wmt17_{pair}_")] if corpus == "wmt17" else ()
    return Row(
        name=config,
        config=config,
        options={},
        data=DataSource(
            f"{corpus}_{pair}_{pieces}",
            (f"data_prep.{corpus}", f"--pair={pair.replace('_', '-')}", f"--vocab_size={pieces}"),
            corpus,
        ),
        label=table_label(model.attention) + " + PE" * has_positions,
        curve=model.attention + " + PE" * has_positions,
        paper=dict(zip(("bleu", "test_bleu"), paper, strict=False)),
        tests=TESTS[corpus],
    )


def _corpus_of(name: str) -> tuple[str, str]:
    """The corpus and language pair of a row, such as ("multi30k", "en_de")."""
    (corpus,) = (corpus for corpus in TESTS if name.startswith(f"{corpus}_"))
    return corpus, "_".join(name.removeprefix(f"{corpus}_").split("_")[:2])


def _multi30k_rows() -> list[Row]:
    pieces = small_text.PIECES
    by_name = {name: text_row(f"multi30k_en_de_{name}", pieces) for name in MULTI30K_ROWS}
    seeded = [_with_other_seed(by_name[name]) for name in SEEDED]
    printed = [with_printed_softmax(by_name[name], score) for name, score in PRINTED]
    as_drawn = _as_in_figure_4(by_name["k64"])
    twice = [_with_other_seed(row) for row in printed if row.config == by_name["k32"].config]
    pairs = with_other_pairs(by_name["k32"])
    return [*by_name.values(), *seeded, *pairs, *printed, *twice, as_drawn]


def with_other_pairs(row: Row) -> list[Row]:
    """Variants of a K-memory row, one for each other pair of scores."""
    default = load_preset(row.config).model
    return [
        _variant(
            row,
            f"{encoder}_{decoder}",
            {"encoder_score": encoder, "decoder_score": decoder},
            pair_of_scores(encoder, default.normalise_over, decoder),
        )
        for encoder, decoder in PAIRS
        if (encoder, decoder) != (default.encoder_score, default.decoder_score)
    ]


def with_printed_softmax(row: Row, decoder_score: str) -> Row:
    """A K-memory row with equation 5 as printed: a softmax over slots while encoding."""
    scores = {"encoder_score": "softmax", "decoder_score": decoder_score}
    options = {**scores, "normalise_over": "slots"}
    label = pair_of_scores("softmax", "slots", decoder_score)
    return _variant(row, f"slots_{decoder_score}", options, label)


def _as_in_figure_4(row: Row) -> Row:
    """A K-memory row with the paper's choices of Figure 4: position encodings and a sigmoid."""
    options = {"position_encoding": "mean_one", "encoder_score": "sigmoid"}
    varied = _variant(row, "pe_sigmoid_softmax", options, "sigmoid / softmax + PE")
    return dataclasses.replace(varied, curve=f"{row.curve} + PE, sigmoid / softmax")


def _with_other_seed(row: Row) -> Row:
    return _variant(row, "seed1", {"seed": 1}, "seed 1")


def _variant(row: Row, suffix: str, options: dict[str, Any], text: str) -> Row:
    name = f"{row.name}_{suffix}"
    return dataclasses.replace(
        row,
        name=name,
        options={**row.options, **options},
        label=f"{row.label}, {text}",
        curve=name,
    )


def results(study: Study) -> list[Result]:
    """The finished results, each with comparisons with Bahdanau on its corpus."""
    finished = study.finished()
    for pair, members in by_pair(finished).items():
        significance.compare_with(study, f"{pair}_bahdanau", members)
    return finished


def tables(found: Results) -> str:
    """Scores, signatures and costs for each corpus and language pair."""
    parts = []
    for name, members in by_pair(found).items():
        has_paper = any(result["paper"] for result in members)
        header = [*HEADER, *(PAPER_HEADER if has_paper else ())]
        scores = markdown_table(header, [_scores(result, has_paper) for result in members])
        costs = markdown_table(COST_HEADER, map(_costs, members))
        parts += [f"## {group_title(name)}", scores, "\n".join(_signatures(members)), costs]
    parts.append(prose(trained_at(found)))
    if beside := _translation_claims.beside_the_paper(found):
        parts += ["## Beside the paper's Table 2", beside]
    return "\n\n".join(parts) + "\n"


def group_title(name: str) -> str:
    """The title of a row's or group's corpus and pair, such as "Multi30k, en-de, K = 32"."""
    corpus, pair = _corpus_of(name)
    _, _, slots = name.partition("_k")
    of_slots = f", K = {slots}" if slots.isdigit() else ""
    return f"{TITLES[corpus]}, {pair.replace('_', '-')}{of_slots}"


def by_pair(found: Results) -> dict[str, list[Result]]:
    """Groups results by corpus and language pair."""
    return grouped(found, lambda result: "_".join(_corpus_of(result["name"])))


def curves(found: Results) -> dict[str, list[Result]]:
    """The models of each corpus and pair with all seeds; other pairs of scores are in Figure 5."""
    names = {result["name"] for result in found}
    models = [result for result in _by_model(found) if result["curve_name"] not in names]
    return by_pair(models)


def _by_model(found: Results) -> list[Result]:
    """The results; all seeds of a model share the curve of the first."""
    first = {result["name"]: result["curve_name"] for result in found}
    return [
        {**result, "curve_name": first.get(result["name"].partition("_seed")[0], result["name"])}
        for result in found
    ]


claims = _translation_claims.claims
draw = learning_curves(curves, group_title)


def _scores(result: Result, has_paper: bool) -> list[str]:
    standard, tokenised = first_and_last(result)
    theirs = [result["paper"].get(name) for name in ("bleu", "test_bleu")] if has_paper else []
    return [
        result["label"],
        str(result["configuration"]["training"]["seed"]),
        f"{result['bleu']:.2f}",
        f"{tokenised['bleu']:.2f}",
        f"{standard['standard_bleu']:.2f}",
        f"{standard['chrf']:.2f}",
        significance.difference(result),
        significance.p_value(result),
        f"{result['evaluation']['update']:,}",
        *("-" if score is None else f"{score:.2f}" for score in theirs),
    ]


def _costs(result: Result) -> list[str]:
    train = [point for point in result["curve"] if point["kind"] == "train"]
    speed, waiting = ([point[key] for point in train] for key in ("tokens_per_second", "waiting"))
    return [
        result["label"],
        f"{result['evaluation']['parameters'] / 1e6:.2f} M",
        f"{statistics.median(speed):,.0f}" if train else "-",
        f"{100 * statistics.mean(waiting):.1f} %" if train else "-",
        f"{result['training']['update']:,}",
        f"{result['training']['seconds'] / 3600:.1f}",
        commit_in_words(result["commit"]),
    ]


def first_and_last(result: Result) -> tuple[Result, Result]:
    """The tests for the standard and the tokenised scores; they may be the same test."""
    tests = list(result["tests"].values())
    return tests[0], tests[-1]


def _signatures(results: Results) -> Iterator[str]:
    """The sacrebleu signatures of a table's scores, without repetitions."""
    found: dict[str, None] = {}
    for result in results:
        standard, tokenised = first_and_last(result)
        found |= {
            f"* tokenised: `{tokenised['signature']}`": None,
            f"* standard: `{standard['standard_bleu_signature']}`": None,
            f"* chrF: `{standard['chrf_signature']}`": None,
        }
        if compared := significance.compared(result):
            found[f"* p: `{compared['signature']}`"] = None
    yield from found
