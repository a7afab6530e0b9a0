"""Rows of a study against one of them, by sacrebleu's paired bootstrap."""

from collections.abc import Sequence
from typing import Any

from experiments.records import write_json
from experiments.study import Row, Study
from seq2seq_memattn.data.manifest import read_manifest
from seq2seq_memattn.data.text_files import read_lines
from seq2seq_memattn.text_form import FormedLines, TextForm

KEY = "against_baseline"  # of a result that was compared


def compare_with(of: Study, baseline: str, results: Sequence[dict[str, Any]]) -> None:
    """Adds to results what the paired bootstrap says of each against the baseline.

    The translations of a row's last test are compared, with or without case as it scores them. A
    comparison goes into the result's file as well, for whoever has not the references; it is
    made anew where they are there.

    Args:
        of: `Study`.
        baseline: name of the row; where it has no result, or its data directory is not there,
            nothing is compared.
        results: finished ones of rows on the baseline's data, changed in place.
    """
    rows = {row.name: row for row in of.rows}
    references = of.data_dir / rows[baseline].data.folder
    is_finished = any(result["name"] == baseline for result in results)
    for result in results:
        if not is_finished:
            result.pop(KEY, None)
        elif result["name"] != baseline and references.is_dir():
            found = _compare(of, rows[result["name"]], rows[baseline])
            if result.get(KEY) != found:
                result[KEY] = found
                write_json(of.result_path(rows[result["name"]]), result)


def _compare(of: Study, row: Row, baseline: Row) -> dict[str, Any]:
    from seq2seq_memattn.metrics import paired_bootstrap

    test, data = row.tests[-1], of.data_dir / row.data.folder
    form = TextForm.from_dict(dict(read_manifest(data).text_form))
    files = (
        of.lines_path(row, test.split),
        of.lines_path(baseline, test.split),
        data / f"{test.split}.target.txt",
    )
    ours, theirs, references = (FormedLines(read_lines(file), form) for file in files)
    found = paired_bootstrap(ours, theirs, references, "--lowercase" in test.flags)
    return {name: one._asdict() for name, one in found.items()}
