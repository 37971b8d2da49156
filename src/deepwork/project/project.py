"""The composition root: joins the configuration and the plugins of one project to what servers and commands use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from deepwork.errors import ConfigError, PathRefused, RunnerUnavailable, UnknownName
from deepwork.jobs.catalogue import Catalogue
from deepwork.loading.discovery import Candidate, in_folder, installed
from deepwork.loading.faults import GuardedSource, guarded_store
from deepwork.loading.manager import Answers, PluginManager, Provided
from deepwork.loading.selection import by_name, choose, choose_tool_sets
from deepwork.paths.user_folders import user_state_dir
from deepwork.paths.workspace import Workspace
from deepwork.ports.agent import NAME_VARIABLE, AgentSpec
from deepwork.ports.context import PluginContext, TrustedCommand
from deepwork.ports.inbox import InboxSource
from deepwork.ports.job_source import JobSource
from deepwork.ports.proofs import Prover
from deepwork.ports.records import (
    AgentMail,
    Check,
    ClaimKeeper,
    HttpApp,
    ReviewRunnerSpec,
    StateStoreSpec,
    ToolSet,
    UnlistedTool,
)
from deepwork.project.access import Project as ProjectAccess
from deepwork.project.config import REVIEWERS, SELF_REVIEW, Config, load_config, resolve_root
from deepwork.project.contexts import ProjectContext, contexts
from deepwork.project.settings import setting_label
from deepwork.project.shared import SharedObjects
from deepwork.project.trust import TrustRequest
from deepwork.project.trusted_commands import obstacle, pending_request
from deepwork.text import nearest

if TYPE_CHECKING:
    from deepwork.engine.engine import Engine
    from deepwork.engine.keeping import Keeper
    from deepwork.gate.gate import QualityGate
    from deepwork.project.inbox import ProjectInbox
    from deepwork.sessions.manager import StateManager

ItemT = TypeVar("ItemT")


def load_plugins(
    config: Config,
    environment: Mapping[str, str],
    blocked: Iterable[str] = (),
    candidates: Iterable[Candidate] | None = None,
    plugins_dir: str | None = None,
) -> PluginManager:
    """Load the installed plugins, except those blocked by the configuration, the environment or the caller.

    Plugins in a folder are loaded too, if the user names it. A project cannot name one: its files are not trusted.

    Raises:
        ConfigError: There is no such folder, or the variable names one by a relative path.
    """
    blocked_by_environment = environment.get("DEEPWORK_NO_PLUGINS", "").split(",")
    by_environment = environment.get("DEEPWORK_PLUGINS_DIR")
    folder = plugins_dir or by_environment
    if by_environment and folder == by_environment and not os.path.isabs(by_environment):
        raise ConfigError(
            f"DEEPWORK_PLUGINS_DIR is {by_environment!r}, a relative path, so any repository could bring the plugins",
            hint="Give an absolute path, or name the folder for one call: --plugins-dir.",
        )
    if folder:
        candidates = [*(installed() if candidates is None else candidates), *in_folder(Path(folder).absolute())]
    return PluginManager(
        blocked={*config.plugins.block, *blocked, *(name.strip() for name in blocked_by_environment)},
        required=config.plugins.require,
        strict=environment.get("DEEPWORK_STRICT_PLUGINS", "") not in ("", "0"),
        candidates=candidates,
    )


def _asked(hook: str, kind: type[ItemT]) -> cached_property[Answers[ItemT]]:
    """Return the property of a project that has what all plugins answer to a hook; it is asked once."""

    def ask(project: Project) -> Answers[ItemT]:
        return project.plugins.ask(hook, kind, project.context, project=project.access)

    return cached_property(ask)


class Project:
    """One project: its places, its configuration, its plugins, and the parts that are built of them.

    Each part is imported and built when it is first used, and every hook is asked once.

    Attributes:
        access: What features and plugins may use of it.
        store_reason: Why sessions are in the store that was chosen last.

    Args:
        root: The project's folder.
        platform: Name of the agent's platform, for plugins.
        plugins: The plugins; those installed and not blocked if not given.
        blocked: Names of plugins or distributions that are not loaded, besides those of the configuration.
        plugins_dir: A folder with plugins that are one file each.
        shared: The objects that plugins share; its own if not given.

    Raises:
        ConfigError: The project or its configuration cannot be used.
        PluginError: A plugin is broken, or a name is unknown or offered twice; each member for its own part.
    """

    def __init__(
        self,
        root: str | Path,
        *,
        platform: str | None = None,
        plugins: PluginManager | None = None,
        blocked: Iterable[str] = (),
        plugins_dir: str | None = None,
        shared: SharedObjects | None = None,
    ) -> None:
        loaded = load_config(resolve_root(root), os.environ)
        self.config, self.workspace, self.trust = loaded.config, loaded.workspace, loaded.trust
        self.plugins = plugins or load_plugins(self.config, os.environ, blocked, plugins_dir=plugins_dir)
        self.ignored = loaded.ignored
        self._own_store, self._requested_store = _store_of(loaded.user), _store_of(loaded.requested)
        self.store_reason = ""
        self._sections = {*loaded.user_settings, *loaded.project_settings}
        self.shared = shared or SharedObjects()
        self._contexts = contexts(loaded, self, platform, ProjectContext)
        self.access = ProjectAccess(self.workspace.root, lambda: self)
        self._tool_sets: tuple[Engine, Answers[ToolSet]] | None = None
        self._sessions: StateManager | None = None
        self._gate: QualityGate | None = None

    def context(self, plugin: str) -> PluginContext:
        """Return the context of a plugin."""
        return self._contexts(plugin)

    def notices(self) -> list[str]:
        """Return what in the configuration has no effect, as far as the plugins were asked."""
        return [
            *(f"{label} of this project has no effect until you run `deepwork trust`" for label in self.untrusted()),
            *self.ignored,
            *self.unknown_sections(),
        ]

    def untrusted(self) -> list[str]:
        """Name what has no effect until the user trusts it, as far as the plugins were asked."""
        return sorted({*self.trust.refusals, *self.waiting_commands()})

    def unknown_sections(self) -> list[str]:
        """Name the settings of plugins that there are not."""
        plugins = [status.plugin for status in self.plugins.statuses]
        names = [plugin.name for plugin in plugins if not plugin.builtin]
        return [
            f"plugins.settings.{section}: no installed plugin has this name"
            f"{self._offered_by(section) or nearest(section, names)}"
            for section in sorted(self._sections.difference(plugin.name for plugin in plugins))
        ]

    def _offered_by(self, name: str) -> str:
        """Name the plugin whose runner or store has this name, for settings under the wrong one."""
        for kind, items in (("runner", self.review_runners.items), ("store", self.state_stores.items)):
            for provided in items:
                if provided.item.name == name:
                    return f"; it is the {kind} of the plugin {provided.by.name!r}: plugins.settings.{provided.by.name}"
        return ""

    async def close(self) -> None:
        """Close the sessions and what plugins share, for commands as for servers."""
        if "inbox" in vars(self):
            await self.inbox.close()
        if self._sessions:
            await self._sessions.close()
        await self.shared.close()

    # What the plugins answer to each hook.
    job_sources = _asked("deepwork_job_sources", JobSource)  # type: ignore[type-abstract]  # only isinstance
    state_stores = _asked("deepwork_state_stores", StateStoreSpec)
    review_runners = _asked("deepwork_review_runners", ReviewRunnerSpec)
    checks = _asked("deepwork_checks", Check)
    inbox_sources = _asked("deepwork_inbox", InboxSource)  # type: ignore[type-abstract]  # only isinstance
    agent_mail = _asked("deepwork_agent_mail", AgentMail)
    unlisted_tools = _asked("deepwork_unlisted_tools", UnlistedTool)
    provers = _asked("deepwork_provers", Prover)  # type: ignore[type-abstract]  # only isinstance
    agents = _asked("deepwork_agents", AgentSpec)
    claims = _asked("deepwork_claims", ClaimKeeper)

    def tool_sets(self, engine: Engine) -> Answers[ToolSet]:
        """Ask for the tool sets that are bound to an engine."""
        if self._tool_sets is None or self._tool_sets[0] is not engine:
            answers = self.plugins.ask("deepwork_tool_sets", ToolSet, self._contexts, engine=engine)
            self._tool_sets = engine, answers
        return self._tool_sets[1]

    def http_apps(self, engine: Engine) -> Answers[HttpApp]:
        """Ask for the applications that are served over HTTP."""
        return self.plugins.ask("deepwork_http", HttpApp, self._contexts, engine=engine, project=self.access)

    def waiting_commands(self) -> list[str]:
        """Name the commands of the configuration that wait for trust."""
        return [request.label for request in self._pending(REVIEWERS, self._review_commands())]

    def trust_requests(self) -> list[TrustRequest]:
        """Read anew everything for which the project needs trust and has none: settings, commands, and their files.

        Called outside of an event loop, once the settings of all plugins were read.
        """
        settings = [TrustRequest(label, content) for label, content in self.trust.refused().items()]
        commands = [request for owner, of_owner in self._commands() for request in self._pending(owner, of_owner)]
        return list({request.label: request for request in (*settings, *commands)}.values())

    def unusable_commands(self) -> dict[str, str]:
        """Return why commands can never run as they are written, trusted or not, by their labels."""
        reasons = {
            command.label: obstacle(command, self.workspace.root, os.environ)
            for _, commands in self._commands()
            for command in commands
        }
        return {label: reason for label, reason in reasons.items() if reason}

    def _commands(self) -> Iterator[tuple[str, Iterable[TrustedCommand]]]:
        """Yield the commands that need trust, with the plugin whose they are."""
        yield REVIEWERS, self._review_commands()
        for check in self.checks.items:
            yield check.by.name, check.item.commands()

    def _review_commands(self) -> list[TrustedCommand]:
        return [review_command.command for review_command in self._contexts(REVIEWERS).review_commands]

    def _pending(self, owner: str, commands: Iterable[TrustedCommand]) -> Iterator[TrustRequest]:
        for command in commands:
            # What names a file that can never run has nothing to be trusted: see `unusable_commands`.
            with suppress(PathRefused):
                request = pending_request(command, self.workspace.root, self.trust, owner=owner)
                if request:
                    yield request

    # What is built of the answers.

    @cached_property
    def catalogue(self) -> Catalogue:
        """The jobs of all sources."""
        sources = by_name("job source", self.job_sources.demand(), lambda source: source.name)
        return Catalogue(
            provided.item if provided.by.builtin else GuardedSource(provided.item, provided.by)
            for provided in sources.values()
        )

    def store(self, name: str | None = None) -> StateStoreSpec:
        """Choose a state store; that of the configuration if none is named."""
        stores = by_name("state store", self.state_stores.demand(), lambda spec: spec.name)
        option = "--state-store or state.store"

        def provided(chosen: str) -> Provided[StateStoreSpec]:
            return choose("state store", chosen, stores, option=option, left_out=self.plugins.left_out)

        chosen, self.store_reason = (name, "--state-store") if name else self._configured_store(provided)
        if self.store_reason == "default" and chosen not in stores:
            raise UnknownName(
                f"no store: choose state.store; available: {', '.join(stores) or 'none'}{self.plugins.left_out_text}",
                hint="Set state.store in .deepwork/config.yml, or give --state-store.",
            )
        return guarded_store(provided(chosen).item, provided(chosen).by)

    def _configured_store(self, provided: Callable[[str], Provided[StateStoreSpec]]) -> tuple[str, str]:
        """Return the store of the configuration, and why it is that one.

        A project that has sessions forgotten erases what its agents did, so its user has to trust that.
        """
        by_project, by_user = self._requested_store, self._own_store
        own_choice = (by_user, "state.store of your own config.yml") if by_user else ("json", "default")
        if not by_project or by_project == by_user:
            return own_choice
        if provided(by_project).item.persists or self.trust.allows(setting_label("state.store"), by_project):
            return by_project, "state.store of .deepwork/config.yml"
        store, reason = own_choice
        return store, f"{reason}: {by_project!r} of .deepwork/config.yml forgets them, and is not trusted"

    def gate(
        self,
        runner: str | None = None,
        *,
        timeout: int | None = None,
        max_attempts: int | None = None,
        workspace: Workspace | None = None,
        proves: bool = True,
    ) -> QualityGate:
        """Make the quality gate; what is not given is as the configuration says, and without a runner self-review.

        `workspace` is where the work lies that is judged, if it is not in the project.
        """
        from deepwork.gate.gate import Bounds, QualityGate
        from deepwork.gate.judging import Proofs
        from deepwork.project.routing import routing

        section = self.config.quality_gate
        prover = self._prover() if proves and workspace is None else None
        return QualityGate(
            routing(runner or section.runner or SELF_REVIEW, section, self.review_runners, self.plugins),
            workspace or self.workspace,
            bounds=Bounds(
                timeout or section.timeout, max_attempts or section.max_attempts, concurrency=section.concurrency
            ),
            proofs=Proofs(prover, section.prove == "hold") if prover else None,
            untrusted=lambda: self.trust.refusals,
        )

    def keeper(self) -> Keeper:
        """Return who keeps what is reported of steps that people review."""
        from deepwork.engine.keeping import Keeper
        from deepwork.paths.contents import Contents, Drafts

        place = user_state_dir(os.environ), self.workspace.root
        return Keeper(Contents(*place), Drafts(*place), always=self.config.quality_gate.keep)

    def _prover(self) -> Prover | None:
        """Return what tries gates on broken work, if the configuration wants that and a plugin offers it.

        Raises:
            ConfigError: The configuration lets nothing pass that is not tried, and no plugin offers to try it.
        """
        section = self.config.quality_gate
        if section.prove == "off":
            return None
        provers = by_name("prover", self.provers.demand(), lambda _: "quality_gate.prove")
        if not provers and section.prove == "hold":
            raise ConfigError(
                f"quality_gate.prove is hold{' (a strict gate holds)' * section.strict}, and no plugin tries gates on "
                f"broken work{self.plugins.left_out_text}",
                hint="Load it again, or set quality_gate.prove to warn or off in your own config.yml.",
            )
        return next((provided.item for provided in provers.values()), None)

    def weak_gates(self) -> dict[str, str]:
        """Return the configured gates that were seen to pass broken work, and what they passed."""
        section = self.config.quality_gate
        prover = self._prover() if section.enabled else None
        return {name: why for name, why in prover.weak().items() if name in section.commands} if prover else {}

    def engine(self, gate: QualityGate | None = None, *, store: str | None = None) -> Engine:
        """Make the engine on the jobs and the store of this project."""
        from deepwork.engine.engine import Engine
        from deepwork.engine.people import PersonReviews
        from deepwork.paths.served_pages import ServedPages

        self._gate = gate
        sessions, pages = self.sessions(store), ServedPages(user_state_dir(os.environ), self.workspace.root)
        return Engine(
            catalogue=self.catalogue,
            sessions=sessions,
            gate=gate,
            is_strict=self.config.quality_gate.strict,
            agent=os.environ.get(NAME_VARIABLE) or None,
            people=PersonReviews(sessions, self.keeper(), pages),
        )

    def sessions(self, store: str | None = None) -> StateManager:
        """Return the sessions in the store that was chosen first: by default the configuration's."""
        if self._sessions is None or store is not None:
            from deepwork.sessions.manager import StateManager

            self._sessions = StateManager(self.store(store), self.workspace)
        return self._sessions

    @cached_property
    def inbox(self) -> ProjectInbox:
        """What waits for people, of all features and plugins."""
        from deepwork.project.inbox import ProjectInbox

        return ProjectInbox(self.inbox_sources)

    async def broken_reviewers(self) -> Mapping[str, RunnerUnavailable]:
        """Return why reviewers that the configuration or a server has chosen cannot work now, by their names."""
        if not self.config.quality_gate.enabled:
            return {}
        # Only a server knows the reviewers of its options; a command asks those of the configuration.
        error = await self._gate.unavailable() if self._gate and self.config.quality_gate.strict else None
        return {"strict": error} if error else await (self._gate or self.gate()).broken_reviewers()

    def chosen_tool_sets(self, engine: Engine, names: Sequence[str] | None = None) -> list[Provided[ToolSet]]:
        """Choose tool sets or subsets of them; those of the configuration, or all, if none are named."""
        sets = by_name("tool set", self.tool_sets(engine).demand(), lambda tool_set: tool_set.name)
        chosen = self.config.tools.sets if names is None else names
        if chosen is None:
            return list(sets.values())
        if not chosen:
            raise ConfigError("no tool set is chosen", hint=f"Choose from: {', '.join(sets)}.")
        option = "--tools or tools.sets"
        return choose_tool_sets(chosen, sets, option=option, left_out=self.plugins.left_out)


def _store_of(config: Config) -> str | None:
    """Return the state store that a file names, if it names one."""
    return config.state.store if "store" in config.state.model_fields_set else None
