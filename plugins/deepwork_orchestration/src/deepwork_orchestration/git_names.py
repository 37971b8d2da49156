"""Names that agents give to git, each taken literally: git expands none of them.

`@{-1}` is the branch that was checked out before, `HEAD^{/fix}` the last commit with that word. An agent may name a
branch or a tag by its name, and a commit by its whole id.
"""

from __future__ import annotations

import re

from deepwork.api import Git
from deepwork_orchestration.errors import OrchestrationError, invalid_input

_COMMIT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# In this order a name is looked for; git itself would take a tag before a branch.
_PLACES = ("refs/heads/", "refs/remotes/", "refs/tags/")


def branch_ref(branch: str) -> str:
    """Return the full name of a branch."""
    return f"refs/heads/{branch}"


async def check_branch(git: Git, branch: str) -> None:
    """Refuse everything but the literal name of a branch.

    Raises:
        OrchestrationError: INVALID_INPUT.
    """
    is_name = await _is_ref(git, branch_ref(branch))
    # `@` is a valid name that git takes for HEAD, and `-` begins an option, or is the branch before.
    if branch == "@" or branch.startswith("-"):
        is_name = False
    if is_name:
        printed = await git.try_run("check-ref-format", "--branch", branch)
        is_name = printed.returncode == 0 and printed.stdout == branch.encode() + b"\n"
    if not is_name:
        raise invalid_input("branch", f"is not a name for a branch: {branch[:200]!r}", "Use letters, digits, / and -.")


async def branch_commit(git: Git, branch: str) -> str | None:
    """Return the commit of a branch; None without a branch of exactly this name.

    Raises:
        OrchestrationError: INVALID_INPUT; the file system takes it for the name of an existing branch.
        GitError: git gave no answer.
    """
    ref = branch_ref(branch)
    ignores_case = await git.try_run("config", "--type=bool", "--get", "core.ignoreCase")
    listed = await git.run("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads")
    commits = {name: commit for commit, _, name in (line.partition(" ") for line in listed.decode().splitlines())}
    if ref not in commits and ignores_case.stdout.strip() == b"true":
        same = next((name for name in commits if name.casefold() == ref.casefold()), None)
        if same is not None:
            problem = f"differs in case only from that of an existing branch: {same.removeprefix('refs/heads/')!r}"
            raise invalid_input("branch", problem, "Use the name of that branch, or another one.")
    return commits.get(ref)


async def base_commit(git: Git, base: str | None) -> str:
    """Return the commit at which a new branch is to begin; by default that of HEAD.

    Raises:
        OrchestrationError: INVALID_INPUT; the name is neither an existing branch or tag nor a full commit id.
            INVALID_STATE; none is named, and the repository has no commit yet.
        GitError: git gave no answer.
    """
    if base is None:
        commit = await git.commit_of("HEAD")
        if commit is None:
            raise OrchestrationError("INVALID_STATE", "the repository has no commit yet", "Make the first commit.")
        return commit
    if _COMMIT_ID.fullmatch(base) and await git.commit_of(base) == base:
        return base
    for place in _PLACES:
        ref = place + base
        if await _is_ref(git, ref) and (await git.try_run("show-ref", "--verify", "--quiet", ref)).returncode == 0:
            commit = await git.commit_of(ref)
            if commit is not None:
                return commit
    raise invalid_input(
        "base_branch",
        f"is neither an existing branch or tag nor the full id of a commit: {base[:200]!r}",
        "Name one, or leave it out for what is checked out.",
    )


def check_commit_id(commit: str) -> None:
    """Refuse what is not the full id of a commit, whether or not it exists.

    Raises:
        OrchestrationError: INVALID_INPUT.
    """
    if not _COMMIT_ID.fullmatch(commit):
        raise invalid_input(
            "merge_commit", f"is not the full id of a commit: {commit[:200]!r}", "`git rev-parse HEAD` prints one."
        )


async def check_commit(git: Git, commit: str) -> None:
    """Refuse the full id of a commit that the repository does not have.

    Raises:
        OrchestrationError: INVALID_INPUT.
        GitError: git gave no answer.
    """
    if await git.commit_of(commit) != commit:
        raise invalid_input(
            "merge_commit", f"is not a commit of this repository: {commit}", "`git rev-parse HEAD` prints one."
        )


async def _is_ref(git: Git, ref: str) -> bool:
    return (await git.try_run("check-ref-format", ref)).returncode == 0
