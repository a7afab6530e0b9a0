"""The card of an exported model: its kind, its training data and its scores."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from seq2seq_memattn.compute.precision import INT8
from seq2seq_memattn.data.manifest import Manifest, read_manifest
from seq2seq_memattn.runs.directory import Run
from seq2seq_memattn.search.ensemble import Ensemble, members
from seq2seq_memattn.search.options import CHANGING, RULES

EVALUATIONS = "evaluation/*/evaluation.json"  # files of `evaluate` in a run directory
# What was done to a corpus, by options of `TextForm`.
FORMS = {
    "is_tokenised": "tokenised",
    "is_truecased": "truecased",
    "is_lowercased": "lower-cased",
}
# Titles of scores, with the keys of the score and its signature in evaluation.json.
SCORES = {
    "BLEU, tokenised": ("bleu", "signature"),
    "BLEU, standard": ("standard_bleu", "standard_bleu_signature"),
    "chrF": ("chrf", "chrf_signature"),
}
TEXT_OPS = (
    "`SentencepieceOp`, `SentencepieceTokenizeOp`, `SentencepieceDetokenizeOp` and "
    "`SentencepieceIdToStringOp`"
)
ANSWERS = """\
| signature | inputs | outputs |
|---|---|---|
| `serving_default` | `text` | `translations`, `log_probs`, `num_tokens` [batch, n_best], best \
first; `source_is_cut` [batch] |
| `align` | `text` | the same, and for the best translation `source_pieces`, `target_pieces` and \
`alignments` [batch, target_length, source_length]; with K-memory also the scores of its slots, \
`alpha` and `beta` |
| `score` | `text`, `translation` | `log_probs`, `num_tokens`, `source_is_cut`, \
`translation_is_cut` [batch] |
{others}
Texts are UTF-8 strings [batch]. Log-probabilities are sums over tokens in nats, end token \
included. The graph needs only the ops of TensorFlow{ops}."""

ROUNDED = """\
This export stores its matrices in eight bits and multiplies in float32. Scores above are those of \
the model before rounding, unless they name a precision. To estimate what rounding costs, run \
`evaluate` with `--precision=int8_products` too. Two exports of Multi30k had 36.02 BLEU (without \
case) instead of 35.93, and 37.63 instead of 37.71."""

COMPLETE = """\
| `complete` | `text`, `prefix` | those of `serving_default`, for translations that begin with the \
prefix; `prefix_is_cut` [batch] |
"""

SAMPLES = """\
| `sample` | `text`, `seed` (int32 [batch]) | those of `serving_default`, but num_samples \
translations drawn at random, not sorted. The same text and seed give the same ones; a seed below \
0 gives new ones at each call |
"""


def model_card(run: Run, name: str, version: int, description: Mapping[str, Any]) -> str:
    """The card of an exported run, as Markdown.

    Args:
        run: `Run`. The card lists the evaluations in its directory.
        name, version: name and version of the exported model.
        description: result of `describe`.
    """
    manifest = read_manifest(run.directory, check_files=False)
    parts = [
        f"# {name}, version {version}",
        _summary(run, manifest, description),
        "## Data",
        *_data(manifest),
        "## Scores",
        "\n".join(_scores(run, description)),
        *([ROUNDED] if description["precision"] == INT8 else []),
        "## Use",
        _answers(description),
        _search(description),
        "## Options of the model",
        *(_options(model.config.to_dict()) for model in members(run.model)),
        "## Versions",
        _table(["package", "version"], [[*pair] for pair in description["versions"].items()]),
    ]
    return "\n\n".join(parts) + "\n"


def searchable_card(name: str, version: int, description: Mapping[str, Any]) -> str:
    """The card of a user's own model, as Markdown; see `model_card`."""
    parts = [
        f"# {name}, version {version}",
        "A Keras model made searchable with seq2seq_memattn, attention: "
        f"`{description['attention']}`, {description['parameters']:,} parameters.",
        "## Use",
        _answers(description),
        _search(description),
        "## Versions",
        _table(["package", "version"], [[*pair] for pair in description["versions"].items()]),
    ]
    return "\n\n".join(parts) + "\n"


def _answers(description: Mapping[str, Any]) -> str:
    others = COMPLETE if description["prefix"] else ""
    others += SAMPLES if description["num_samples"] else ""
    kinds = (description["kind"], description["target_kind"])
    ops = f" and tensorflow_text's {TEXT_OPS}" if "subwords" in kinds else ""
    return ANSWERS.format(ops=ops, others=others)


