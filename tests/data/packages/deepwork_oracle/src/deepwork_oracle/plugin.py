"""What this plugin offers. Every command of `deepwork` imports this module: what is heavy is imported in the hooks."""

from __future__ import annotations

from collections.abc import Iterator

from deepwork import api, hookimpl


@hookimpl
def deepwork_review_runners(context: api.PluginContext) -> Iterator[api.ReviewRunnerSpec]:
    """The runner `oracle`."""
    from deepwork_oracle.runner import OracleRunner, OracleSettings

    settings = context.settings(OracleSettings)
    yield api.ReviewRunnerSpec(
        name="oracle",
        create=lambda: OracleRunner(settings, context.environment),
        max_inline_files=5,
    )
