"""What an agent is told when it is started."""

from __future__ import annotations

from collections.abc import Sequence

from deepwork.text import one_line

MAX_HELD = 5

FIRST = """\
Work through session {session_id} of the MCP server `deepwork` until its workflow is complete. Nobody sits at this \
terminal: do not ask, decide by what the steps say.

Begin with this call of the tool finished_step: session_id="{session_id}", step_id="?", outputs={{}}. It answers with \
the step that is open. Do what its instructions say, report it with finished_step and its outputs, and go on with the \
step that comes back, until the status is workflow_complete. Start no other workflow.

If the server says that only a person can decide, end your turn."""

LATER = """\
{first}

Another agent has worked on it before you and has ended. What it has completed is not done again. What it left half \
done is in the working tree as it was: look at it before you write. This is where the session stands:

{resume}"""


HELD = """

The agents before you hold this for the session, and you go on with it in their names:
{lines}"""


def prompt_of(session_id: str, resume: str | None, held: Sequence[str] = ()) -> str:
    """Return the prompt.

    Args:
        session_id: The session.
        resume: The resume text; None for a session without any work.
        held: The claims of the agents before, each in a line.
    """
    first = FIRST.format(session_id=session_id)
    prompt = LATER.format(first=first, resume=resume) if resume else first
    more = [f"{len(held) - MAX_HELD} more"] if len(held) > MAX_HELD else []
    lines = "\n".join(f"- {one_line(line)}" for line in (*held[:MAX_HELD], *more))
    return prompt + HELD.format(lines=lines) if held else prompt
