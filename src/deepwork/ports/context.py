"""What a plugin knows of its host."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel

from deepwork.paths.workspace import Workspace
from deepwork.ports.inbox import Inbox
from deepwork.programs.git import Git

ObjectT = TypeVar("ObjectT")
GitT = TypeVar("GitT", bound=Git)
SettingsT = TypeVar("SettingsT", bound=BaseModel)


@dataclass(frozen=True)
class TrustedCommand:
    """A command that runs only as its user has trusted it: `PluginContext.prepared` makes it ready to run.

    Attributes:
        label: What it is, as `deepwork trust` names it.
        arguments: The program and its arguments. Relative paths start at the project's folder.
        more: What else the user has to know of it, such as the variables that it may see.
        needs_trust: Whether its words need trust. Files of the project that it names need it in any case.
    """

    label: str
    arguments: tuple[str, ...]
    more: Mapping[str, Any] = field(default_factory=dict)
    needs_trust: bool = True


CommandVerdict = Literal["json", "exit_code", "sarif"]
CommandFolder = Literal["copy", "project"]


@dataclass(frozen=True)
class ReviewCommand:
    """A program that the configuration names as a reviewer.

    Attributes:
        name: The name that selects it as a runner.
        run: The program and its arguments.
        pass_env: Environment variables that it may see besides the usual ones.
        command: For `PluginContext.prepared`: a project's command runs only once its user has trusted it.
        verdict: How it judges: it prints a verdict as JSON, its exit code is the verdict, or it prints SARIF.
        folder: Where it runs: in a private folder with copies of the judged files, or in the project itself.
        repeatable: Whether it may be asked again about the same work, and about broken work.
        must_fail: Files of the project that it must refuse in the place of the work.
    """

    name: str
    run: tuple[str, ...]
    pass_env: tuple[str, ...]
    command: TrustedCommand
    verdict: CommandVerdict = "json"
    folder: CommandFolder = "copy"
    repeatable: bool = False
    must_fail: tuple[str, ...] = ()


class PluginContext(ABC):
    """What one plugin knows of its host. The host makes one for each plugin, before its first hook is called.

    Attributes:
        plugin: The name of the plugin.
        workspace: The places of the project.
        environment: The environment variables of the process.
        platform: The name of the agent's platform (`--platform`).
        review_commands: The programs that `quality_gate.commands` names as reviewers.
    """

    plugin: str
    workspace: Workspace
    environment: Mapping[str, str]
    platform: str | None
    review_commands: tuple[ReviewCommand, ...]

    @property
    def project_root(self) -> Path:
        return self.workspace.root

    @property
    def state_dir(self) -> Path:
        """`.deepwork/tmp`; it exists once the store has been opened."""
        return self.workspace.state_dir

    @property
    @abstractmethod
    def user_dir(self) -> Path:
        """A folder of this plugin for this project in the user's own state folder; its first writer makes it.

        For what a repository must not be able to bring, because git carries everything that is in the project.
        """

    @property
    def log(self) -> logging.Logger:
        return logging.getLogger(f"deepwork.plugin.{self.plugin}")

    @abstractmethod
    def settings(self, model: type[SettingsT]) -> SettingsT:
        """Validate `plugins.settings.<plugin>` of the configuration.

        A field marked with `NeedsTrust` takes its value from the project only if the user has trusted it; until then it
        has the value of the user's own configuration, or its default.

        Raises:
            ConfigError: A value does not fit; it names the key.
        """

    @abstractmethod
    def of(self, plugin: str) -> PluginContext:
        """Return the context of another plugin of the same server or command, with that plugin's settings."""

    @abstractmethod
    def has(self, plugin: str) -> bool:
        """True if another plugin is loaded, for offers that depend on it."""

    @abstractmethod
    def trusts(self, label: str, content: Any) -> bool:
        """True if the user has trusted this content of a file of the repository, such as a command.

        A refusal is remembered, so that `deepwork trust` can show it. Ask again before each use: the answer may change.
        """

    @abstractmethod
    async def git(self, kind: type[GitT], folder: Path | None = None) -> GitT | None:
        """Open git for the project, or for another folder; None outside of a working tree.

        Parts of the repository that lead out of it wait for `deepwork trust`, once for all plugins.

        Args:
            kind: `Git`, or a class of the plugin's own that extends it.
            folder: Absolute and free of links; the project's folder if none is given.

        Raises:
            GitError: There is a repository, but git cannot or will not use it.
        """

    @abstractmethod
    def prepared(
        self, command: TrustedCommand, *, work: Collection[str] = ()
    ) -> AbstractAsyncContextManager[list[str] | None]:
        """Make a command ready for one run, and yield its arguments; None if the user has not trusted its present form.

        Files of the project that it names are read, compared with the trusted ones, and run from private copies, which
        go with the block: what changes afterwards does not run. The program of a virtual environment in the project,
        which is a link that leads out of it, runs where it is: what is trusted are the link's words and its target.

        Args:
            command: The command.
            work: Paths of files on which it works, relative to the project. An argument that names one is neither
                trusted content nor replaced by a copy.

        Raises:
            ProgramMissing: It names a file that can never run, trusted or not.
        """

    @abstractmethod
    async def shared(self, key: str, open_: Callable[[], AbstractAsyncContextManager[ObjectT]]) -> ObjectT:
        """Return the object of this key that all plugins of the server share, opened at its first use.

        It is closed when the server ends, after the store and in reverse order.
        """

    @abstractmethod
    def inbox(self) -> Inbox:
        """Return the inbox: what waits for people in this project, of all plugins.

        In a server it uses the server's store and shared objects; in a command, its own, which it closes.
        """


class CommandContext(PluginContext):
    """The context of a plugin in one of its commands. Leaving it as an async context manager closes what was shared."""

    @abstractmethod
    async def __aenter__(self) -> Self: ...

    @abstractmethod
    async def __aexit__(self, *_: object) -> None: ...


ContextOf = Callable[[str], PluginContext]
