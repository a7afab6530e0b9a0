"""The examples in docstrings give the results that they show."""

import doctest
import importlib
import pkgutil

import pytest

import seq2seq_memattn

NEEDS_JAX = {"seq2seq_memattn.training.updates.jax_update"}
MODULES = [
    module.name
    for module in pkgutil.walk_packages(seq2seq_memattn.__path__, "seq2seq_memattn.")
    if module.name not in NEEDS_JAX
]


def examples(name: str) -> list[doctest.DocTest]:
    found = doctest.DocTestFinder().find(importlib.import_module(name))
    return [test for test in found if test.examples]


def test_examples_are_found() -> None:
    assert sum(len(examples(name)) for name in MODULES) >= 15


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name: str) -> None:
    report: list[str] = []
    for test in examples(name):
        # By default, it would be verbose if pytest is.
        doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert not report, "".join(report)
