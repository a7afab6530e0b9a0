"""Sphinx configuration of the site. `make docs` builds it into docs/_build; warnings are errors."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from docs.extensions.links import repository
from seq2seq_memattn import __version__

project = "seq2seq_memattn"
author = "The seq2seq_memattn authors"
project_copyright = author
release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "docs.extensions.commands",
    "docs.extensions.docstrings",
    "docs.extensions.links",
    "docs.extensions.results",
]
exclude_patterns = ["_build"]
highlight_language = "bash"  # blocks that name no language are commands

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_inherit_docstrings = False  # Keras's docstrings of `build` and `call` do not fit our layers
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings give dtypes and shapes
add_module_names = False

# The reader's own server cannot be checked, and a test checks links to this repository's files.
linkcheck_ignore = [r"http://127\.0\.0\.1", re.escape(repository())]

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_title = f"{project} {release}"
html_theme_options = {
    "source_repository": repository(),
    "source_branch": "main",
    "source_directory": "docs/",
}
