"""Which reviewers judge which reviews, as the configuration says."""

from __future__ import annotations

from collections.abc import Iterable

from deepwork.errors import ConfigError
from deepwork.gate.work import Reviewer, Route, Routing, missing_reviewer
from deepwork.loading.discovery import Candidate
from deepwork.loading.faults import guarded_runner
from deepwork.loading.manager import Answers, PluginManager, Provided
from deepwork.loading.selection import by_name, choose
from deepwork.ports.records import ReviewRunnerSpec
from deepwork.project.config import REVIEWERS, SELF_REVIEW, GateSection


def routing(name: str, section: GateSection, runners: Answers[ReviewRunnerSpec], plugins: PluginManager) -> Routing:
    """Return which runner judges which reviews: the named one all that the configuration routes to no other.

    Raises:
        PluginError: No plugin offers a runner that is named, or two offer one of the same name.
        ConfigError: A command of the configuration has the name of a plugin's runner.
    """
    _check_command_names(section.commands, runners.items)
    specs = by_name("review runner", runners.demand(), lambda spec: spec.name)
    reviewers: dict[str, Reviewer] = {}

    def reviewer(name: str, option: str) -> Reviewer:
        if name not in reviewers:
            provided = choose("review runner", name, specs, option=option, left_out=plugins.left_out)
            reviewers[name] = Reviewer(guarded_runner(provided.item, provided.by))
        return reviewers[name]

    if name == SELF_REVIEW and name not in specs:
        default = missing_reviewer(name, plugins.left_out_text)
    else:
        default = reviewer(name, "--external-runner or quality_gate.runner")
    routes = [
        Route(
            tuple(reviewer(name, "quality_gate.runners") for name in route.runners),
            route.job,
            route.step,
            route.review,
        )
        for route in section.runners
    ]
    return Routing(default, routes)


def _check_command_names(commands: Iterable[str], runners: Iterable[Provided[ReviewRunnerSpec]]) -> None:
    """Refuse a command of the configuration that has the name of a plugin's runner: renaming it is the only cure.

    Raises:
        ConfigError: There is one.
    """
    owners: dict[str, list[Candidate]] = {}
    for runner in runners:
        owners.setdefault(runner.item.name, []).append(runner.by)
    for name in commands:
        plugins = owners.get(name, [])
        if len(plugins) > 1:
            owner = next((plugin for plugin in plugins if plugin.name != REVIEWERS), plugins[0])
            raise ConfigError(
                f"quality_gate.commands.{name}: this name is taken by the runner of {owner}",
                hint="Give the command another name.",
            )
