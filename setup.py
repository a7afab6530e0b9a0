"""Set-up for tools that need this file; the configuration is in pyproject.toml."""

from setuptools import setup

setup()
