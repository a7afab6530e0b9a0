"""Compares rows of a study with baseline rows: confidence intervals and p-values."""

import operator
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from experiments.reproduction.results import Result, Results, write_json
from experiments.reproduction.rows import Row
from experiments.reproduction.study import Study
from seq2seq_memattn.data.manifest import read_manifest
from seq2seq_memattn.text.files import read_lines
from seq2seq_memattn.text.form import FormedLines, TextForm

KEY = "against_baseline"  # key of the comparison in a result
MEANS_KEY = "means_against"  # key of comparisons of several seeds' means, by baseline


def compare_with(study: Study, baseline: str, results: Results) -> None:
    """Adds comparisons with the baseline, by `compare_systems`, to results.

    Translations of a row's last test are compared; case is ignored if the test ignores it. The
    comparison is also stored in the result's file, for users without the references. With the
    references, it is computed again.

    Args:
        study: `Study`.
        baseline: name of the baseline row. If it has no result, nothing is compared.
        results: finished results of rows on the baseline's data; changed in place.
    """
    rows = {row.name: row for row in study.rows}
    against = next((result for result in results if result["name"] == baseline), None)
    for result in results:
        if result is against:
            continue
        row = rows[result["name"]]
        if against is not None and _is_there(study, row, rows[baseline]):
            found = _compare(study, row, rows[baseline])
            if result.get(KEY) != found:
                result[KEY] = found
                write_json(study.result_path(row), result)
        elif against is None or not _is_of(row, result, against):
            result.pop(KEY, None)


def compare_means(study: Study, results: Results, baselines: Results, references: str) -> None:
    """Adds a comparison of means over seeds, by `metrics.compare_means`, to the last result.

    Like `compare_with`, it needs the references and all translations; without them, a stored
    comparison is kept if it is of these results.

    Args:
        study: `Study`.
        results: finished results of a model, one per seed; the last is changed in place.
        baselines: those of the baseline; the comparison has the name of the first.
        references: name of a row whose data has the references of all.
    """
    by_name = {row.name: row for row in study.rows}
    ours, theirs = ([by_name[one["name"]] for one in of] for of in (results, baselines))
    name, test = baselines[0]["name"], ours[-1].tests[-1].name
    all_kept = results[-1].setdefault(MEANS_KEY, {})
    kept = all_kept.get(name)
    if _is_there(study, by_name[references], *theirs, *ours):
        from seq2seq_memattn import metrics

        *lines, truth, lowercase = _for_metrics(study, by_name[references], [*ours, *theirs])
        systems, others = lines[: len(ours)], lines[len(ours) :]
        found = metrics.compare_means(systems, others, truth, lowercase)._asdict()
        if kept != found:
            all_kept[name] = found
            write_json(study.result_path(ours[-1]), results[-1])
    elif kept:
        means = (fmean(one["tests"][test]["bleu"] for one in of) for of in (results, baselines))
        if abs(kept["difference"] - operator.sub(*means)) > 1e-3:
            del all_kept[name]


def compared(result: Result) -> dict[str, Any] | None:
    """The comparison of a result's BLEU with the baseline's, if there is one."""
    found: dict[str, Any] | None = result.get(KEY, {}).get("bleu")
    return found


def difference(result: Result) -> str:
    """The difference from the baseline in BLEU, as text."""
    found = compared(result)
    return f"{found['score'] - found['baseline']:+.2f}" if found else "-"


def p_value(result: Result) -> str:
    """The p-value of the difference from the baseline, as text; the least is 0.001."""
    found = compared(result)
    if not found:
        return "-"
    return "<= 0.001" if found["p_value"] <= 0.001 else f"{found['p_value']:.3f}"


def _is_there(study: Study, *rows: Row) -> bool:
    """Whether the references and the translations of all rows exist."""
    split = rows[0].tests[-1].split
    return _references(study, rows[0]).exists() and all(
        study.lines_path(row, split).exists() for row in rows
    )


def _references(study: Study, row: Row) -> Path:
    return study.data_dir / row.data.folder / f"{row.tests[-1].split}.target.txt"


def _is_of(row: Row, result: Result, against: Result) -> bool:
    """Whether a stored comparison belongs to these two results, judged by their scores."""
    test = row.tests[-1].name
    kept = result.get(KEY, {}).get("bleu", {})
    scores = [one["tests"][test]["bleu"] for one in (result, against)]
    return [round(kept.get(name, -1.0), 4) for name in ("score", "baseline")] == scores


def _compare(study: Study, row: Row, baseline: Row) -> dict[str, Any]:
    from seq2seq_memattn.metrics import compare_systems

    ours, theirs, references, lowercase = _for_metrics(study, row, [row, baseline])
    found = compare_systems(ours, theirs, references, lowercase)
    return {name: one._asdict() for name, one in found.items()}


def _for_metrics(study: Study, row: Row, rows: Sequence[Row]) -> list[Any]:
    """The translations by each of `rows`, the references of `row`, and whether case is ignored."""
    test = row.tests[-1]
    form = TextForm.from_dict(dict(read_manifest(study.data_dir / row.data.folder).text_form))
    files = [study.lines_path(one, test.split) for one in rows]
    lines = [FormedLines(read_lines(file), form) for file in (*files, _references(study, row))]
    return [*lines, "--lowercase" in test.flags]
