"""What the plugin declares; it stands on `deepwork.api` alone."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from deepwork import hookimpl
from deepwork.api import ResourceSpec, ReviewRunnerSpec, StateStoreSpec, ToolSet, ToolSpec


class AcmeSettings(BaseModel):
    model_config = ConfigDict(extra="forbid")

    greeting: str = "hello"


@hookimpl
def deepwork_job_sources(context):
    from acme_tracker.parts import AcmeJobs

    yield AcmeJobs()


@hookimpl
def deepwork_state_stores():
    from acme_tracker.parts import AcmeStore

    return [StateStoreSpec(name="acme", open=AcmeStore)]


@hookimpl
def deepwork_review_runners():
    from acme_tracker.parts import AcmeRunner

    yield ReviewRunnerSpec(name="acme", create=AcmeRunner, max_inline_files=0)


@hookimpl
def deepwork_tool_sets(context, engine):
    from acme_tracker import tools

    greeting = context.settings(AcmeSettings).greeting
    context.log.info("acme is ready, platform: %s", context.platform)
    yield ToolSet(
        name="acme",
        prefix="acme_",
        instructions="Acme tools say hello.",
        subsets={"reader": ["where", "text"], "greeter": ["greet"]},
        tools=[
            ToolSpec("greet", tools.greeter(greeting), title="Greet", output=tools.Greeting, read_only=True),
            ToolSpec("where", tools.where, title="Where a sync tool runs", output="object"),
            ToolSpec("text", tools.text, title="Plain text", output="text"),
            ToolSpec("nothing", tools.nothing, title="An empty list", output="json"),
            ToolSpec("gate", tools.gate_reader(engine), title="Show the quality gate", output="json"),
            ToolSpec("jobs", tools.job_counter(engine), title="Count jobs", output="json"),
            ToolSpec("refuse", tools.refuse, title="Refuse", output="text"),
            ToolSpec("crash", tools.crash, title="Crash", output="text"),
            ToolSpec("wait", tools.wait, title="Wait for a file", output="text"),
        ],
        resources=[
            ResourceSpec("acme://about", tools.about, "about", "About Acme"),
            ResourceSpec("acme://items/{item}", tools.item, "item", "One item", mime_type="text/markdown"),
        ],
    )
