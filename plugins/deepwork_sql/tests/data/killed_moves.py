"""Move the database of an earlier release again and again, killed at one step later each time: PROJECT PLAY_BACK.

Steps are the audit events of Python: every open for writing, rename and removal. After each kill a start that is not
killed has to find every event that was in the database. Prints the number of kills.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from deepwork_sql.places import place_of

STEPS = {"os.rename", "os.remove", "os.mkdir", "os.symlink", "sqlite3.connect"}
KILLED = -signal.SIGKILL


def move(root: Path, play_back: bool, kill_at: int) -> int:
    """Move it in a child, which kills itself at a step, and give its exit code."""
    child = os.fork()
    if child == 0:
        place = place_of(root, os.environ, scope="repository")
        steps = 0

        def kill(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal steps
            if event in STEPS or (event == "open" and int(str(arguments[2])) & os.O_ACCMODE != os.O_RDONLY):
                steps += 1
                if steps == kill_at:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(kill)
        if play_back and place.old.is_own:
            with place.locked() as home:
                place.take_over(home, play_back=True)
        else:
            place.prepare()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def events(root: Path) -> int:
    """Count the events of the database that a start uses now."""
    path = place_of(root, os.environ, scope="repository").prepare()
    assert isinstance(path, Path), "it is not in use"
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM deepwork_events").fetchone()[0])


def main() -> None:
    """Kill it at every step."""
    root, play_back = Path(sys.argv[1]), sys.argv[2] == "True"
    state = Path(os.environ["XDG_STATE_HOME"])
    home = Path(os.environ["HOME"])
    for path in (root, state, home):
        shutil.copytree(path, f"{path}.before", symlinks=True)
    kills = 0
    while True:
        ended = move(root, play_back, kills + 1)
        if ended == KILLED and play_back:  # its user says so again, if a file beside it is still there
            move(root, play_back, -1)
        assert events(root) == int(sys.argv[3]), f"after a kill at step {kills + 1}"
        if ended != KILLED:
            break
        kills += 1
        for path in (root, state, home):
            shutil.rmtree(path)
            shutil.copytree(f"{path}.before", path, symlinks=True)
    print(kills)


main()
