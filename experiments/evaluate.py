"""Scores a run: python -m experiments.evaluate --run_dir=D --source=F --reference=F.

Prints BLEU with its signature, by source length too; `--baseline` is another system's output,
for sacrebleu's paired bootstrap.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from absl import flags
from tqdm import tqdm

from experiments import cli, decoding_flags
from seq2seq_memattn.data.text_files import open_output, read_lines


def read_pair(source: str, reference: str) -> tuple[list[str], list[str]]:
    """Two files of as many lines; raises ValueError with both counts if they differ."""
    sources, references = read_lines(source), read_lines(reference)
    if len(sources) != len(references):
        raise ValueError(
            f"{source} and {reference}: expected as many lines, "
            f"got {len(sources)} and {len(references)}"
        )
    return sources, references


def compare(hypotheses: list[str], baseline: list[str], references: list[str]) -> dict[str, Any]:
    """Runs sacrebleu's paired bootstrap of BLEU against another system."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.significance import PairedTest

    metric = BLEU(references=[references], tokenize="none", smooth_method="none", force=True)
    systems: Any = [("baseline", baseline), ("run", hypotheses)]
    _, scores = PairedTest(systems, {"BLEU": metric}, None, "bs", n_samples=1000)()
    results: Any = scores["BLEU"]
    before, now = results
    return {"baseline_bleu": before.score, "bleu_p_value": now.p_value}


def main(arguments: list[str]) -> None:
    """Evaluates from flags."""
    del arguments
    from seq2seq_memattn.metrics import bleu_by_length, tokenised_bleu

    options = flags.FLAGS
    sources, references = read_pair(options.source, options.reference)
    baseline = read_lines(options.baseline) if options.baseline else None
    if baseline is not None and len(baseline) != len(references):
        raise ValueError(
            f"{options.baseline}: expected {len(references)} lines, got {len(baseline)}"
        )
    run, translator = decoding_flags.make_translator()
    started = time.perf_counter()
    with tqdm(total=len(sources), unit="sentence", file=sys.stderr) as bar:
        translations = translator(sources, options.batch_size, options.source, bar.update)
    seconds = time.perf_counter() - started
    decoding_flags.report_cut(translator)
    hypotheses = [best[0].text for best in translations]
    bleu = tokenised_bleu(hypotheses, references)
    result: dict[str, Any] = {
        "run_dir": options.run_dir,
        "update": run.update,
        "bleu": round(bleu.score, 4),
        "signature": bleu.signature,
        "lines": len(sources),
        "exact": sum(a == b for a, b in zip(hypotheses, references, strict=True)) / len(sources),
        "seconds": round(seconds, 2),
        "beam_size": options.beam_size,
        "length_penalty": options.length_penalty,
        "by_length": bleu_by_length(hypotheses, references),
    }
    if baseline is not None:
        result |= compare(hypotheses, baseline, references)
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
    flags.DEFINE_string("source", None, "sources, one per line", required=True)
    flags.DEFINE_string("reference", None, "references, one per line", required=True)
    flags.DEFINE_string("baseline", None, "another system's output, for the paired bootstrap")
    flags.DEFINE_string("output_dir", None, "where hypotheses.txt and evaluation.json go")
    cli.run(main)
