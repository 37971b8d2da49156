from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _nobodys_home(nobodys_home):
    """No test looks at the clients of the person who runs it."""
