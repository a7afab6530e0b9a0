"""The Sphinx extensions for docstrings, flags and links."""

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import seq2seq_memattn
from docs.extensions.commands import page
from docs.extensions.docstrings import PACKAGE, documented, option_lines, to_rest
from docs.extensions.links import on_site, repository, rewritten
from seq2seq_memattn.__main__ import command_names
from seq2seq_memattn.config import ModelConfig
from tests.documents import DOCS
from tests.running import ROOT

DOCSTRING = """Reads K slots, see `beam_search`.

Source: Britz et al. (2017):
    c = sum_k beta_k * C_k.
Symbols: C -> memory.rows, K -> num_slots,
    alpha -> `memory.alpha`.

Args:
    units: int > 0. Width of
        the layer_.
    first, last: bool.

Call arguments of `read`:
    queries: float [batch, queries].

Returns:
    What `prepare` returns, and
    context: float [batch, units].
    scores: float [batch, rows].

Example:
>>> print(1)
1
"""


def test_sections_become_lists_and_texts() -> None:
    assert to_rest(DOCSTRING.splitlines(), {"beam_search": "seq2seq_memattn.beam_search"}) == [
        "Reads K slots, see :py:obj:`beam_search <seq2seq_memattn.beam_search>`.",
        "",
        "",
        "**Source**: Britz et al. (2017):",
        "",
        "::",
        "",
        "    c = sum_k beta_k * C_k.",
        "",
        "**Symbols**: C -> memory.rows, K -> num_slots, alpha -> ``memory.alpha``.",
        "",
        "",
        "**Args**",
        "",
        "* **units** -- int > 0. Width of the layer\\_.",
        "* **first**, **last** -- bool.",
        "",
        "**Call arguments of ``read``**",
        "",
        "* **queries** -- float [batch, queries].",
        "",
        "**Returns**",
        "",
        "What ``prepare`` returns, and",
        "",
        "* **context** -- float [batch, units].",
        "* **scores** -- float [batch, rows].",
        "",
        "**Example**",
        "",
        ">>> print(1)",
        "1",
        "",
    ]


@pytest.mark.parametrize(
    "name", sorted(set(seq2seq_memattn.__all__) - {"data", "plots", "vocabulary"})
)
def test_every_public_name_has_an_entry_and_a_docstring(name: str) -> None:
    if name == "__version__":
        return
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    assert f":: {name}\n" in text
    assert to_rest(inspect.cleandoc(getattr(seq2seq_memattn, name).__doc__).splitlines())[0]


API = (DOCS / "api.md").read_text(encoding="utf-8")
CLASSES = {
    name
    for file in (ROOT / PACKAGE).rglob("*.py")
    for name in re.findall(r"^class ([A-Z]\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
}


def docstrings_on_the_page() -> Iterator[tuple[str, Any]]:
    """The docstrings that the page of the API shows, each with its class or function."""
    members = dict(re.findall(r":: (?:\S+\.)?(\w+)\n   :members:(.*)\n", API))
    for name, path in documented(API).items():
        public = getattr(importlib.import_module(path.rpartition(".")[0]), name)
        yield inspect.getdoc(public) or "", public
        shown = [one for one in members.get(name, "").split(", ") if one]
        if name in members and not shown:
            shown = [one for one in vars(public) if not one.startswith("_")]
        for member in shown:
            yield inspect.getdoc(getattr(public, member.strip())) or "", public


def test_docstrings_send_readers_to_entries_of_the_page_only() -> None:
    entries = documented(API)
    assert entries["Run"] == "seq2seq_memattn.runs.directory.Run"
    assert entries["slots"] == "seq2seq_memattn.plots.slots"
    private = CLASSES - set(entries)
    for text, public in docstrings_on_the_page():
        seen = [name for name in re.findall(r"[Ss]ee\s+`(\w+)`", text) if name not in entries]
        assert [name for name in seen if not hasattr(public, name)] == [], public
        assert private & set(re.findall(r"`(\w+)`", text)) == set(), public


def test_every_vocabulary_that_can_be_exported_is_public() -> None:
    assert "vocabulary" in seq2seq_memattn.__all__
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    said = seq2seq_memattn.export_searchable.__doc__
    for name in ("Subword", "Word", "Character", "Symbol"):
        assert f":: seq2seq_memattn.vocabulary.{name}Vocabulary\n" in text
        assert f"`{name}Vocabulary`" in said


def test_options_are_listed_with_their_defaults() -> None:
    lines = option_lines(ModelConfig)
    assert (
        "* **embedding_dim** -- width of source and target embeddings (default: ``256``)" in lines
    )


def test_the_page_of_commands_has_every_command_and_its_flags() -> None:
    text = page()
    for name in command_names():
        assert f"## memattn {name}\n" in text
    assert "`--beam_size`\n: hypotheses kept per source" in text
    assert "`--[no]lowercase`\n: " in text


def test_links_lead_to_pages_and_to_the_repository() -> None:
    address = f"{repository()}/blob/main"
    assert on_site("../results/table1.md#x", "docs") == "results/table1.md#x"
    assert on_site("table1.md", "results") == "table1.md"
    assert on_site("../docs/faq.md", "results") == "../faq.md"
    assert (
        on_site("table1/small/copy_20_k1.json", "results")
        == f"{address}/results/table1/small/copy_20_k1.json"
    )
    assert (
        on_site("../experiments/clients", "docs") == f"{repository()}/tree/main/experiments/clients"
    )
    assert on_site("faq.md", "docs") == on_site("docs/faq.md", ".") == "faq.md"
    assert on_site("#here", "docs") == "#here"
    assert on_site("https://arxiv.org", "docs") == "https://arxiv.org"
    text = (
        "See [it](../WORKSPACE.md).\n\n```python\nfound[0](../x)\n```\n\n![i](../results/a.png)\n"
    )
    expected = text.replace("../WORKSPACE.md", f"{address}/WORKSPACE.md")
    assert rewritten(text, "docs") == expected
