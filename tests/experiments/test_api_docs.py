import inspect
import re
import warnings
from pathlib import Path

import pytest

import seq2seq_memattn
from experiments import api_docs


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    with warnings.catch_warnings():
        # Of pdoc alone: names that it cannot resolve, modules that it cannot import.
        warnings.filterwarnings("error", module="pdoc")
        api_docs.make(folder)
    return folder


def test_every_public_name_has_its_docstring(site: Path) -> None:
    page = (site / "seq2seq_memattn.html").read_text(encoding="utf-8")
    for name in seq2seq_memattn.__all__:
        is_module = inspect.ismodule(getattr(seq2seq_memattn, name))  # it has a page of its own
        if name != "__version__" and not is_module:
            _, _, behind = page.partition(f'<section id="{name}">')
            assert '<div class="docstring">' in behind.partition("</section>")[0], name


def test_sections_of_docstrings_are_lists(site: Path) -> None:
    page = (site / "seq2seq_memattn" / "runs" / "translator.html").read_text(encoding="utf-8")
    (fields,) = re.findall(r"Fields.*?<ul>(.*?)</ul>", page, re.DOTALL)
    assert "<strong>text:</strong>" in fields and "<strong>hypothesis:</strong>" in fields
    assert not re.search(r"<p>(Fields|Args|Returns|Call arguments):", page)


def test_every_module_has_a_page(site: Path) -> None:
    for module in api_docs.MODULES:
        page = (site / f"{module.replace('.', '/')}.html").read_text(encoding="utf-8")
        assert f"<title>{module} API documentation</title>" in page
        assert '<div class="docstring">' in page, module
    assert "seq2seq_memattn.html" in (site / "index.html").read_text(encoding="utf-8")
