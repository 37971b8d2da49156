"""The question to a person which workflow is to be started, where an agent names none that there is."""

from __future__ import annotations

from anyio import to_thread

from deepwork.errors import UnknownWorkflow
from deepwork.jobs.catalogue import Catalogue
from deepwork.jobs.lookup import alternatives
from deepwork.ports.call import ToolCall
from deepwork.text import MAX_LISTED, one_line


async def chosen_names(call: ToolCall, catalogue: Catalogue, job_name: str, workflow_name: str) -> tuple[str, str]:
    """Return the names of a job and of a workflow; if they are ambiguous, as the person at the client chooses.

    Raises:
        UnknownWorkflow: The person has chosen none.
    """
    if not call.can_elicit:
        return job_name, workflow_name
    options = await to_thread.run_sync(alternatives, catalogue, job_name, workflow_name)
    if not 1 < len(options) <= MAX_LISTED:  # fewer leave no choice, more are too many to choose from
        return job_name, workflow_name
    names = one_line(f"{job_name}/{workflow_name}")
    choice = await call.choose(f"An agent wants to start {names}, which there is not. Which one is meant?", [*options])
    if choice is None:
        raise UnknownWorkflow(
            f"There is no workflow {names}, and the person who was asked has chosen none of: {', '.join(options)}",
            hint="Ask the user what is to be done.",
        )
    return options[choice]
