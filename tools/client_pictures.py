"""Draws what real clients print, for the pages about them: `python tools/client_pictures.py [CLIENT …]`.

`tools/clients.py` installs the clients. Their models are scripted ones on this machine, so no account is needed; what
is drawn is what the client prints, with the folders of this machine replaced.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from clients import FOLDER, install

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "clients"))
from claude_desk import START, Desk
from client_desks import PROGRAM, ClientDesk
from scripted_models import ForgetfulModel

PAGES = Path(__file__).parent.parent / "docs" / "images"
WIDTH = 100
MAX_LINES = 40

# What says nothing of deepwork, or is another each time.
_NOISE = re.compile(
    r"WARNING: proceeding|bubblewrap|Model metadata|bypass-hook-trust|Reading additional input|session id:|Ripgrep|"
    r"YOLO mode|^(approval|sandbox|reasoning|provider|model|workdir)|^-+$|^$"
)
Step = tuple[str, str]


def _claude(folder: Path, programs: Path) -> Iterator[Step]:
    desk = Desk.make(folder, programs)
    desk.run(PROGRAM, "connect", "claude", "--remove")
    yield "deepwork connect claude", desk.run(PROGRAM, "connect", "claude")
    yield "claude mcp list", desk.run("claude", "mcp", "list")
    yield 'claude -p "Start the project tour"', _conversation(desk.agent(START).messages)


def _conversation(messages: list[Any]) -> str:
    """Write what went to and fro: `claude -p` itself prints only the last words."""
    lines = []
    for message in messages:
        content = message["content"]
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        for block in blocks:
            if block["type"] == "tool_use":
                lines.append(f"● {block['name']}({block['input']})")
            elif block["type"] == "tool_result":
                lines.append(f"  ⎿ {_shortened(str(block['content']))}")
            elif "Stop hook feedback" in (text := block.get("text", "")) or message["role"] == "assistant":
                lines.append(f"{'●' if message['role'] == 'assistant' else '>'} {_shortened(text)}")
    return "\n".join(lines)


def _shortened(text: str) -> str:
    return f"{text[:280]} …" if len(text) > 280 else text


def _codex(folder: Path, programs: Path) -> Iterator[Step]:
    yield from _other("codex", 'codex exec "Start the project tour"', folder, programs)


def _gemini(folder: Path, programs: Path) -> Iterator[Step]:
    yield from _other("gemini", 'gemini -p "Start the project tour"', folder, programs)


def _other(client: str, command: str, folder: Path, programs: Path) -> Iterator[Step]:
    model = ForgetfulModel()
    try:
        desk = ClientDesk.make(client, folder, programs, model.url)
        desk.run(PROGRAM, "connect", client, "--remove")
        yield f"deepwork connect {client}", desk.run(PROGRAM, "connect", client)
        yield f"{client} mcp list", desk.run(client, "mcp", "list")
        yield command, desk.work().replace("Do what the model says", "Start the project tour")
        yield "deepwork status", desk.run(PROGRAM, "status")
    finally:
        model.close()


def _opencode(folder: Path, programs: Path) -> Iterator[Step]:
    desk = ClientDesk.make("opencode", folder, programs)
    desk.run(PROGRAM, "connect", "opencode", "--remove")
    yield "deepwork connect opencode", desk.run(PROGRAM, "connect", "opencode")
    yield "opencode mcp list", desk.run("opencode", "mcp", "list")


DRAWN: dict[str, Callable[[Path, Path], Iterator[Step]]] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "opencode": _opencode,
}


def _draw(title: str, steps: list[Step]) -> str:
    console = Console(width=WIDTH, record=True, file=open("/dev/null", "w"), highlight=False)  # noqa: SIM115
    for command, printed in steps:
        console.print(Text(f"$ {command}", style="bold green"))
        lines = [line for line in printed.splitlines() if not _NOISE.search(Text.from_ansi(line).plain)]
        for line in lines[:MAX_LINES]:
            console.print(Text.from_ansi(line))
        if len(lines) > MAX_LINES:
            console.print(Text("…"))
        console.print()
    # Without the web fonts that rich would have the reader's browser fetch.
    return re.sub(r"@font-face {.*?}", "", console.export_svg(title=title, unique_id=title), flags=re.DOTALL)


@click.command()
@click.argument("clients", nargs=-1, type=click.Choice([*DRAWN]))
def main(clients: tuple[str, ...]) -> None:
    """Draw the pictures of these clients, or of all."""
    programs = install(FOLDER)
    for client in clients or DRAWN:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary).resolve()
            places = {str(folder / "project"): "/home/ada/demo", str(folder / "home"): "/home/ada"}
            places[PROGRAM] = "/home/ada/.deepwork-venv/bin/deepwork"
            steps = []
            for command, printed in DRAWN[client](folder, programs):
                for place, name in places.items():
                    printed = printed.replace(place, name)
                steps.append((command, printed))
        file = PAGES / f"client-{client}.svg"
        file.write_text(_draw(client, steps))
        click.echo(f"{file}: {file.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
