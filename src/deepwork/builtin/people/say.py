"""`deepwork say`: a remark of a person to the agent of a session."""

from __future__ import annotations

import click

from deepwork.api import project_at
from deepwork.commands.options import check_text, json_option, path_option, session_id_argument
from deepwork.commands.person import at_terminal
from deepwork.commands.terminal import say as print_line
from deepwork.commands.terminal import say_json


@click.command(epilog="Example: deepwork say 3f2a 'Leave the migrations alone'")
@session_id_argument
@click.argument("text")
@path_option
@json_option
def say(session_id: str, text: str, root: str, as_json: bool) -> None:
    """Tell the agent of a session something, at its next call of any tool.

    The text is a note on the current step: it stands until the step is reported. For people: it needs a terminal.
    """
    check_text(text, "TEXT")
    by = at_terminal()
    session = project_at(root).change_session(session_id, lambda changes, session: changes.say(session, text, by))
    if as_json:
        say_json({"session_id": session.session_id, "step_id": session.current_step_id, "text": text.strip()})
        return
    print_line(f"said  {session.session_id}  {session.workflow}, step {session.current_step_id}")
