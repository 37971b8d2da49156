"""What an agent is told when it is started."""

from __future__ import annotations

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


def prompt_of(session_id: str, resume: str | None) -> str:
    """Return the prompt; `resume` is the resume text, None for a session without any work."""
    first = FIRST.format(session_id=session_id)
    return LATER.format(first=first, resume=resume) if resume else first
