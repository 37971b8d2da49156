"""Ids of things that plugins store."""

from __future__ import annotations

import re

import pytest

import deepwork_sql

pytestmark = pytest.mark.anyio


def test_an_id_has_its_prefix_and_twelve_characters():
    assert re.fullmatch("wf_[0-9a-z]{12}", deepwork_sql.new_id("wf"))
