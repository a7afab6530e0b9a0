"""Writes all pages of results from their files: python -m experiments.results_page.

Nothing is trained or measured: a row without a file is shown as "not run". The first page,
README.md, compares the findings of the papers with ours. Each study with results has its own page.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from experiments.reproduction.claims import FEW_UPDATES, MARGIN, Claim, Verdict
from experiments.reproduction.pages import (
    MissingRun,
    code_block,
    markdown_table,
    numbered,
    prose,
    write_page,
)
from experiments.reproduction.results import Results
from experiments.reproduction.rows import Scale
from experiments.reproduction.study import load_definition, make_study, study_names
from experiments.studies import _copy_claims, _translation_claims, table2
from seq2seq_memattn.commands.shared import cli
from seq2seq_memattn.notes import print_note
from seq2seq_memattn.text.files import open_output

PAGE = "README.md"
INTRODUCTION = """
This page compares the findings of two papers with ours. K is the number of slots, and L the maximum
length of a source in symbols. Att is Bahdanau's attention. PE stands for position encodings. Models
are small and trainings short: [how the figures were made](#how-the-figures-were-made), [what a
verdict means](#verdicts).
"""
FIGURES_MADE = """
This page and the pages of the studies are made from the JSON files beside them. Each file records
the command, commit, machine, versions and seconds of a result; some files of
[benchmarks.md](benchmarks.md) lack versions or seconds. Times are of untrained models and have no
seed, unless a page says otherwise. Conclusions and two pages are written by hand: benchmarks.md and
[serving.md](serving.md).

All studies are at scale `small`: a row trains in minutes to hours on two CPU cores or one GPU. Each
page says how this set-up differs from the paper. In K-memory, the softmax of equation 5 is taken
over the source here, unless a row says "as printed" or "over slots", or uses a sigmoid instead.
Decoding is compiled by XLA where times are given, unless a page says otherwise (as Table 3 of
Flexible Attention does).
"""
VERDICTS = f"""
Verdicts follow from the recorded numbers by the rules numbered below; a person judges pictures. The
rules were written after most results existed. Where a rule can be applied to the numbers that the
papers print, it gives *reproduced*, unless it says otherwise (a test checks this).

* *Partly*: the finding holds in some cases, or to a smaller degree. *Not*: the effect was not seen.
  *Contradicted*: the opposite was seen.
* *Undecided*: our runs cannot tell. In runs with {FEW_UPDATES},
  a high score can confirm a finding about one model, but a low one cannot refute it, and a
  difference between two of our models decides nothing, in either direction. (A finding that holds
  in some cases is still *partly* reproduced.) In other runs, chance may explain a difference: two
  models must differ by more than {MARGIN:g}/√n BLEU, where n is the smaller number of seeds. On
  Multi30k, where seven models were trained with two seeds, two models twice, seeds differ by up to
  0.9 test BLEU (1.1 on the validation set), and chance alone exceeds the bound in about one test
  comparison in ten. For copying and for Flexible Attention, we have one seed and use the same
  bound. A training repeated on another processor at another commit differs by up to 0.7 ([K-memory
  with a teacher](memory_distillation.md)). Some rules give further reasons.
* *Not run here*: results that the rule needs are missing. If only some are, "here" says how many.
  By rule 1, a finding that holds in some rows with L > 20 but not in others is *partly* reproduced,
  whatever is missing.

*Timed, COMMIT*: untrained models were timed at this commit.
"""
MEMORY = ("table1", "ambiguities", "table2", "table3", "decoding")
FURTHER = ("one_slot",)  # more runs for findings of the tables
FIGURES = ("figure2", "figure3a", "figure3b", "figure4", "figure5", "figure6", "figure7", "figure8")
FLEXIBLE = (
    *("flexible_table1", "flexible_table2", "flexible_table3", "flexible_figure3"),
    "flexible_figure4",
)
PAPERS = (
    "memory paper (Britz, Guan and Luong 2017)",
    "Flexible Attention (Shu and Nakayama 2017)",
)
COUNTED: tuple[Verdict, ...] = ("reproduced", "partly", "not", "contradicted", "undecided")
SHORTENED = {
    "one_slot": "One slot",
    "decoding": "Time",
    "ambiguities": "Section 4.1",
    "flexible_table1": "Table 1",
}
HEADER = ("where", "claim", "paper", "here", "verdict", "rule", "limit of updates; seeds")
BY_HAND = {
    "Speed, reliability and data, by hand": "benchmarks",
    "Serving, by hand": "serving",
}
FULL = (
    "python -m experiments.reproduce table2 --scale=full --source_dir=CORPORA",
    "python -m experiments.reproduce table1 --scale=full",
)


def make_page(results_dir: Path) -> str:
    """Returns the first page of the results in a folder, with links to the existing pages."""
    names = dict.fromkeys((*MEMORY, *FURTHER, *FIGURES, *FLEXIBLE, *study_names()))
    found = {name: _results(name, results_dir) for name in names}
    linked = {name: (results_dir / f"{name}.md").exists() for name in found}
    memory, flexible, further = (
        {name: load_definition(name).claims(found[name]) for name in names}
        for names in ((*MEMORY, *FIGURES), FLEXIBLE, FURTHER)
    )
    numbers = _numbers([*memory.values(), *flexible.values(), *further.values()])
    sections = [
        "# Results",
        prose(INTRODUCTION),
        "## Scoreboard",
        markdown_table(
            ("paper", "findings", *COUNTED, "not run here"),
            (_counts(*one) for one in zip(PAPERS, (memory, flexible), strict=True)),
        ),
        f"The {PAPERS[0]}:",
        markdown_table(HEADER, _lines(memory, linked, numbers)),
        f"{PAPERS[1]}:",
        markdown_table(HEADER, _lines(flexible, linked, numbers)),
        "Longer runs on a finding above; at 4.5 % of the paper's updates, they cannot decide it:",
        markdown_table(HEADER, _lines(further, linked, numbers)),
        "## Copy task",
        _copy_claims.summary(found["table1"]),
        "## Translation in miniature",
        _miniature(found["table2"]),
        "## All pages",
        markdown_table(("what", "page"), _pages(linked, results_dir)),
        "## Not run here",
        prose(
            "Table 2 with WMT'17 needs several GPUs for days. Judging by our runs, Table 1 with "
            "200,000 updates would take about a day on one H100 with 14 models at a time. Hours on "
            "a GPU would be enough for 20,000 updates at L = 200, for 20,000 updates of one slot "
            "and of no attention at L = 100 and 200, and for decoding with windows. The commands "
            "for Table 2 and Table 1:"
        ),
        code_block(*FULL),
        "## How the figures were made",
        prose(FIGURES_MADE),
        "## Verdicts",
        VERDICTS.strip(),
        "\n".join(numbered(number, rule) for rule, number in numbers.items()),
    ]
    return "\n\n".join(sections) + "\n"


def _results(name: str, results_dir: Path) -> Results:
    """The existing results of a study; nothing is trained or measured."""
    return load_definition(name).results(make_study(name, "small", [], results_dir, results_dir))


def _numbers(claims: Sequence[Sequence[Claim]]) -> dict[str, int]:
    """The rules of all claims with their numbers, from 1, in the order of the claims."""
    rules = dict.fromkeys(claim.rule for of_study in claims for claim in of_study)
    return {rule: number for number, rule in enumerate(rules, 1)}


def _counts(paper: str, claims: Mapping[str, Sequence[Claim]]) -> list[str]:
    """The line of a paper in the table of counts."""
    verdicts = Counter(claim.verdict for of_study in claims.values() for claim in of_study)
    counts = [verdicts[verdict] for verdict in COUNTED]
    return [paper, *map(str, (verdicts.total(), *counts, verdicts.total() - sum(counts)))]


def _lines(
    claims: Mapping[str, Sequence[Claim]], linked: Mapping[str, bool], numbers: Mapping[str, int]
) -> Iterator[Sequence[str]]:
    """The lines of the scoreboard."""
    for name, of_study in claims.items():
        where = f"[{_short(name)}]({name}.md)" if linked[name] else _short(name)
        for claim in of_study:
            what, rule = claim.what[0].upper() + claim.what[1:], str(numbers[claim.rule])
            yield where, what, claim.paper, claim.here, claim.verdict, rule, claim.made


def _short(name: str) -> str:
    """The name of a study on this page."""
    title = load_definition(name).title.removeprefix("Flexible Attention, ")
    return SHORTENED.get(name, title.partition(":")[0])


def _miniature(found: Results) -> str:
    names = [f"multi30k_en_de_{name}" for name in table2.MULTI30K_ROWS]
    names += [f"wmt_news_en_de_{name}" for name in table2.WMT_NEWS_ROWS]
    models = {row.name: row.label for row in table2.rows("small") if row.name in names}
    said = prose(
        "BLEU is of tokenised text, with one value for each seed; on the test set of Multi30k, it "
        "ignores case. [Table 2](table2.md) has standard sacrebleu, too. The difference from Att "
        "and its p-value are those of the first seed. Table 2 also has other pairs of "
        "scores and equation 5 as printed."
    )
    return f"{said}\n\n{_translation_claims.summary(found, models)}"


def _pages(linked: Mapping[str, bool], results_dir: Path) -> Iterator[Sequence[str]]:
    """Every study, with its page or the command for it; then the pages written by hand."""
    for name, has_page in linked.items():
        missing = f"not run: `python -m experiments.reproduce {name} --scale=small`"
        yield load_definition(name).title, f"[{name}.md]({name}.md)" if has_page else missing
    for title, name in BY_HAND.items():
        if (results_dir / f"{name}.md").exists():
            yield title, f"[{name}.md]({name}.md)"


def write_pages(results_dir: Path) -> list[Path]:
    """Writes the page of each study with results, then the first page; returns their paths."""
    scales: tuple[Scale, ...] = ("small", "full")
    written = []
    for name in study_names():
        for scale in scales:
            study = make_study(name, scale, [], results_dir, results_dir)
            results = load_definition(name).results(study)
            if not results or (scale == "full" and not study.results_dir.exists()):
                continue
            try:
                written.append(write_page(name, scale, study, results, results_dir))
            except MissingRun as error:
                print_note(f"{name}: left out, {error}")
    with open_output(str(results_dir / PAGE)) as stream:
        stream.write(make_page(results_dir))
    return [*written, results_dir / PAGE]


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.string("results_dir", "results", "folder of the results")


def main(arguments: cli.Arguments) -> None:
    """Writes the pages of the folder that the flags name."""
    pages = write_pages(Path(arguments.results_dir))
    cli.print_result({"pages": [str(page) for page in pages]})


if __name__ == "__main__":
    cli.launch(sys.modules[__name__])
