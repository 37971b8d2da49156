"""A look into the files that steps have reported."""

from __future__ import annotations

import os

import pytest

from deepwork_dashboard.previews import MAX_FILE, MAX_TEXT

pytestmark = pytest.mark.anyio


@pytest.fixture
async def reported(project):
    """A session whose first step has reported files of every kind."""
    many = {"type": "files", "description": "files", "required": True}
    project.write_job(
        "files",
        [
            {
                "id": "make",
                "name": "Make",
                "description": "d",
                "instructions_file": "steps/make.md",
                "outputs": {"made": many},
                "reviews": [],
            },
            {
                "id": "use",
                "name": "Use",
                "description": "d",
                "instructions_file": "steps/use.md",
                "outputs": {},
                "reviews": [],
            },
        ],
    )
    contents = {
        "text.md": "# <script>alert(1)</script> ü\n",
        "long.txt": "ü" * MAX_TEXT,
        "binary.bin": b"\x00\x01\x02",
        "latin.txt": "\xfc".encode("latin-1") * 10,
        "large.txt": "x" * (MAX_FILE + 1),
        "gone.md": "gone",
        "link.md": "before",
        "changed.md": "before",
        "folder.md": "before",
    }
    for name, content in contents.items():
        project.write(name, content)
    async with project.agent("core") as agent:
        first_step = await agent.start("files", "main")
        await agent.finish({"made": [*contents]}, session_id=first_step["session_id"])
    return first_step["session_id"]


async def test_previews_are_short_texts_of_reported_files(project, reported, tmp_path):
    project.write("secret.txt", "secret")
    outside = tmp_path / "outside.txt"
    outside.write_text("secret")
    for name in ("gone.md", "link.md", "folder.md"):
        (project.root / name).unlink()
    os.symlink(outside, project.root / "link.md")
    (project.root / "folder.md").mkdir()
    project.write("changed.md", "after")
    with project.dashboard() as dash:

        def preview(path, step="make"):
            return dash.ask(f"api/sessions/{reported}/preview?step={step}&path={path}")

        previews = {
            path: preview(path).json() for path in ("text.md", "long.txt", "changed.md", "latin.txt", "binary.bin")
        }
        assert previews["text.md"] == {
            "path": "text.md",
            "kind": "text",
            "size": 31,
            "text": "# <script>alert(1)</script> ü\n",
            "truncated": False,
            "changed": False,
            "reason": None,
        }
        assert previews["long.txt"]["truncated"]
        assert previews["long.txt"]["text"] == "ü" * (MAX_TEXT // 2)
        assert (previews["changed.md"]["text"], previews["changed.md"]["changed"]) == ("after", True)
        assert {previews[name]["kind"] for name in ("binary.bin", "latin.txt")} == {"binary"}
        kinds = {name: preview(name).json() for name in ("large.txt", "gone.md", "link.md", "folder.md")}
        assert {name: answer["kind"] for name, answer in kinds.items()} == {
            "large.txt": "large",
            "gone.md": "missing",
            "link.md": "refused",
            "folder.md": "refused",
        }
        assert all(answer["text"] is None for answer in kinds.values())
        assert "outside" in kinds["link.md"]["reason"]
        for path in (
            "secret.txt",
            "../outside.txt",
            str(outside),
            "./text.md",
            "",
            ".deepwork/jobs/files/job.yml",
            "%00",
        ):
            assert preview(path).status == 404, path
        assert preview("text.md", step="use").status == 404


async def test_the_file_of_a_report_that_failed_its_review_is_shown_as_it_is_now(project):
    """Whoever decides about it can read it, and sees whether it is still what was judged."""
    async with project.agent("core") as agent:
        first_step = await agent.start("report", "main")
        project.write("gather.md")
        await agent.finish({"gather.md": "gather.md"}, session_id=first_step["session_id"])
        project.write("write.md", "bad\n")
        await agent.finish({"write.md": "write.md"}, session_id=first_step["session_id"])
    with project.dashboard() as dash:
        of_write = f"api/sessions/{first_step['session_id']}/preview?step=write&path="
        preview_before = dash.get(f"{of_write}write.md")
        assert (preview_before["text"], preview_before["changed"]) == ("bad\n", False)
        project.write("write.md", "better\n")
        preview_after = dash.get(f"{of_write}write.md")
        assert (preview_after["text"], preview_after["changed"]) == ("better\n", True)
        assert dash.ask(f"{of_write}gather.md").status == 404
