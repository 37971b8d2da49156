"""What features and plugins may use of a project: `deepwork.api.Project`."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from deepwork.engine.interventions import Interventions
    from deepwork.engine.pieces import Pieces
    from deepwork.errors import RunnerUnavailable
    from deepwork.gate.gate import QualityGate
    from deepwork.jobs.catalogue import Catalogue
    from deepwork.models.config import Section
    from deepwork.models.sessions import Session
    from deepwork.models.standing import GateRecord
    from deepwork.paths.workspace import Workspace
    from deepwork.ports.heads import SessionHeads
    from deepwork.ports.inbox import Inbox
    from deepwork.ports.records import AgentMail
    from deepwork.ports.state_store import StateStore
    from deepwork.project.project import Project as WholeProject
    from deepwork.project.step_gate import StepGate
    from deepwork.sessions.manager import StateManager

ResultT = TypeVar("ResultT")
SectionT = TypeVar("SectionT", bound="Section")


class Project:
    """One project, for commands and hooks of features and plugins: hooks get it, and `project_at` makes it.

    Nothing is read before it is asked for, and plugins are loaded by what needs them alone: hooks of clients run often.

    Args:
        root: The project's folder.
        open_project: Opens the project, with its plugins.
    """

    def __init__(self, root: str | Path, open_project: Callable[[], WholeProject]) -> None:
        self._given_root = root
        self._open_project = open_project
        self._opened: WholeProject | None = None

    @property
    def root(self) -> Path:
        """The project's folder, absolute and free of links.

        Raises:
            ConfigError: There is no such folder.
        """
        from deepwork.project.config import resolve_root

        return resolve_root(self._given_root)

    def config(self, section: type[SectionT]) -> SectionT:
        """Return a section of the configuration, by its model. No plugin is loaded.

        Raises:
            ConfigError: The configuration cannot be used.
        """
        from deepwork.project.config import load_config

        config = self._opened.config if self._opened else load_config(self.root, os.environ).config
        return next(value for _, value in config if isinstance(value, section))

    def notices(self) -> Sequence[str]:
        """Return what of the configuration never has an effect."""
        return self._open().ignored

    def ineffective(self) -> Sequence[str]:
        """Return what of the configuration has no effect: never, until it is trusted, or without a plugin."""
        return self._open().notices()

    def standings(self) -> SessionHeads:
        """Return the reader of where the open sessions stand. It never raises before it reads."""
        from deepwork.project.heads import heads_of

        return heads_of(Path(os.path.realpath(self._given_root)), self)

    def resume_text(self, session_id: str) -> str:
        """Return what an agent needs to go on with a session.

        Raises:
            DeepWorkError: There is no such session, or it cannot go on.
        """
        from deepwork.project.heads import resume_text

        text = resume_text(Path(os.path.realpath(self._given_root)), session_id)
        if text is not None:
            return text
        return self.resume_text_of(self.session(session_id))

    def resume_text_of(self, session: Session) -> str:
        """Return the same of a session that was read. It reads files.

        Raises:
            DeepWorkError: The session cannot go on.
        """
        from deepwork.engine.interventions import over
        from deepwork.engine.resume import resume_text

        if not session.is_active:
            raise over(session)
        return resume_text(self.upgraded(session), self._open().workspace)

    def sessions(self) -> StateManager:
        """Return the sessions in the project's store."""
        return self._open().sessions()

    def with_store(self, use: Callable[[StateStore], Awaitable[ResultT]]) -> ResultT:
        """Run `use` with the state store in an event loop of its own, for a command; what it opens is closed then."""
        import anyio

        from deepwork.programs.stdout import stdout_on_stderr

        async def run() -> ResultT:
            try:
                return await use(await self.sessions().store())
            finally:
                await self.close()

        with stdout_on_stderr():  # stores are code of plugins
            return anyio.run(run)

    def session(self, session_id: str) -> Session:
        """Read a session by its id, or by a prefix that no other id has, for a command.

        Raises:
            UnknownSession: No id, or more than one, begins like this.
        """
        return self.with_store(lambda _: self.interventions().named(session_id))

    def change_session(
        self, session_id: str, change: Callable[[Interventions, Session], Awaitable[Session]]
    ) -> Session:
        """Have a person change the session whose id begins like this, for a command; return it as it was saved."""

        async def changed(_: StateStore) -> Session:
            interventions = self.interventions()
            return await change(interventions, await interventions.named(session_id))

        return self.with_store(changed)

    def upgraded(self, session: Session) -> Session:
        """Return a stored session made ready for use.

        Raises:
            StateError: It cannot go on: its definition was edited, or that of an earlier release fits no more.
        """
        from deepwork.sessions.definition import upgraded

        catalogue = self.catalogue()
        return upgraded(session, catalogue.find(session.job_name), catalogue, self._open().workspace.root)

    def verified(self, session: Session) -> list[GateRecord]:
        """Return whether each gate of a session was judged on the files that are there now. It reads them whole."""
        from deepwork.engine.verification import verify

        return verify(session, self._open().workspace.output_roots)

    def interventions(self) -> Interventions:
        """Return what a person does to sessions."""
        from deepwork.engine.interventions import Interventions

        return Interventions(self.sessions(), self.upgraded)

    def pieces(self) -> Pieces:
        """Return the pieces of work that people review: attempts, contents, comments, decisions and drafts."""
        from deepwork.engine.pieces import Pieces
        from deepwork.models.config import seconds_of

        after = self._open().config.quality_gate.person_after
        return Pieces(self.sessions(), self._open().keeper(), seconds_of(after) if after else None)

    def inbox(self) -> Inbox:
        """Return what waits for people, of all features and plugins."""
        return self._open().inbox

    def catalogue(self) -> Catalogue:
        """Return the jobs of all sources."""
        return self._open().catalogue

    def has_gate(self) -> bool:
        """True if the configuration has reviews held."""
        return self._open().config.quality_gate.enabled

    def gate(self, *, workspace: Workspace | None = None) -> QualityGate:
        """Return the quality gate as the configuration has it.

        Args:
            workspace: Where the judged files are, if not in the project.

        Raises:
            PluginError: No plugin offers a reviewer that the configuration names.
        """
        return self._open().gate(workspace=workspace)

    def step_gate(self, job_name: str, step_id: str) -> StepGate:
        """Return the reviews of one step, to be held on files without a session.

        Raises:
            UnknownJob: There is no such job.
            StateError: The job has no such step.
        """
        from deepwork.project.step_gate import StepGate

        return StepGate(self._open(), job_name, step_id)

    def review_commands(self) -> list[str]:
        """Return the names of the programs that the configuration has review."""
        return [*self._open().config.quality_gate.commands]

    def reviewer_names(self) -> list[str]:
        """Return the names of all runners that the configuration can choose."""
        return sorted(provided.item.name for provided in self._open().review_runners.items)

    def agent_mail(self) -> list[AgentMail]:
        """Return the messages to agents, of all plugins that could be asked."""
        return [provided.item for provided in self._open().agent_mail.items]

    async def broken_reviewers(self) -> Mapping[str, RunnerUnavailable]:
        """Return why reviewers cannot work now, by their names."""
        return await self._open().broken_reviewers()

    def weak_gates(self) -> Mapping[str, str]:
        """Return the configured gates that were seen to pass broken work, and what they passed. It reads a file."""
        return self._open().weak_gates()

    def untrusted(self) -> list[str]:
        """Name what has no effect until the user trusts it. It reads files, and is called outside of an event loop."""
        return self._open().untrusted()

    async def close(self) -> None:
        """Close what was opened."""
        if self._opened:
            await self._opened.close()

    def _open(self) -> WholeProject:
        if self._opened is None:
            self._opened = self._open_project()
        return self._opened
