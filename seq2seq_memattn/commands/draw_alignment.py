"""Draws the alignment between a source and its translation.

The source runs downwards and the target to the right, as in figures 6 to 8 of Britz, Guan and Luong
(2017). The alignment of K-memory attention is the product of its encoder and decoder scores
(section 5). Positions that flexible attention with a threshold does not score are grey, as in
figure 4 of Shu and Nakayama (2017). Instead of `--text`, `--source=F --lines=3,14` takes lines of a
file that is tokenised and cased like the training text. `--slots_output=F` also draws what each
slot of a K-memory contributes.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seq2seq_memattn.attention.registry import label, num_slots
from seq2seq_memattn.commands.shared import cli, run_flags
from seq2seq_memattn.config import ModelConfig
from seq2seq_memattn.data.manifest import read_manifest
from seq2seq_memattn.runs.alignments import align, draw, draw_slots
from seq2seq_memattn.text.files import read_lines

MAX_CHARACTERS = 100  # of a sentence in a title; the rest is cut


def read_texts(arguments: cli.Arguments, run: Any) -> dict[str, str]:
    """The sentences to draw, tokenised and cased like the training text, by name.

    Line 3 of `--source` has the name "line 3"; the sentence of `--text` has the name "".

    Raises:
        ValueError: for flags that do not go together, or line numbers beyond the end of the file.
    """
    if (arguments.text is None) == (arguments.source is None) or bool(arguments.source) != bool(
        arguments.lines
    ):
        raise ValueError("--text: expected either --text, or --source and --lines")
    if arguments.text is not None:
        return {"": run.text_form.as_trained([arguments.text], run.directory)[0]}
    lines = read_lines(arguments.source)
    wanted = cli.positive_numbers("lines", arguments.lines)
    for number in wanted:
        if number > len(lines):
            raise ValueError(f"--lines: expected at most {len(lines)}, got {number}")
    return {f"line {number}": lines[number - 1] for number in wanted}


def task_of(run: Any) -> str:
    """The task of a run and its languages, such as "multi30k, en-de"."""
    task = read_manifest(run.directory, check_files=False).task.replace("_", " ")
    languages = (run.text_form.source_language, run.text_form.target_language)
    return f"{task}, {'-'.join(languages)}" if all(languages) else task


def title_of(task: str, model: ModelConfig, texts: Mapping[str, str]) -> str:
    """The title of a figure: task, attention, its scores or threshold, and the sentence.

    Figures of several sentences have no sentence in the title.

    Args:
        task: see `task_of`.
        model: options of the model.
        texts: see `read_texts`.
    """
    title = f"{task}: {label(model.attention)}"
    if model.threshold:
        title += f", \u03c4 = {model.threshold:g}"
    if num_slots(model.attention):
        title += f", scores {model.encoder_score} / {model.decoder_score}"
    if len(texts) > 1:
        return title
    ((line, text),) = texts.items()
    # By characters, since text may be written without spaces.
    shortened = text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]} ..."
    return f'{title}, {line}{": " * bool(line)}"{shortened}"'


def check_figure(flag: str, path: str) -> Path:
    """The path of a figure; raises ValueError for a file ending other than .png, .svg or none."""
    if Path(path).suffix not in ("", ".png", ".svg"):
        raise ValueError(f"--{flag}: expected the ending .png, .svg or none; got {path}")
    return Path(path)


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    run_flags.define_run(flags)
    run_flags.define_search(flags)
    flags.group("Text and figures")
    flags.string("text", None, "a sentence of plain text")
    flags.string("source", None, "a file of sentences, tokenised and cased like the training text")
    flags.items("lines", [], "numbers of the lines to draw, from 1")
    flags.string(
        "output", None, "figure to write: .png, .svg, or both if it has no ending", required=True
    )
    flags.string("slots_output", None, "K-memory: a second figure with one panel per slot")
    flags.integer(
        "max_slots", 8, "K-memory: how many of the most used slots to draw", lower_bound=1
    )


def main(arguments: cli.Arguments) -> None:
    """Draws the sentences that the flags name."""
    from seq2seq_memattn.plots.style import files_of  # needs the extra `plots`

    path = check_figure("output", arguments.output)
    if "max_slots" in arguments.given and not arguments.slots_output:
        raise ValueError("--max_slots: expected --slots_output too")
    slots_path = check_figure("slots_output", arguments.slots_output or "")
    if arguments.slots_output:
        files, others = ({one.resolve() for one in files_of(each)} for each in (path, slots_path))
        if files & others:
            raise ValueError("--slots_output: expected another file than --output")
    run = run_flags.load_run(arguments)
    if arguments.slots_output and not num_slots(run.model.config.attention):
        raise ValueError(f"--slots_output: expected K-memory, got {run.model.config.attention}")
    translator = run_flags.make_translator(run, arguments, return_alignments=True)
    texts = read_texts(arguments, run)
    if arguments.slots_output and len(texts) > 1:
        raise ValueError(f"--slots_output: expected one sentence, got {len(texts)}")
    aligned = {}
    for line, text in texts.items():
        name = f"{arguments.source}, {line}" if line else "--text"
        # The number of a single line is already in the figure's title.
        aligned[line if len(texts) > 1 else ""] = align(run, translator, text, name)
    run_flags.report_cut(translator.sources)
    title = title_of(task_of(run), run.model.config, texts)
    figures = draw(aligned, title, path)
    if arguments.slots_output:
        (one,) = aligned.values()
        figures += draw_slots(one, title, arguments.max_slots, slots_path)
    translations = [one.text for one in aligned.values()]
    cli.print_result({"texts": translations, "figures": list(map(str, figures))})
