"""The kit for tests of our own parts, and of yours.

Enable its fixtures with `-p deepwork.testing.pytest_plugin`. What needs hypothesis stands apart, in
`deepwork.testing.strategies` and `deepwork.testing.machines`.
"""

from __future__ import annotations

import pytest

# Before the modules are imported, or their asserts stay bare.
pytest.register_assert_rewrite(
    "deepwork.testing.project",
    "deepwork.testing.contracts",
    "deepwork.testing.machines",
    "deepwork.testing.fakes",
    "deepwork.testing.wire",
)

from deepwork.testing.contracts import (  # noqa: E402
    AgentContract,
    CliScript,
    Contract,
    JobSourceContract,
    PluginContract,
    ReviewRunnerContract,
    ScriptedCli,
    StateStoreContract,
    StateStoreProcessesContract,
)
from deepwork.testing.fakes import ScriptedRunner  # noqa: E402
from deepwork.testing.project import Agent, DeepworkProject, Refused, output, review, step  # noqa: E402
from deepwork.testing.samples import a_request, a_session  # noqa: E402
from deepwork.testing.wire import Gone, HttpWire, StdioWire, address_of, result_of, start_server  # noqa: E402

__all__ = [
    "Agent",
    "AgentContract",
    "CliScript",
    "Contract",
    "DeepworkProject",
    "Gone",
    "HttpWire",
    "JobSourceContract",
    "PluginContract",
    "Refused",
    "ReviewRunnerContract",
    "ScriptedCli",
    "ScriptedRunner",
    "StateStoreContract",
    "StateStoreProcessesContract",
    "StdioWire",
    "a_request",
    "a_session",
    "address_of",
    "output",
    "result_of",
    "review",
    "start_server",
    "step",
]
