"""Takes the pictures of the dashboard in the docs, of a project on which agents have worked.

python plugins/deepwork_dashboard/tools/pictures.py     write docs/images/dashboard-*.png
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import browsing
import team as teams
from figures_pages import dashboard, read

IMAGES = Path(__file__).parents[3] / "docs" / "images"
SIZE = {"width": 1120, "height": 700}
PHONE = {"width": 380, "height": 700}


def main() -> None:
    """Make the project, and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=IMAGES, help="where to write (default: docs/images)")
    folder = parser.parse_args().folder
    executable = browsing.chromium()
    if executable is None:
        parser.exit(69, "Error: there is no Chromium; on Debian: apt-get install chromium\n")
    with tempfile.TemporaryDirectory() as temporary:
        team = teams.tell(Path(temporary) / "acme")
        with dashboard(team.root) as address, browsing.launched(executable) as browser:
            for name, (view, scheme, size) in views(address).items():
                context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce")
                page = context.new_page()
                page.goto(address)
                page.locator("main h1").wait_for()
                page.goto(f"{address.partition('#')[0]}{view}")
                page.locator("main h1").wait_for()
                page.locator(".loading").first.wait_for(state="detached")
                page.get_by_title("Live").wait_for()
                page.wait_for_timeout(300)  # for the drawing of a plan, which has no end to wait for
                file = folder / f"dashboard-{name}.png"
                page.screenshot(path=file)
                print(f"{file.name}: {file.stat().st_size / 1024:.0f} KiB")
                context.close()


def views(address: str) -> dict[str, tuple[str, str, dict[str, int]]]:
    """Give the view, the theme and the size of each picture."""
    runs = {run["goal"]: run["id"] for run in read(address, "api/runs")["items"]}
    [plan] = [plan["id"] for plan in read(address, "api/plans")["items"] if "billing" in plan["name"]]
    tasks = {row[1]: row[0] for row in read(address, f"api/plans/{plan}/graph")["rows"]}
    return {
        "inbox": ("#/inbox", "light", SIZE),
        "run": (f"#/runs/{runs['Explain the growth of storage costs']}?step=draft", "light", SIZE),
        "plan": (f"#/plans/{plan}?task={tasks['Reconcile sums']}", "dark", SIZE),
        "phone": ("#/overview", "light", PHONE),
    }


if __name__ == "__main__":
    main()
