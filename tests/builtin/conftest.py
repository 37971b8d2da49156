from __future__ import annotations

import pytest

from deepwork.models.sessions import SCHEMA_VERSION, Session


@pytest.fixture
def session():
    """Make a session; anything can be given otherwise."""

    def session(session_id="s1", **more):
        facts = {
            "schema_version": SCHEMA_VERSION,
            "session_id": session_id,
            "job_name": "demo",
            "workflow_name": "main",
            "goal": "a goal",
            "current_step_id": "a",
            "started_at": "2026-01-01T00:00:00.000000+00:00",
            "updated_at": "2026-01-01T00:00:00.000000+00:00",
            **more,
        }
        return Session.model_validate(facts)

    return session
