"""The groups of this feature: their commands are added to those of the core's groups of the same names."""

from __future__ import annotations

import click

from deepwork.builtin.upkeep.changes import abort, override, pause, reopen_step, undo, unpause
from deepwork.builtin.upkeep.gate import list_reviews, try_gate
from deepwork.builtin.upkeep.jobs import list_jobs
from deepwork.builtin.upkeep.sessions import clean, history, resume_text, show
from deepwork.builtin.upkeep.stack import get_stack
from deepwork.builtin.upkeep.verify import verify

sessions = click.Group("sessions", help="Show, verify, abort, reopen or archive sessions.")
gate = click.Group("gate", help="List what is reviewed, and try a step's reviews on files.")
jobs = click.Group("jobs", help="List jobs, and print their sessions for hooks.")
for _command in (show, history, resume_text, verify, abort, override, pause, unpause, undo, reopen_step, clean):
    sessions.add_command(_command)
for _command in (list_reviews, try_gate):
    gate.add_command(_command)
for _command in (list_jobs, get_stack):
    jobs.add_command(_command)
