"""Draws the pictures in the docs: `python tools/pictures.py [NAME …]`, of the demo, of clients and of the dashboard.

`tools/clients.py` installs the clients. Their models are scripted ones on this machine, so no account is needed; what
is drawn is what a program prints, with the folders of this machine replaced. The dashboard is that of two projects on
which agents have worked, in the Chromium of this machine.
"""

from __future__ import annotations

import io
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

import click
from click.testing import CliRunner
from rich.console import Console
from rich.text import Text

from clients import FOLDER, install
from deepwork.builtin.demo.command import demo

sys.path += [str(Path(__file__).parents[1] / name) for name in ("tests/clients", "plugins/deepwork_dashboard/tests")]
import browsing
import reviewed
import team as teams
from claude_desk import START, Desk
from client_desks import PROGRAM, ClientDesk
from scripted_models import ForgetfulModel
from served import Dashboard

if TYPE_CHECKING:
    from playwright.sync_api import Browser

IMAGES = Path(__file__).parents[1] / "docs" / "images"
TOUR = "Start the project tour"
MAX_LINES = 40
# The first words of the demo and the last are for people at a terminal.
ACTS = slice(2, -2)
# What says nothing of deepwork, or is another each time.
NOISE = re.compile(
    r"WARNING: proceeding|bubblewrap|Model metadata|bypass-hook-trust|Reading additional input|session id:|Ripgrep|"
    r"YOLO mode|^(approval|sandbox|reasoning|provider|model|workdir)|^-+$|^$"
)
SIZES = {"page": (1120, 700), "phone": (380, 700), "wide": (1280, 860)}

Step = tuple[str, str]  # a command, and what it has printed
View = tuple[str, str, str]  # its address, the theme, and one of the sizes


# What programs print.


def draw(file: Path, title: str, width: int, texts: Iterable[Text]) -> None:
    """Draw a terminal with these texts."""
    console = Console(width=width, record=True, file=io.StringIO())
    for text in texts:
        console.print(text)
    picture = console.export_svg(title=title, unique_id=title.replace(" ", "-"))
    # Without the web fonts that rich would have the reader's browser fetch.
    file.write_text(re.sub(r"@font-face {.*?}", "", picture, flags=re.DOTALL))


def draw_demo(folder: Path) -> None:
    """Play `deepwork demo`, and draw what was printed."""
    played = CliRunner().invoke(demo, color=True, catch_exceptions=False)
    if played.exit_code:
        raise click.ClickException(played.output)
    printed = re.sub(r"/\S*/deepwork-demo-\w+", "…", "\n".join(played.stdout.splitlines()[ACTS]))
    draw(folder / "exchange.svg", "deepwork demo", 118, [Text.from_ansi(printed)])


def draw_client(folder: Path, *, client: str, played: Callable[[Path, Path], Iterator[Step]]) -> None:
    """Draw what a client prints, command by command."""
    programs = install(FOLDER)
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary).resolve()
        names = {str(place / "project"): "/home/ada/demo", str(place / "home"): "/home/ada"}
        names[PROGRAM] = "/home/ada/.deepwork-venv/bin/deepwork"
        steps = [(command, _replaced(printed, names)) for command, printed in played(place, programs)]
    draw(folder / f"client-{client}.svg", client, 100, _texts(steps))


def _replaced(text: str, names: dict[str, str]) -> str:
    for place, name in names.items():
        text = text.replace(place, name)
    return text


def _texts(steps: list[Step]) -> Iterator[Text]:
    for command, printed in steps:
        yield Text(f"$ {command}", style="bold green")
        lines = [line for line in map(Text.from_ansi, printed.splitlines()) if not NOISE.search(line.plain)]
        yield from lines[:MAX_LINES]
        if len(lines) > MAX_LINES:
            yield Text("…")
        yield Text()


def _claude(folder: Path, programs: Path) -> Iterator[Step]:
    desk = Desk.make(folder, programs)
    desk.run(PROGRAM, "connect", "claude", "--remove")
    yield "deepwork connect claude", desk.run(PROGRAM, "connect", "claude")
    yield "claude mcp list", desk.run("claude", "mcp", "list")
    yield f'claude -p "{TOUR}"', _conversation(desk.agent(START).messages)


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