def _options(options: Mapping[str, Any]) -> str:
    return _table(["option", "value"], [[f"`{key}`", f"{value}"] for key, value in options.items()])


def _summary(run: Run, manifest: Manifest, description: Mapping[str, Any]) -> str:
    languages = [description[f"{side}_language"] for side in ("source", "target")]
    pair = f" from {languages[0]} to {languages[1]}" if all(languages) else ""
    updates = run.update if isinstance(run.update, list) else [run.update]
    kind = "model" if len(updates) == 1 else f"ensemble of {len(updates)} models"
    return (
        f"A recurrent sequence-to-sequence {kind}{pair} of seq2seq_memattn, attention: "
        f"{description['attention_label']} (`{description['attention']}`), "
        f"{description['parameters']:,} parameters, trained for "
        f"{' and '.join(f'{update:,}' for update in updates)} updates on `{manifest.task}`."
    )


def _data(manifest: Manifest) -> Iterator[str]:
    rows = [
        [name, f"{split.num_examples:,}", f"{split.num_target_tokens:,}", _counts(split.left_out)]
        for name, split in manifest.splits.items()
    ]
    yield _table(["split", "examples", "target tokens", "left out"], rows)
    options = ", ".join(f"{key}={value}" for key, value in manifest.options.items() if value != "")
    yield f"Prepared by `{manifest.task}` with {options}. The terms of the data apply to the model."


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{reason}: {count:,}" for reason, count in counts.items()) or "none"


def _scores(run: Run, description: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(run.model, Ensemble):
        yield "Not evaluated."
        return
    if "bleu" in run.record:  # a record of best.npz
        yield f"Validation BLEU: {run.record['bleu']:.2f}.\n"
    elif run.record.get("best_bleu", -1.0) >= 0.0:  # a record of a checkpoint
        best, update = run.record["best_bleu"], run.record["best_update"]
        yield f"Best validation BLEU of the run: {best:.2f}, at update {update:,}.\n"
    rows: list[list[str]] = []
    for path in sorted(run.directory.glob(EVALUATIONS)):
        found = json.loads(path.read_text(encoding="utf-8"))
        is_same = found.get("averaged") == run.record.get("averaged")
        if is_same and found["update"] == run.update:
            rows += _evaluation(path, found, description)
    yield _table(["evaluation", "score", "value", "signature"], rows) if rows else "Not evaluated."


def _evaluation(
    path: Path, found: Mapping[str, Any], description: Mapping[str, Any]
) -> Iterator[list[str]]:
    said = [path.parent.name]
    for key in ("beam_size", "length_penalty"):
        if key in found and found[key] != description[key]:
            said.append(f"{key} {found[key]}")
    if (precision := found.get("precision", "float32")) != "float32":
        said.append(precision)
    said += [f"{key} {found[key]}" for key in CHANGING if key in found]
    said += [f"without {key}" for key in RULES if description[key] and key not in found]
    name = ", ".join(said)
    for title, (key, signature) in SCORES.items():
        yield [name, title, f"{found[key]:.2f}", f"`{found[signature]}`"]


def _search(description: Mapping[str, Any]) -> str:
    keys = ["beam_size", "n_best", "length_penalty", "max_length", "max_source_length"]
    if description["precision"] != INT8:  # else see `ROUNDED`
        keys.append("precision")
    keys += [key for key in RULES if description[key]]
    if description["num_samples"]:
        keys += ["num_samples", "temperature", "top_k", "top_p"]
    if "ensemble_mean" in description:
        keys.append("ensemble_mean")
    said = ", ".join(f"{key} {description[key]}" for key in keys if description[key] is not None)
    limits = []
    if description["max_length"] is not None:
        limits.append(f"{description['max_length']} tokens")
    if (ratio := description["max_length_ratio"]) is not None:
        limits.append(f"{ratio:g} times as many tokens as its source")
    if not limits:
        limits = ["twice as many tokens as its source and 10 more"]
        if description["min_length_ratio"]:
            limits[0] += ", or 10 more than its minimum length if that is more"
    text = f"Fixed in the graph: {said}. A translation has at most {', and at most '.join(limits)}."
    if description["prefix"]:
        text += " With a prefix, a translation may be longer, so that the prefix fits."
    form = description["text_form"]
    if had := [word for name, word in FORMS.items() if form[name]]:
        text += (
            f" Texts must have the form of the training text: {' and '.join(had)}. "
            "`memattn serve` converts sources to this form, except for `score`, and returns "
            f"translations as plain text{', in lower case' * form['is_lowercased']}."
        )
    return text


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    escaped = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped)
