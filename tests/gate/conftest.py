"""What tests of the gate share."""

from __future__ import annotations

import json
import os

import pytest

from deepwork.paths.user_folders import user_config_file


@pytest.fixture
def user_config():
    """Write the section `quality_gate` of the user's own configuration, which needs no trust."""

    def write(**gate):
        file = user_config_file(os.environ)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"quality_gate": gate}))

    return write
