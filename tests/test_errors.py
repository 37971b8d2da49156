"""The tree of errors, and how an error is shown."""

from __future__ import annotations

import inspect

import pytest

from deepwork import api, errors

TREE = {
    "ConfigError": "DeepWorkError",
    "PathRefused": "DeepWorkError",
    "PluginError": "DeepWorkError",
    "PluginLoadError": "PluginError",
    "NameClash": "PluginError",
    "UnknownName": "PluginError",
    "JobError": "DeepWorkError",
    "JobLoadError": "JobError",
    "ToolError": "DeepWorkError",
    "UnknownJob": "ToolError",
    "UnknownWorkflow": "ToolError",
    "EmptyWorkflow": "ToolError",
    "MissingInstructions": "ToolError",
    "ArgumentError": "ToolError",
    "OutputError": "ToolError",
    "ReviewExhausted": "ToolError",
    "StateError": "ToolError",
    "NoActiveSession": "StateError",
    "UnknownSession": "StateError",
    "StaleSession": "StateError",
    "CorruptSession": "StateError",
    "StorageError": "StateError",
}

ALL = {
    name: kind for name, kind in vars(errors).items() if inspect.isclass(kind) and kind.__module__ == errors.__name__
}


@pytest.mark.parametrize(("name", "base"), TREE.items())
def test_an_error_stands_where_its_readers_look_for_it(name, base):
    assert ALL[name].__base__ is ALL[base]


@pytest.mark.parametrize("name", ALL)
def test_every_error_is_of_the_tree_explained_and_public(name):
    assert issubclass(ALL[name], errors.DeepWorkError)
    assert ALL[name].__doc__
    assert name in api.__all__ or api.MOVED[name] == "deepwork.errors"


def test_an_agent_reads_message_and_hint():
    assert str(errors.ToolError("That is wrong", hint="Do this.")) == "That is wrong\nDo this."


def test_an_error_without_a_hint_is_its_message():
    error = errors.ToolError("That is wrong")
    assert (str(error), error.hint) == ("That is wrong", None)


def test_a_job_error_knows_its_job(tmp_path):
    error = errors.JobLoadError("broken", job_name="demo", job_dir=tmp_path)
    assert (error.message, error.job_name, error.job_dir) == ("broken", "demo", tmp_path)
