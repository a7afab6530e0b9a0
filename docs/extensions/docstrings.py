"""Converts the project's docstrings to reStructuredText for Sphinx's autodoc.

A docstring is text with sections such as `Args`, `Call arguments`, `Fields`, `Symbols` or
`Masking`, and `Returns` may list several values. Sphinx's own reader, napoleon, knows only some of
these sections. Here each section becomes a bold word followed by a list or text. Backticks become
code, and names in backticks that have an entry on the API page become links.
"""

import dataclasses
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

LISTS = ("Args", "Attributes", "Call arguments", "Fields", "Raises", "Returns", "Yields")
TEXTS = (
    "Cost",
    "Differs from",
    "Example",
    "Left open by",
    "Masking",
    "Normalisation",
    "Source",
    "Symbols",
)
TITLE = re.compile(rf"({'|'.join([*LISTS, *TEXTS])})([^:]*):(?:\s+(.*))?$")
ITEM = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*): (.*)")
INDENTED = "    "
PACKAGE = "seq2seq_memattn"
API = Path(__file__).parents[1] / "api.md"
NO_LINKS: Mapping[str, str] = {}


def documented(page: str) -> dict[str, str]:
    """Maps the last part of the name of each class and function on a page to its full name."""
    module, found = PACKAGE, {}
    for directive, name in re.findall(r"^\.\. (\w+):: (\S+)$", page, re.MULTILINE):
        if directive == "currentmodule":
            module = name
        elif directive in ("autoclass", "autofunction"):
            path = name if name.startswith(f"{PACKAGE}.") else f"{module}.{name}"
            found[name.rpartition(".")[2]] = path
    return found


def to_rest(lines: Sequence[str], links: Mapping[str, str] = NO_LINKS) -> list[str]:
    """A docstring as lines of reStructuredText.

    Args:
        lines: lines of the docstring, without its indentation.
        links: the names that become links, with their full names.
    """
    found: list[str] = []
    was_list = False
    for block in _blocks(lines):
        title = TITLE.match(block[0])
        if title is None and all(line.startswith(INDENTED) for line in block):
            body = [line[len(INDENTED) :] for line in block]
            found += _list(body, links) if was_list else ["::", "", *block]
        elif title is None:
            found += _text(block, links)
            was_list = False
        else:
            name, more, first = title[1], title[2], title[3] or ""
            was_list = name in LISTS and not first
            heading = f"**{name}{_escaped(more, links)}**"
            if was_list:
                body = [line.removeprefix(INDENTED) for line in block[1:]]
                found += [heading, "", *_list(body, links)]
            elif name == "Example" and not first:
                found += [heading, "", *block[1:]]
            else:
                found += _text([first, *block[1:]], links, f"{heading}: ")
        found.append("")
    return found


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Splits lines into blocks at blank lines and where a section begins."""
    block: list[str] = []
    for line in lines:
        is_title = TITLE.match(line) is not None
        if block and (is_title or not line.strip()):
            yield block
            block = []
        if line.strip():
            block.append(line)
    if block:
        yield block


def _list(body: Sequence[str], links: Mapping[str, str]) -> list[str]:
    """A section's items, `name: meaning`, as a bulleted list, with any text between them."""
    found: list[str] = []
    entries: list[list[str]] = []
    for line in body:
        is_new = not entries or (not line.startswith(" ") and ITEM.match(line))
        entries.append([line]) if is_new else entries[-1].append(line)
    for entry in entries:
        joined = _joined(entry)
        if item := ITEM.match(joined):
            names = ", ".join(f"**{_escaped(name, NO_LINKS)}**" for name in item[1].split(", "))
            found.append(f"* {names} -- {_escaped(item[2], links)}")
        else:
            if found:
                found.append("")
            found += [_escaped(joined, links), ""]
    return found


def _text(block: Sequence[str], links: Mapping[str, str], before: str = "") -> list[str]:
    """A paragraph; its indented equations become literal blocks."""
    found: list[str] = []
    text: list[str] = []
    equations: list[str] = []
    for line in block:
        behind_end = bool(equations) or (bool(text) and text[-1].rstrip()[-1:] in (":", "."))
        if line.startswith(INDENTED) and behind_end:
            equations.append(line)
            continue
        if equations:
            found += _paragraph(text, links, before) + ["::", "", *equations, ""]
            text, equations, before = [], [], ""
        text.append(line)
    found += _paragraph(text, links, before)
    return found + (["::", "", *equations] if equations else [])


def _paragraph(text: Sequence[str], links: Mapping[str, str], before: str) -> list[str]:
    if text and text[0].startswith("* "):
        items = [_escaped(item, links) for item in "\n".join(text)[2:].split("\n* ")]
        return [f"* {_joined(item.splitlines())}" for item in items] + [""]
    return [before + _escaped(_joined(text), links), ""] if text else []


def _joined(lines: Sequence[str]) -> str:
    return " ".join(line.strip() for line in lines).strip()


def _escaped(text: str, links: Mapping[str, str]) -> str:
    """Text whose backticks become code or links and whose other marks are escaped."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(_code(part[1:-1], links) if part[:1] == "`" else _plain(part) for part in parts)


def _code(code: str, links: Mapping[str, str]) -> str:
    if code in links:
        return f":py:obj:`{code} <{links[code]}>`"
    return f"``{code}``"


def _plain(text: str) -> str:
    return re.sub(r"([\\*|`]|_(?=\W|$))", r"\\\1", text)


def option_lines(kind: Any) -> list[str]:
    """A list of a record's options with their meanings and defaults."""
    found = ["", "**Options**", ""]
    for field in dataclasses.fields(kind):
        meaning = _escaped(field.metadata["help"], NO_LINKS)
        found.append(f"* **{field.name}** -- {meaning} (default: ``{field.default!r}``)")
    return [*found, ""]


def setup(app: Any) -> dict[str, bool]:
    """Connects this extension to Sphinx."""
    found = documented(API.read_text(encoding="utf-8"))
    # Functions of submodules, such as `plots.slots`, get no links, because an argument may have the
    # same name.
    links = {
        name: path
        for name, path in found.items()
        if name[0].isupper() or path == f"{PACKAGE}.{name}"
    }

    def process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
        del app, what, name, options
        lines[:] = to_rest(lines, links)
        if dataclasses.is_dataclass(obj) and all(
            "help" in field.metadata for field in dataclasses.fields(obj)
        ):
            lines += option_lines(obj)

    app.connect("autodoc-process-docstring", process)
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-skip-member", _skips)
    return {"parallel_read_safe": True}


def _signature(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str, returned: str
) -> tuple[str, str] | None:
    """The signature of `__init__`; autodoc would show the `__new__` of Keras's layers instead."""
    del app, name, options, signature, returned
    import keras
    from sphinx.util.inspect import stringify_signature

    if what != "class" or not issubclass(obj, keras.layers.Layer | keras.losses.Loss):
        return None
    _, *parameters = inspect.signature(obj.__init__).parameters.values()
    return stringify_signature(inspect.Signature(parameters), show_annotation=False), ""


def _skips(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Skips the fields of named tuples, because the docstring of their class describes them."""
    del app, what, name, skip, options
    return True if type(obj).__name__ == "_tuplegetter" else None
