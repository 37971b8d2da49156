"""A database that a repository brings: a project may choose the store `sql`, whose file git could carry."""

from __future__ import annotations

import os
from contextlib import suppress

import pytest

from deepwork.testing import Refused

pytestmark = pytest.mark.anyio

SECRET = "what lies outside"


@pytest.mark.parametrize("kind", ["garbage", "fifo", "/dev/zero", "folder", "link"])
async def test_a_database_that_a_repository_brings_makes_no_internal_error_and_leads_nowhere(project, tmp_path, kind):
    """A project may choose the store `sql` without trust; its file then lies where git could put one."""
    project.write_job()
    project.write("a.md")
    project.write(".deepwork/config.yml", "state: {store: sql}\n")
    outside = project.write(tmp_path / "outside.db", SECRET)
    path = project.root / ".deepwork" / "data" / "deepwork.db"
    path.parent.mkdir(parents=True)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "garbage":
        path.write_bytes(b"SQLite format 3\0" + os.urandom(5000))
    else:
        path.symlink_to(outside if kind == "link" else kind)
    refusals = []
    with suppress(Refused):
        async with project.agent() as agent:
            for tool, arguments in (
                ("get_workflows", {}),
                ("start_workflow", {"goal": "g", "job_name": "demo", "workflow_name": "main"}),
                ("finished_step", {"outputs": {"a.md": "a.md"}}),
            ):
                try:
                    await agent.call(tool, **arguments)
                except Refused as error:
                    refusals.append(str(error))
    assert refusals
    assert not [text for text in refusals if "internal error" in text or SECRET in text]
    assert outside.read_text() == SECRET
