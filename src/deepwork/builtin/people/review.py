"""`deepwork inbox review`: a person reads what waits for their review, and comments on its lines in an editor."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

import click

from deepwork.api import Project, project_at
from deepwork.builtin.people.comments_file import HELP, Said, read_text
from deepwork.builtin.people.items import look, named, run
from deepwork.commands.options import path_option
from deepwork.commands.person import at_terminal
from deepwork.commands.terminal import say
from deepwork.errors import ArgumentError, DeepWorkError
from deepwork.ports.inbox import Answer, InboxItem
from deepwork.text import visible

CHANGES = "changes"
MAX_SHOWN = 1024**2


@click.command()
@click.argument("item_id", metavar="ID")
@path_option
def review(item_id: str, root: str) -> None:
    """Read a step that waits for your review, and ask for changes: comments on its lines, in your editor.

    It needs a terminal. `deepwork inbox answer ID pass` passes the step.
    """
    project, by = project_at(root), at_terminal()
    by.check_person("review what an agent has made")

    async def read() -> tuple[InboxItem, dict[str, Any], list[tuple[str, bytes | None]]]:
        item = named(await look(project, by), item_id)
        if not any(action.comments for action in item.actions):
            raise ArgumentError(f"{item.id!r} does not wait for a review; nothing was changed")
        return item, *await _work(project, item)

    item, piece, contents = run(project, read)
    click.echo_via_pager(_page(item, piece, contents))
    paths = [path for path, content in contents if content is not None]
    listed = "".join(f"#   {visible(path)}\n" for path in paths)
    written = click.edit(f"\n{HELP}{listed}", extension=".md")
    try:
        remarks = read_text(written or "", paths)
        if not remarks.text and not remarks.comments:
            say("Nothing was written, and nothing was changed.", err=True)
            return
        say(run(project, lambda: _ask(project, item, remarks)))
    except DeepWorkError as error:
        with tempfile.NamedTemporaryFile("w", prefix="review-", suffix=".md", delete=False, encoding="utf-8") as file:
            file.write(written or "")
        raise type(error)(error.message, hint=f"What you wrote is in {file.name}. {error.hint or ''}".strip()) from None


async def _work(project: Project, item: InboxItem) -> tuple[dict[str, Any], list[tuple[str, bytes | None]]]:
    """Return the piece of work of an item, and the contents of its newest attempt that can be shown."""
    session, step_id = item.reference["id"], item.reference["step_id"]
    piece = (await project.pieces().piece(session, step_id)).as_json()
    newest = piece["attempts"][-1]
    keys = [
        (newest["number"], file["path"])
        for file in newest["files"]
        if file["kept"] and file["kind"] not in ("image", "binary") and file["size"] <= MAX_SHOWN
    ]
    contents = await project.pieces().contents(session, step_id, keys)
    return piece, [(file["path"], contents.get((newest["number"], file["path"]))) for file in newest["files"]]


async def _ask(project: Project, item: InboxItem, remarks: Said) -> str:
    answer = Answer(CHANGES, remarks.text or None, comments=remarks.comments, state=item.state)
    return await project.inbox().answer(item.id, answer, at_terminal())


def _page(item: InboxItem, piece: dict[str, Any], contents: list[tuple[str, bytes | None]]) -> Iterator[str]:
    """Yield what is read: what is asked, what was said before, and the files with numbered lines."""
    newest = piece["attempts"][-1]
    yield f"{visible(item.what)}, attempt {newest['number']}\nGoal: {visible(piece['goal'])}\n"
    for name, question in newest["criteria"].items():
        yield f"Asked: {visible(name)}: {visible(question)}\n"
    for comment in piece["comments"]:
        place = comment["place"] or {}
        must = ", must" if comment["must"] else ""
        where = f"{comment['file']}:{place.get('line', '?')}"
        yield f"{comment['id']} ({comment['state']}{must}) {visible(where)}: {visible(comment['text'])}\n"
        for answer in comment["answers"]:
            yield f"    answered: {visible(answer['text'])}\n"
    closed = {file["path"] for file in newest["files"] if file["secret"]}
    for path, content in contents:
        yield f"\n==> {visible(path)}\n"
        if path in closed:
            yield "(not shown: it looks as if it held secrets; the pages show it once you ask for it)\n"
            continue
        if content is None:
            yield "(not shown: it is no text, is too large, or is not kept here)\n"
            continue
        for number, line in enumerate(_lines(content), 1):
            yield f"{number:6}  {visible(line)}\n"


def _lines(content: bytes) -> list[str]:
    """Divide a content into lines, as comments number them."""
    lines = content.decode("utf-8", "backslashreplace").split("\n")
    return lines[:-1] if len(lines) > 1 and not lines[-1] else lines
