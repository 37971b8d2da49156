"""Do the same to a store and to a dictionary, in any order, for as long as one likes: `agree.py --help`."""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path

import click
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from deepwork.api import StateStore, Workspace
from deepwork.builtin.json_store import JsonStore
from deepwork.testing.machines import StoreMachine
from deepwork_sql.machines import PostgresMachine, SqliteMachine


class JsonMachine(StoreMachine):
    """Every run is of a project of its own."""

    def place(self) -> partial[StateStore]:
        """Make a project."""
        self._folder = tempfile.TemporaryDirectory()
        return partial(JsonStore, Workspace(Path(self._folder.name).resolve()))

    def teardown(self) -> None:
        """Close the store, and delete its folder."""
        super().teardown()
        self._folder.cleanup()


MACHINES: dict[str, type[StoreMachine]] = {
    "json": JsonMachine,
    "sqlite": SqliteMachine,
    "postgresql": PostgresMachine,
}


@click.command()
@click.option("--store", "stores", multiple=True, type=click.Choice([*MACHINES]), help="Only this one.")
@click.option("--runs", default=2000, show_default=True, help="How many runs of each store.")
@click.option("--rules", default=50, show_default=True, help="How many calls a run has at most.")
def main(stores: tuple[str, ...], runs: int, rules: int) -> None:
    """Compare JSON, SQLite and PostgreSQL with the same dictionary; what equals it is equal to each other."""
    for name in stores or MACHINES:
        begin = time.monotonic()
        limits = settings(
            max_examples=runs,
            stateful_step_count=rules,
            deadline=None,
            database=None,
            print_blob=True,
            suppress_health_check=[*HealthCheck],
        )
        run_state_machine_as_test(MACHINES[name], settings=limits)
        print(f"{name:10}  {runs} runs of up to {rules} rules agree, {time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
