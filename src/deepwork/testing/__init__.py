"""The kit for tests: of our own parts, and of yours.

Enable its fixtures with `-p deepwork.testing.pytest_plugin`.
"""

from __future__ import annotations

import pytest

# Before the modules are imported, or their asserts stay bare.
pytest.register_assert_rewrite("deepwork.testing.project")

from deepwork.testing.project import Agent, DeepworkProject, Refused, output, review, step  # noqa: E402

__all__ = ["Agent", "DeepworkProject", "Refused", "output", "review", "step"]
