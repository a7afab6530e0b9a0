"""Evaluates a run on a test set.

Reports BLEU of tokenised text (as multi-bleu.perl computes it), overall and by the length of the
reference, and standard BLEU and chrF of detokenised text. Each score comes with sacrebleu's
signature. Sources and references must be tokenised and cased like the training text. `--baseline`
compares the run with the output of another system, in the same form, and reports 95 % intervals by
bootstrap resampling and two-sided p-values by approximate randomisation, as in sacrebleu. If the
data directory states the language and the form of the text, lines are tokenised or detokenised for
the scores that need it. Otherwise they are scored as they are.
"""

import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from seq2seq_memattn.commands.shared import cli, run_flags
from seq2seq_memattn.notes import STANDARD_ERROR, print_note
from seq2seq_memattn.search.options import CHANGING
from seq2seq_memattn.text.files import check_output, open_output, read_lines
from seq2seq_memattn.text.form import FormedLines, TextForm

HYPOTHESES, SCORES = "hypotheses.txt", "evaluation.json"  # files in --output_dir
# Flags that the result states if they are given.
STATED = (*CHANGING, "ensemble_mean", "precision")


def compare(
    hypotheses: FormedLines,
    baseline: FormedLines,
    references: FormedLines,
    name: str,
    lowercase: bool,
) -> dict[str, Any]:
    """Compares the run with another system, and prints one line per score.

    Args:
        hypotheses, baseline: translations of the run and of the other system.
        references: the reference translations.
        name: name of the other system's file.
        lowercase: whether to ignore case.
    """
    from seq2seq_memattn.metrics import compare_systems

    found = compare_systems(hypotheses, baseline, references, lowercase)
    for score, one in found.items():
        print_note(
            f"{score}: {one.score:.2f} ± {one.ci:.2f}, {name} {one.baseline:.2f} ± "
            f"{one.baseline_ci:.2f}, p = {one.p_value:.4f}"
        )
    return {"file": name, **{score: one._asdict() for score, one in found.items()}}


def windows(translations: list[list[Any]], config: Any) -> dict[str, float]:
    """The mean number of encoder states scored per step of the best hypotheses.

    For flexible attention with a threshold, the result also has "window_floor": what the mean would
    be if every step had the full penalty and each source position were the centre equally often.

    Args:
        translations: results of `Translator`, with alignments.
        config: `ModelConfig`.
    """
    found = [best[0].hypothesis for best in translations if best[0].hypothesis]
    steps = np.array([len(hypothesis.alignment) for hypothesis in found])

    def per_step(counts: list[float]) -> float:
        return round(float(np.average(counts, weights=steps)), 4) if steps.any() else 0.0

    result = {"window": per_step([hypothesis.positions_scored for hypothesis in found])}
    if config.attention == "flexible" and config.threshold:
        reach = math.ceil(config.flexible_sigma * math.sqrt(2 * config.threshold)) - 1
        lengths = [hypothesis.alignment.shape[1] for hypothesis in found]
        result["window_floor"] = per_step([_least_window(length, reach) for length in lengths])
    return result


def _least_window(length: int, reach: int) -> float:
    """The mean number of positions within `reach` of a centre, over all `length` centres."""
    before = np.minimum(np.arange(length), reach)
    return float(np.mean(before + before[::-1] + 1))


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    run_flags.define_run(flags, together=True)
    run_flags.define_search(flags)
    run_flags.define_batch_size(flags)
    flags.group("Text and scores")
    flags.string("source", None, "sources, one per line", required=True)
    flags.string("reference", None, "references, one per line", required=True)
    flags.string("baseline", None, "output of another system, to compare with")
    flags.boolean("lowercase", False, "ignore case in every score")
    flags.boolean("window", False, "also report the mean number of encoder states scored per step")
    flags.boolean("slots", False, "K-memory: also report how evenly the slots are read")
    flags.boolean("ribes", False, "also compute RIBES")
    flags.string("output_dir", None, f"folder for {HYPOTHESES} and {SCORES}")


