"""What this plugin offers. Every command of `deepwork` imports this module: what is heavy is imported in the hooks."""

from __future__ import annotations

from collections.abc import Iterator

import click  # [commands]
from deepwork import api, hookimpl  # [stores,runners,jobs,tools,checks]
from deepwork import hookimpl  # [only commands]

# [stores


@hookimpl
def deepwork_state_stores() -> Iterator[api.StateStoreSpec]:
    """The store `acme`."""
    from deepwork_acme.store import AcmeStore

    yield api.StateStoreSpec(name="acme", open=AcmeStore)


# stores]
# [runners


@hookimpl
def deepwork_review_runners(context: api.PluginContext) -> Iterator[api.ReviewRunnerSpec]:
    """The runner `acme`."""
    from deepwork_acme.runner import AcmeRunner

    yield api.ReviewRunnerSpec(
        name="acme",
        create=AcmeRunner,
        max_inline_files=5,
        reads_files=True,  # False for a reviewer that sees the payload alone, such as a service
    )


# runners]
# [jobs


@hookimpl
def deepwork_job_sources() -> Iterator[api.JobSource]:
    """The jobs that ship with this plugin."""
    from deepwork_acme.jobs import AcmeJobs

    yield AcmeJobs()


# jobs]
# [tools


@hookimpl
def deepwork_tool_sets(context: api.PluginContext) -> Iterator[api.ToolSet]:
    """The tool set `acme`."""
    from deepwork_acme.tools import AcmeSettings, tool_set

    yield tool_set(context.settings(AcmeSettings))


# tools]
# [commands


@hookimpl
def deepwork_commands() -> Iterator[click.Command]:
    """The command `deepwork acme`."""
    from deepwork_acme.commands import command

    yield command


# commands]
# [checks


@hookimpl
def deepwork_checks(context: api.PluginContext) -> Iterator[api.Check]:
    """The check `acme`."""
    from deepwork_acme.checks import check

    yield api.Check(name="acme", run=lambda: check(context.project_root))


# checks]
