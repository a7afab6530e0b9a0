"""Draws where a model looks: python -m experiments.draw_alignment --run_dir=D --text=T --output=F.

Source downwards, target to the right, as in figures 6 to 8 of the memory paper; of K-memory, which
never looks at the source again, it is the product of its scores (section 5). What flexible
attention with a threshold does not score is grey, as in figure 4 of Shu and Nakayama (2017). In
place of a text, `--source=F --lines=3,14` takes lines of a file in the form of the training text.
With `--slots_output=F` what each slot of a K-memory adds is drawn too.
"""

from pathlib import Path
from typing import Any

from absl import flags

from experiments import cli, decoding_flags
from experiments.alignments import align, draw, draw_slots
from experiments.copy_rows import label
from seq2seq_memattn.data.text_files import read_lines


def read_texts(run: Any) -> dict[str, str]:
    """The sentences that the flags name, in the form of the training text, by what they are.

    Raises:
        ValueError: for flags that do not fit together, or lines that the file has not.
    """
    options = flags.FLAGS
    if (options.text is None) == (options.source is None) or bool(options.source) != bool(
        options.lines
    ):
        raise ValueError("--text: expected it, or --source and --lines")
    if options.text is not None:
        return {"--text": run.text_form.as_trained([options.text], run.directory)[0]}
    lines = read_lines(options.source)
    wanted = cli.positive_numbers("lines", options.lines)
    for number in wanted:
        if number > len(lines):
            raise ValueError(f"--lines: expected at most {len(lines)}, got {number}")
    return {f"{options.source}, line {number}": lines[number - 1] for number in wanted}


def check_figure(flag: str, path: str) -> Path:
    """The path of a figure; ValueError for an ending that figures have not."""
    if Path(path).suffix not in ("", ".png", ".svg"):
        raise ValueError(f"--{flag}: expected the ending .png, .svg or none; got {path}")
    return Path(path)


def main(arguments: list[str]) -> None:
    """Draws from flags."""
    del arguments
    options = flags.FLAGS
    path = check_figure("output", options.output)
    slots_path = check_figure("slots_output", options.slots_output or "")
    run, translator = decoding_flags.make_translator(return_alignments=True)
    texts = read_texts(run)
    if options.slots_output and len(texts) > 1:
        raise ValueError(f"--slots_output: expected one sentence, got {len(texts)}")
    aligned = [align(run, translator, text, name) for name, text in texts.items()]
    decoding_flags.report_cut(translator.sources)
    title = label(run.model.config.attention)
    files = draw(aligned, title, path)
    if options.slots_output:
        files += draw_slots(aligned[0], title, options.max_slots, slots_path)
    cli.print_result({"texts": [one.text for one in aligned], "figures": list(map(str, files))})


if __name__ == "__main__":
    decoding_flags.define()
    flags.DEFINE_string("text", None, "the sentence, as people write it")
    flags.DEFINE_string("source", None, "a file of sentences, as the model was trained on")
    flags.DEFINE_list("lines", [], "which lines of it, counted from 1")
    flags.DEFINE_string("output", None, "figure: .png, .svg, or without ending both", required=True)
    flags.DEFINE_string("slots_output", None, "K-memory: another figure, of its slots one by one")
    flags.DEFINE_integer("max_slots", 8, "slots that it shows, the most used", lower_bound=1)
    cli.run(main)