def main(arguments: cli.Arguments) -> None:
    """Evaluates the run that the flags name."""
    from seq2seq_memattn.attention.registry import num_slots
    from seq2seq_memattn.metrics import are_exact, bleu_by_length, corpus_scores, ribes
    from seq2seq_memattn.runs.slot_use import slot_use

    sources, references = run_flags.read_pair(arguments.source, arguments.reference)
    baseline = read_lines(arguments.baseline) if arguments.baseline else None
    if baseline is not None:
        run_flags.check_lines(arguments.baseline, baseline, len(references))
    run = run_flags.load_runs(arguments)
    _prepare_end(arguments, run.text_form)
    for name in ("window", "slots"):
        if getattr(arguments, name) and isinstance(run.update, list):
            raise ValueError(f"--{name}: expected one run, got several")
    if arguments.slots and not num_slots(run.model.config.attention):
        raise ValueError(f"--slots: expected K-memory, got {run.model.config.attention}")
    return_alignments = arguments.window or arguments.slots
    translator = run_flags.make_translator(run, arguments, return_alignments=return_alignments)
    started = time.perf_counter()
    with tqdm(total=len(sources), unit="sentence", file=STANDARD_ERROR) as bar:
        translations = translator(sources, arguments.batch_size, arguments.source, bar.update)
    seconds = time.perf_counter() - started
    run_flags.report_cut(translator.sources)
    hypotheses, form = [best[0].text for best in translations], run.text_form
    if arguments.output_dir:  # before the scores, which may take long
        _write(arguments.output_dir, HYPOTHESES, hypotheses)
    ours, theirs = FormedLines(hypotheses, form), FormedLines(references, form)
    scores = corpus_scores(ours, theirs, arguments.lowercase)
    exact = are_exact(hypotheses, references, arguments.lowercase)
    result: dict[str, Any] = {
        "run_dir": arguments.run_dir,
        "update": run.update,
        **({"averaged": run.record["averaged"]} if "averaged" in run.record else {}),
        "parameters": run.model.count_params(),
        "bleu": round(scores["bleu"].score, 4),
        "signature": scores["bleu"].signature,
        "standard_bleu": round(scores["standard_bleu"].score, 4),
        "standard_bleu_signature": scores["standard_bleu"].signature,
        "chrf": round(scores["chrf"].score, 4),
        "chrf_signature": scores["chrf"].signature,
        "lines": len(sources),
        "empty": sum(best[0].hypothesis is None for best in translations),
        "cut": translator.sources.num_cut,
        "exact": sum(exact) / len(exact),
        "seconds": round(seconds, 2),
        "beam_size": arguments.beam_size,
        "length_penalty": arguments.length_penalty,
        **{name: getattr(arguments, name) for name in STATED if name in arguments.given},
        "by_length": bleu_by_length(
            ours.tokenised, theirs.tokenised, exact, lowercase=arguments.lowercase
        ),
    }
    if arguments.window:
        result |= windows(translations, run.model.config)
    if arguments.slots:
        found = [best[0].hypothesis for best in translations if best[0].hypothesis]
        scores_of = [hypothesis.scores for hypothesis in found if len(hypothesis.scores)]
        used = slot_use(scores_of) if scores_of else {}
        result["slots"] = {name: round(x, 4) for name, x in used.items()}
    if arguments.ribes:
        try:
            score = ribes(ours, theirs, arguments.lowercase)
            result |= {"ribes": round(score.score, 4), "ribes_signature": score.signature}
        except ValueError as error:  # NLTK's limit is 2,000 tokens
            print_note(f"no RIBES: {error}")
    if baseline is not None:
        result["baseline"] = compare(
            ours, FormedLines(baseline, form), theirs, arguments.baseline, arguments.lowercase
        )
    try:
        if arguments.output_dir:
            _write(arguments.output_dir, SCORES, [json.dumps(result, indent=2)])
    finally:  # print the result even if the file cannot be written
        cli.print_result(result)


def _prepare_end(arguments: cli.Arguments, form: TextForm) -> None:
    """Raises an error now, not after the work, if a package is missing or a file cannot be made."""
    from seq2seq_memattn.metrics import corpus_scores, ribes

    line = FormedLines(["a b"], form)
    for score in (corpus_scores, ribes) if arguments.ribes else (corpus_scores,):
        score(line, line)
    if arguments.output_dir:
        folder = Path(arguments.output_dir)
        folder.mkdir(parents=True, exist_ok=True)
        inputs = [*filter(None, (arguments.source, arguments.reference, arguments.baseline))]
        for name in (HYPOTHESES, SCORES):
            check_output(folder / name, *inputs)


def _write(folder: str, name: str, lines: list[str]) -> None:
    with open_output(str(Path(folder) / name)) as stream:
        stream.writelines(f"{line}\n" for line in lines)
