"""What every implementation of a port has to do: subclass the contract, and override one fixture."""

from __future__ import annotations

from deepwork.testing.contracts.agent import AgentContract, CliScript, ScriptedCli
from deepwork.testing.contracts.contract import Contract
from deepwork.testing.contracts.job_source import JobSourceContract
from deepwork.testing.contracts.plugin import PluginContract
from deepwork.testing.contracts.processes import StateStoreProcessesContract
from deepwork.testing.contracts.review_runner import ReviewRunnerContract
from deepwork.testing.contracts.state_store import StateStoreContract

__all__ = [
    "AgentContract",
    "CliScript",
    "Contract",
    "JobSourceContract",
    "PluginContract",
    "ReviewRunnerContract",
    "ScriptedCli",
    "StateStoreContract",
    "StateStoreProcessesContract",
]
