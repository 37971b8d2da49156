"""The corpus of gates: `tools/torture proofs` measures all of it, and a part of it is judged here."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from random import Random

import pytest

ROOT = Path(__file__).parents[3]


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


CORPUS = load("corpus_kinds", "tests/builtin/proofs/corpus/kinds.py")
INSTANCES = load("corpus_instances", "tests/builtin/proofs/corpus/instances.py")
KINDS = {kind.name: kind for kind in (*CORPUS.VACUOUS, *CORPUS.HONEST)}


def test_there_are_25_kinds_of_each():
    assert len(CORPUS.VACUOUS) >= 25
    assert len(CORPUS.HONEST) >= 25
    assert len(KINDS) == len(CORPUS.VACUOUS) + len(CORPUS.HONEST)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "results"),
    [
        ("or true", {"cannot_fail"}),
        ("only there", {"proved/presence"}),
        ("a fixed phrase", {"proved/content", "proved/presence"}),
        ("an editable path", {"proved/content", "proved/presence", "not_provable"}),
        ("pytest in a venv, installed as editable", {"proved/content", "proved/presence", "not_provable"}),
        ("make, which looks at times", {"proved/content", "proved/presence", "not_provable"}),
    ],
)
def test_a_gate_is_told_for_what_it_is_and_its_project_is_left_alone(name, results):
    result, reason, remains = INSTANCES.measure(KINDS[name], Random(name))
    assert (result in results, remains) == (True, ""), (result, reason)


@pytest.mark.slow
def test_a_killed_proof_leaves_nothing_once_the_next_server_has_started():
    assert INSTANCES.kill(KINDS["an editable path"], Random("kill")) == (True, "")
