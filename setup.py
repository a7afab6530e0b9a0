"""Set-up: the description for package indexes; the rest of the configuration is in pyproject.toml.

Package indexes show the README on their own pages, where links relative to the repository lead
nowhere. The description is the README with full addresses.
"""

import re
import tomllib
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
RELATIVE = re.compile(r'(\]\(|(?:src|srcset)=")(?![a-z]+:|#)([^)"\s]+)')


def description() -> str:
    """The README with full addresses of pages and pictures."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    repository = project["urls"]["Repository"]

    def full(link: re.Match[str]) -> str:
        kind = "raw" if link[2].endswith((".png", ".svg")) else "blob"
        return f"{link[1]}{repository}/{kind}/main/{link[2]}"

    return RELATIVE.sub(full, (ROOT / "README.md").read_text(encoding="utf-8"))


setup(long_description=description(), long_description_content_type="text/markdown")
