"""Runs git so that the configuration of a repository cannot make it run any other program."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import anyio
from anyio import to_thread

from deepwork.errors import GitError, ProgramError
from deepwork.programs.git_parts import (
    GitFolders,
    check_below,
    check_configured,
    check_readable,
    find_folders,
    parts_elsewhere,
)
from deepwork.programs.processes import Completed, run_program
from deepwork.programs.programs import cleaned_path

SECONDS = 60.0
# git reads `.gitignore` in every folder to which it comes. A look at all of them would cost more than git itself, so it
# is taken when a call does not end.
PATIENCE = 1.0
MAX_OUTPUT = 256 * 1024 * 1024
# The first that reads settings from GIT_CONFIG_COUNT.
OLDEST = (2, 31)

# Settings of a repository that would run programs, reach the network or hide changes. "" switches one off.
OVERRIDES = {
    "core.askPass": "",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.ignoreStat": "false",
    "core.pager": "cat",
    "core.sshCommand": "false",
    "credential.helper": "",
    "diff.external": "",
    "protocol.allow": "never",
    "safe.bareRepository": "explicit",
    "submodule.recurse": "false",
}
# What the configuration says of filters, and of the files and folders that git reads.
CONFIGURED = r"^(filter\..*|core\.(excludesfile|attributesfile|worktree))$"
# The name under which parts of a repository that lead out of it wait for trust.
ELSEWHERE = "git: parts of the repository that lie elsewhere"

NOT_HERE = "the repository's working tree is not where the project is (core.worktree?)"

Trusts = Callable[[str, Any], bool]

# The programs whose version was looked at in this process, as they were then: path, time of change and size.
_Program = tuple[str, int, int]
_USABLE: set[_Program] = set()

# Variables that git gets from our own environment. None of them starts with GIT_.
PASSED_ON = ("HOME", "XDG_CONFIG_HOME", "TMPDIR", "USER", "LOGNAME")


class Git:
    """git, run in the folder of one project. Made by `open`.

    Attributes:
        root: The project's folder; git prints paths relative to it.
        top: The root of the working tree in which the project lies.
        shallow: Whether the repository is a shallow clone.
    """

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        self.root = root
        self.top = root
        self.shallow = False
        self._trusts: Trusts | None = None
        self._settings: Mapping[str, str] = {}
        self._environment = {
            **{name: environment[name] for name in PASSED_ON if name in environment},
            "PATH": cleaned_path(environment, root),
            "LC_ALL": "C",
            "GIT_ALLOW_PROTOCOL": "",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_PAGER": "cat",
            "GIT_TERMINAL_PROMPT": "0",
            **_as_environment(OVERRIDES),
        }

    @classmethod
    async def open(cls, root: Path, environment: Mapping[str, str], *, trusts: Trusts | None = None) -> Self | None:
        """Return git for a project, with all filters of its repository switched off; None outside of a working tree.

        Args:
            root: The project's folder, absolute and free of links.
            environment: Its `PATH` is searched for the program; `HOME` and a few more variables are passed on.
            trusts: Asked whether the user has trusted parts of the repository that lead out of it. Without it there may
                be none. Plugins use `PluginContext.git`, which asks what `deepwork trust` shows.

        Raises:
            GitError: There is a repository, but git cannot or will not use it, or it would wait for a special file.
        """
        git = cls(root, environment)
        git._trusts = trusts
        repositories = await to_thread.run_sync(_looked_at, root)
        if not await git._find_working_tree(has_repository=bool(repositories)):
            return None
        git._settings = await git._configured()
        await git._protect(repositories)
        return git

    async def at_top(self) -> Self:
        """Return git run in the top folder of the working tree; the repository's settings are known already.

        Raises:
            GitError: git may not use what lies there, or it would wait for a special file.
        """
        if self.root == self.top:
            return self
        git = type(self)(self.top, self._environment)
        await git._go_on_from(self)  # noqa: SLF001 - it is of this class
        return git

    async def _go_on_from(self, git: Git) -> None:
        """Take over what another folder of the working tree has told of the repository."""
        self.shallow, self._trusts, self._settings = git.shallow, git._trusts, git._settings
        await self._protect(await to_thread.run_sync(_looked_at, self.root))

    async def run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Run a command that has to succeed, and return what it prints.

        Raises:
            GitError: It fails, does not end in time, or prints too much.
        """
        completed = await self.try_run(*arguments, stdin=stdin)
        if completed.returncode:
            raise GitError(f"`git {arguments[0]}` failed: {_reason(completed)}")
        return completed.stdout

    async def try_run(self, *arguments: str, stdin: bytes = b"") -> Completed:
        """Run a command that may fail.

        Raises:
            GitError: It does not end in time, or prints too much.
        """
        completed: list[Completed] = []

        async def run() -> None:
            try:
                completed.append(
                    await run_program(
                        ["git", "--no-pager", "--no-optional-locks", *arguments],
                        cwd=self.root,
                        environment=self._environment,
                        seconds=SECONDS,
                        stdin=stdin,
                        max_output=MAX_OUTPUT,
                        supervised=False,  # everything is switched off that makes git start other programs
                    )
                )
            except ProgramError as error:
                raise GitError(error.message.replace("'git'", f"`git {arguments[0]}`")) from None
            tasks.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run)
                await anyio.sleep(PATIENCE)
                await to_thread.run_sync(check_below, self.top, abandon_on_cancel=True)
        except* GitError as group:
            raise group.exceptions[0] from None
        return completed[0]

    async def paths(self, *arguments: str) -> list[str]:
        """Run a command that ends each path it prints with a NUL, and return the paths.

        Raises:
            GitError: It fails.
        """
        return [os.fsdecode(path) for path in (await self.run(*arguments)).split(b"\0")[:-1]]

    async def commit_of(self, name: str) -> str | None:
        """Return the id of the commit that a name stands for; None if the repository has none of this name.

        Raises:
            GitError: git gave no answer.
        """
        completed = await self.try_run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        return completed.stdout.decode().strip() if completed.returncode == 0 else None

    async def worktree_around(self, folder: Path) -> Self | None:
        """Return git for the working tree of this repository in which a folder lies; None if it lies in none of them.

        The repository lists the working tree, and the working tree points back at the repository: the list alone would
        let a repository name any folder of this machine, and the pointer alone any folder a repository.

        Args:
            folder: Absolute and free of links.

        Raises:
            GitError: git cannot or will not use what lies there.
        """
        lines = (await self.run("worktree", "list", "--porcelain", "-z")).split(b"\0")
        tops = {_resolved(os.fsdecode(line[9:])) for line in lines if line.startswith(b"worktree ")}
        if tops.isdisjoint((folder, *folder.parents)):
            return None
        tree = await type(self).open(folder, self._environment, trusts=self._trusts)
        is_ours = tree and tree.top in tops and await tree.common_folder() == await self.common_folder()
        return tree if is_ours else None

    async def common_folder(self) -> Path:
        """Return the folder that git keeps for all working trees of the repository.

        Raises:
            GitError: git gave no answer.
        """
        printed = await self.run("rev-parse", "--path-format=absolute", "--git-common-dir")
        return _resolved(os.fsdecode(printed.rstrip(b"\n")))

    async def _protect(self, repositories: list[GitFolders]) -> None:
        """Check the repository in which the folder lies, and switch off the filters that its settings name."""
        # A `core.worktree` that names a folder above would make git read what lies beside the repository.
        number = next((number for number, folders in enumerate(repositories) if folders.top == self.top), None)
        if number is None or (number and "core.worktree" in self._settings):
            raise GitError(NOT_HERE)
        await to_thread.run_sync(self._check_parts, repositories[number])
        self._switch_off_filters()

    async def _find_working_tree(self, *, has_repository: bool) -> bool:
        program = shutil.which("git", path=self._environment["PATH"])
        if program is None:
            if has_repository:
                raise GitError("git is not installed, and without it the changes of a repository are unknown")
            return False
        await self._check_version(program)
        completed = await self.try_run(
            "rev-parse", "--is-shallow-repository", "--is-inside-work-tree", "--show-toplevel"
        )
        if completed.returncode:
            reason = _reason(completed)
            if not has_repository and "not a git repository" in reason:
                return False
            raise GitError(f"git cannot use this repository: {reason}", hint="`git status` must work in the project.")
        # The path comes last, because it may contain line ends.
        shallow, inside, top = completed.stdout.decode(errors="surrogateescape").rstrip("\n").split("\n", 2)
        self.shallow, self.top = shallow == "true", _resolved(top)
        if inside != "true" or not self.root.is_relative_to(self.top):
            raise GitError(NOT_HERE)
        return True

    async def _check_version(self, program: str) -> None:
        """Refuse a git that would ignore `OVERRIDES`, and so would run programs of the repository."""
        looked_at = _as_it_is(program)
        if looked_at in _USABLE:
            return
        text = (await self.run("version")).decode(errors="replace").strip()
        version = re.search(r"(\d+)\.(\d+)", text)
        if version is None or (int(version[1]), int(version[2])) < OLDEST:
            needed = ".".join(map(str, OLDEST))
            raise GitError(
                f"{text[:100]!r} cannot be used: before {needed} git ignores the settings that keep a repository from "
                "running programs",
                hint=f"Install git {needed} or newer.",
            )
        _USABLE.add(looked_at)

    async def _configured(self) -> dict[str, str]:
        """Read the settings that name filters, whose names are free, and files."""
        completed = await self.try_run("config", "-z", "--get-regexp", CONFIGURED)
        settings = completed.stdout.decode(errors="surrogateescape").split("\0")[:-1]
        return {key: value for key, _, value in (setting.partition("\n") for setting in settings)}

    def _check_parts(self, folders: GitFolders) -> None:
        """Refuse special files that the configuration names, and parts elsewhere that the user has not trusted."""
        named = (self._settings[key] for key in ("core.excludesfile", "core.attributesfile") if key in self._settings)
        check_configured(named, self.root, self.top, self._environment)
        elsewhere = parts_elsewhere(folders, self._settings.get("core.worktree"))
        if elsewhere and not (self._trusts and self._trusts(ELSEWHERE, elsewhere)):
            more = f" and {len(elsewhere) - 3} more" if len(elsewhere) > 3 else ""
            raise GitError(
                f"parts of the repository lie elsewhere: {'; '.join(elsewhere[:3])}{more}",
                hint="If these folders are yours, approve them: `deepwork trust`.",
            )

    def _switch_off_filters(self) -> None:
        """Switch off the programs that convert files."""
        blanks = {
            f"{name}.{key}": value
            for name in {key.rpartition(".")[0] for key in self._settings if key.startswith("filter.")}
            for key, value in (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
        }
        self._environment |= _as_environment({**OVERRIDES, **blanks})


def _as_it_is(program: str) -> _Program:
    status = os.stat(program)
    return os.path.realpath(program), status.st_mtime_ns, status.st_size


def _looked_at(root: Path) -> list[GitFolders]:
    """List the repositories in which a folder may lie, once nothing in them makes git wait."""
    repositories = find_folders(root)
    for folders in repositories:
        check_readable(folders, root)
    return repositories


def _resolved(path: str) -> Path:
    return Path(os.path.realpath(path))


def _as_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Write settings as git reads them from the environment: unlike `-c`, it allows `=` in a name."""
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (name, value) in enumerate(settings.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def _reason(completed: Completed) -> str:
    text = completed.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
    return " ".join(text.split())[:500] or completed.ending
