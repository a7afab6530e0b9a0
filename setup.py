"""Set-up for tools that want this file; what it says stands in pyproject.toml."""

from setuptools import setup

setup()
