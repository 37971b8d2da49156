"""The one way in which git is run: a repository cannot make it run anything else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import anyio

from deepwork.api import Completed, ProgramError, ToolError, run_program

SECONDS = 60.0
MAX_OUTPUT = 256 * 1024 * 1024

# What a repository's own configuration could say otherwise. Names with "" are switched off.
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
KEPT = ("HOME", "XDG_CONFIG_HOME", "TMPDIR", "USER", "LOGNAME")


class GitError(ToolError):
    """git could not answer, and nothing may be concluded from that."""


class Git:
    """git in one folder.

    Args:
        root: The project's folder, from which all paths count.
        environment: Where the program is looked for, and the user's home.
    """

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        self._root = root
        path = os.pathsep.join(part for part in environment.get("PATH", "").split(os.pathsep) if os.path.isabs(part))
        self._program = shutil.which("git", path=path)
        self._environment = {
            **{name: environment[name] for name in KEPT if name in environment},
            "PATH": path,
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
        self.shallow = False
        self._untracked: list[str] | None = None
        self._listing = anyio.Lock()

    async def open(self) -> bool:
        """Look whether the project lies in a working tree, and make its filters harmless; False if it does not.

        Raises:
            GitError: There is a repository that git cannot or will not use.
        """
        marked = repository_of(self._root) is not None
        if self._program is None:
            if marked:
                raise GitError("git is not installed, and without it the changes of a repository are unknown")
            return False
        asked = ("rev-parse", "--is-shallow-repository", "--is-inside-work-tree", "--show-toplevel")
        found = await self.try_run(*asked)
        if found.returncode:
            said = _said(found)
            if not marked and "not a git repository" in said:
                return False
            raise GitError(f"git cannot use this repository: {said}", hint="Mend that, or name the files.")
        shallow, inside, top = found.stdout.decode(errors="surrogateescape").rstrip("\n").split("\n", 2)
        if inside != "true" or not self._root.is_relative_to(_resolved(top)):
            raise GitError("the repository's working tree is not where the project is (core.worktree?)")
        self.shallow = shallow == "true"
        await self._blank_filters()
        return True

    async def run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Run a command that has to succeed, and give what it prints.

        Raises:
            GitError: It does not.
        """
        done = await self.try_run(*arguments, stdin=stdin)
        if done.returncode:
            raise GitError(f"`git {arguments[0]}` failed: {_said(done)}")
        return done.stdout

    async def paths(self, *arguments: str) -> list[str]:
        """Run a command that prints paths, each with a NUL."""
        return [os.fsdecode(name) for name in (await self.run(*arguments)).split(b"\0")[:-1]]

    async def untracked(self) -> list[str]:
        """List what is neither tracked nor ignored; repositories in the project end with `/`. Asked only once."""
        async with self._listing:
            if self._untracked is None:
                self._untracked = await self.paths("ls-files", "-z", "--others", "--exclude-standard")
        return self._untracked

    async def try_run(self, *arguments: str, stdin: bytes = b"") -> Completed:
        """Run a command that may fail.

        Raises:
            GitError: It does not end in time, or prints too much.
        """
        try:
            return await run_program(
                [self._program or "git", "--no-pager", "--no-optional-locks", *arguments],
                cwd=self._root,
                environment=self._environment,
                seconds=SECONDS,
                stdin=stdin,
                max_output=MAX_OUTPUT,
            )
        except ProgramError as error:
            raise GitError(error.message.replace(repr(self._program), f"`git {arguments[0]}`")) from None

    async def _blank_filters(self) -> None:
        """Switch off the programs that convert files: which there are, only the configuration says."""
        listed = await self.try_run("config", "-z", "--name-only", "--get-regexp", r"^filter\.")
        names = {name.decode(errors="surrogateescape").rpartition(".")[0] for name in listed.stdout.split(b"\0")[:-1]}
        blanks = {
            f"{name}.{key}": value
            for name in names
            for key, value in (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
        }
        self._environment |= _as_environment({**OVERRIDES, **blanks})


def repository_of(root: Path) -> Path | None:
    """Find the folder that has the `.git` of a project, without asking git."""
    return next((folder for folder in (root, *root.parents) if os.path.lexists(folder / ".git")), None)


def _resolved(path: str) -> str:
    return os.path.realpath(path)


def _as_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Write settings as git reads them from the environment, where any name can stand."""
    written = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (name, value) in enumerate(settings.items()):
        written |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return written


def _said(done: Completed) -> str:
    text = done.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
    return " ".join(text.split())[:500] or f"exit code {done.returncode}"
