"""Generates the page about the commands from the commands' docstrings and flags."""

import importlib
import re
from typing import Any

from seq2seq_memattn.__main__ import PROGRAM, command_names
from seq2seq_memattn.commands.shared import cli

PAGE = "commands"


def page() -> str:
    """The generated part of the page, which follows its introduction, in Markdown."""
    parts = []
    for name in command_names():
        command = importlib.import_module(f"seq2seq_memattn.commands.{name}")
        parts += [f"## {PROGRAM} {name}", _about(command.__doc__ or "")]
        for title, flags in cli.flags_of(command).described().items():
            if title != cli.OTHER_FLAGS:
                parts.append(f"**{title or 'Flags'}**")
                parts += [f"`{shown}`\n: {_plain(meaning)}" for shown, meaning in flags]
    return "\n\n".join(parts) + "\n"


def _about(text: str) -> str:
    """A command's docstring in Markdown; indented paragraphs become code."""
    found = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        is_code = paragraph.startswith("    ")
        found.append(f"```\n{_dedented(paragraph)}\n```" if is_code else paragraph)
    return "\n\n".join(found)


def _dedented(paragraph: str) -> str:
    return "\n".join(line.removeprefix("    ") for line in paragraph.splitlines())


def _plain(text: str) -> str:
    """Text with all Markdown marks escaped except backticks."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(
        part if part[:1] == "`" else re.sub(r"([\\*_<>|\[\]])", r"\\\1", part) for part in parts
    )


def setup(app: Any) -> dict[str, bool]:
    """Connects this extension to Sphinx."""

    def read(app: Any, document: str, source: list[str]) -> None:
        del app
        if document == PAGE:
            source[0] += "\n" + page()

    # The page shows the flags of the commands, so it may change without its file.
    app.connect("env-get-outdated", lambda *_: [PAGE])
    app.connect("source-read", read)
    return {"parallel_read_safe": True}