def _other(folder: Path, programs: Path, *, client: str, words: str) -> Iterator[Step]:
    model = ForgetfulModel()
    try:
        desk = ClientDesk.make(client, folder, programs, model.url)
        desk.run(PROGRAM, "connect", client, "--remove")
        yield f"deepwork connect {client}", desk.run(PROGRAM, "connect", client)
        yield f"{client} mcp list", desk.run(client, "mcp", "list")
        if words:
            yield f'{client} {words} "{TOUR}"', desk.work().replace("Do what the model says", TOUR)
            yield "deepwork status", desk.run(PROGRAM, "status")
    finally:
        model.close()


# The dashboard.


def draw_dashboard(folder: Path) -> None:
    """Take the pictures of the dashboard of two projects."""
    executable = browsing.chromium()
    if executable is None:
        raise click.ClickException("there is no Chromium; on Debian: apt-get install chromium")
    with tempfile.TemporaryDirectory() as temporary:
        team = teams.tell(Path(temporary) / "acme")
        shop, session = reviewed.tell(Path(temporary) / "shop")
        with browsing.launched(executable) as browser:
            with Dashboard(team.root, Path(temporary)) as dashboard:
                for name, view in views(dashboard).items():
                    take(browser, dashboard, view, folder / f"dashboard-{name}.png")
            with Dashboard(shop.root, Path(temporary)) as dashboard:
                view = (f"#/sessions/{session}/steps/plan", "light", "wide")
                take(browser, dashboard, view, folder / "dashboard-piece.png")


def take(browser: Browser, dashboard: Dashboard, view: View, file: Path) -> None:
    """Take the picture of a view."""
    place, scheme, size = view
    viewport: Any = dict(zip(("width", "height"), SIZES[size], strict=True))
    context = browser.new_context(viewport=viewport, color_scheme=scheme, reduced_motion="reduce")
    page = context.new_page()
    dashboard.enter(page, place)
    page.get_by_title("Live").wait_for()
    page.wait_for_timeout(300)  # for the drawing of a plan, which has no end to wait for
    page.screenshot(path=file)
    context.close()


def read(dashboard: Dashboard, path: str) -> Any:
    """Return what the dashboard answers to a GET."""
    with urlopen(Request(dashboard.url + path, headers={"Authorization": f"Bearer {dashboard.TOKEN}"})) as answer:
        return json.load(answer)


def views(dashboard: Dashboard) -> dict[str, View]:
    """Return the view of each picture."""
    sessions = {session["goal"]: session["id"] for session in read(dashboard, "api/sessions")["items"]}
    [plan] = [plan["id"] for plan in read(dashboard, "api/plans")["items"] if "billing" in plan["name"]]
    tasks = {row[1]: row[0] for row in read(dashboard, f"api/plans/{plan}/graph")["rows"]}
    return {
        "inbox": ("#/inbox", "light", "page"),
        "session": (f"#/sessions/{sessions['Explain the growth of storage costs']}?step=draft", "light", "page"),
        "plan": (f"#/plans/{plan}?task={tasks['Reconcile sums']}", "dark", "page"),
        "phone": ("#/overview", "light", "phone"),
    }


CLIENTS: dict[str, Callable[[Path, Path], Iterator[Step]]] = {
    "claude": _claude,
    "codex": partial(_other, client="codex", words="exec"),
    "gemini": partial(_other, client="gemini", words="-p"),
    "opencode": partial(_other, client="opencode", words=""),
}
PICTURES: dict[str, Callable[[Path], None]] = {
    "demo": draw_demo,
    **{name: partial(draw_client, client=name, played=played) for name, played in CLIENTS.items()},
    "dashboard": draw_dashboard,
}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice([*PICTURES]))
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), default=IMAGES, help="Draw them there.")
def main(names: tuple[str, ...], folder: Path) -> None:
    """Draw these pictures, or all."""
    for name in names or PICTURES:
        click.echo(name)
        PICTURES[name](folder)


if __name__ == "__main__":
    main()
