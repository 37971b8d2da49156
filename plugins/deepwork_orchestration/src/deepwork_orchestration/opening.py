"""Opens the plans of a project, for a server or a command."""

from __future__ import annotations

from deepwork.api import PluginContext
from deepwork_orchestration.database import PlanDatabase
from deepwork_orchestration.departures import end_overdue_claims
from deepwork_orchestration.settings import OrchestrationSettings


def open_database(context: PluginContext) -> PlanDatabase:
    """Return the plans of a project. The database itself is opened by the first call.

    Raises:
        ConfigError: The settings of the plugin cannot be used.
    """
    lease = context.settings(OrchestrationSettings).lease_seconds * 1000
    return PlanDatabase(context, lease, end_overdue_claims)
