"""Scores a run: python -m experiments.evaluate --run_dir=D --source=F --reference=F.

Gives BLEU of tokenised text (as multi-bleu.perl), by length too, standard BLEU and chrF of
detokenised text, each with sacrebleu's signature. References are in the form of the training text,
and so is `--baseline`, another system's output, for sacrebleu's paired bootstrap. Where the data
directory tells the text's language and form, lines are tokenised or detokenised for the scores that
need it; else they are scored as they are.
"""

import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from absl import flags
from tqdm import tqdm

from experiments import cli, decoding_flags
from experiments.records import portable
from seq2seq_memattn.data.text_files import open_output, read_lines
from seq2seq_memattn.text_form import FormedLines


def compare(
    hypotheses: FormedLines, baseline: FormedLines, references: FormedLines
) -> dict[str, Any]:
    """The run against another system: figures by score, each also said in a line."""
    from seq2seq_memattn.metrics import paired_bootstrap

    options = flags.FLAGS
    found = paired_bootstrap(hypotheses, baseline, references, options.lowercase)
    for name, one in found.items():
        cli.print_note(
            f"{name}: {one.score:.2f} ± {one.ci:.2f}, {options.baseline} {one.baseline:.2f} ± "
            f"{one.baseline_ci:.2f}, p = {one.p_value:.4f} (paired bootstrap)"
        )
    return {"file": options.baseline, **{name: one._asdict() for name, one in found.items()}}


def windows(translations: list[list[Any]], config: Any) -> dict[str, float]:
    """Encoder states that were scored per step of the best hypotheses, on average.

    Beside it, for flexible attention with a threshold, the least that it can be: with the full
    penalty in every step, and each position of a source looked at as often as the others.

    Args:
        translations: of `Translator`, with alignments.
        config: `ModelConfig`.
    """
    found = [best[0].hypothesis for best in translations if best[0].hypothesis]
    steps = np.array([len(hypothesis.alignment) for hypothesis in found])

    def per_step(counts: list[float]) -> float:
        return round(float(np.average(counts, weights=steps)), 4) if found else 0.0

    result = {"window": per_step([hypothesis.positions_scored for hypothesis in found])}
    if config.attention == "flexible" and config.threshold:
        reach = math.ceil(config.flexible_sigma * math.sqrt(2 * config.threshold)) - 1
        lengths = [hypothesis.alignment.shape[1] for hypothesis in found]
        result["window_floor"] = per_step([_least_window(length, reach) for length in lengths])
    return result


def _least_window(length: int, reach: int) -> float:
    """Positions at most `reach` away from one of a source, on average over these."""
    before = np.minimum(np.arange(length), reach)
    return float(np.mean(before + before[::-1] + 1))


def main(arguments: list[str]) -> None:
    """Evaluates from flags."""
    del arguments
    from seq2seq_memattn.metrics import bleu_by_length, corpus_scores, ribes

    options = flags.FLAGS
    sources, references = decoding_flags.read_pair(options.source, options.reference)
    baseline = read_lines(options.baseline) if options.baseline else None
    if baseline is not None and len(baseline) != len(references):
        raise ValueError(
            f"{options.baseline}: expected {len(references)} lines, got {len(baseline)}"
        )
    run, translator = decoding_flags.make_translator(return_alignments=options.window)
    started = time.perf_counter()
    with tqdm(total=len(sources), unit="sentence", file=sys.stderr) as bar:
        translations = translator(sources, options.batch_size, options.source, bar.update)
    seconds = time.perf_counter() - started
    decoding_flags.report_cut(translator.sources)
    hypotheses, form = [best[0].text for best in translations], run.text_form
    ours, theirs = FormedLines(hypotheses, form), FormedLines(references, form)
    scores = corpus_scores(ours, theirs, options.lowercase)
    result: dict[str, Any] = {
        "run_dir": portable(options.run_dir),
        "update": run.update,
        "parameters": run.model.count_params(),
        "bleu": round(scores["bleu"].score, 4),
        "signature": scores["bleu"].signature,
        "standard_bleu": round(scores["standard_bleu"].score, 4),
        "standard_bleu_signature": scores["standard_bleu"].signature,
        "chrf": round(scores["chrf"].score, 4),
        "chrf_signature": scores["chrf"].signature,
        "lines": len(sources),
        "empty": sources.count(""),
        "cut": translator.sources.num_cut,
        "exact": sum(a == b for a, b in zip(hypotheses, references, strict=True)) / len(sources),
        "seconds": round(seconds, 2),
        "beam_size": options.beam_size,
        "length_penalty": options.length_penalty,
        "by_length": bleu_by_length(ours.tokenised, theirs.tokenised, lowercase=options.lowercase),
    }
    if options.window:
        result |= windows(translations, run.model.config)
    if options.ribes:
        found = ribes(ours, theirs, options.lowercase)
        result |= {"ribes": round(found.score, 4), "ribes_signature": found.signature}
    if baseline is not None:
        result["baseline"] = compare(ours, FormedLines(baseline, form), theirs)
    if options.output_dir:
        _write(Path(options.output_dir), hypotheses, result)
    cli.print_result(result)


def _write(folder: Path, hypotheses: list[str], result: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with open_output(str(folder / "hypotheses.txt")) as stream:
        stream.writelines(f"{line}\n" for line in hypotheses)
    with open_output(str(folder / "evaluation.json")) as stream:
        stream.write(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    decoding_flags.define()
    decoding_flags.define_batch_size()
    flags.DEFINE_string("source", None, "sources, one per line", required=True)
    flags.DEFINE_string("reference", None, "references, one per line", required=True)
    flags.DEFINE_string("baseline", None, "another system's output, for the paired bootstrap")
    flags.DEFINE_bool("lowercase", False, "leave case out of account in every score")
    flags.DEFINE_bool("window", False, "encoder states scored per step, on average")
    flags.DEFINE_bool("ribes", False, "RIBES too, which minds the order of words")
    flags.DEFINE_string("output_dir", None, "where hypotheses.txt and evaluation.json go")
    cli.run(main)
