"""A database that a repository brings: a project may choose the store `sql`, whose file git could carry."""

from __future__ import annotations

import os

import pytest

pytestmark = pytest.mark.anyio

SECRET = "what lies outside"


@pytest.mark.parametrize("kind", ["garbage", "fifo", "/dev/zero", "folder", "link"])
async def test_a_database_that_a_repository_brings_is_not_touched_and_is_in_nobodys_way(project, tmp_path, kind):
    """A project may choose the store `sql` without trust; earlier releases kept its file where git could put one."""
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
    async with project.agent() as agent:
        assert await agent.call("get_workflows")
        await agent.start()
        reply = await agent.finish({"a.md": "a.md"})
    assert reply["status"] == "next_step"
    assert outside.read_text() == SECRET
