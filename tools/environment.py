"""Installs deepwork from this checkout to stay, or takes it away again: `make install`, `make uninstall`.

    python tools/environment.py install
    python tools/environment.py uninstall [--data]

It makes an environment of its own in the user's data folder, with the core and all plugins, by uv if there is one, and
a link to its `deepwork` in ~/.local/bin. It needs nothing but Python, and changes nothing else.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from install import installer, project_folders
from install import run as run_installer

ROOT = Path(__file__).resolve().parent.parent
NAME = "deepwork"
RECEIPT = "deepwork-install.json"  # read by deepwork/programs/installation.py
EXTRAS = {"deepwork_sql": "[postgresql]"}
COMPLETION = {
    "bash": f"{NAME} completion bash >> ~/.bashrc",
    "zsh": f"{NAME} completion zsh >> ~/.zshrc",
    "fish": f"{NAME} completion fish > ~/.config/fish/completions/{NAME}.fish",
}


class Refused(Exception):
    """Why it cannot be installed or taken away."""


def main(arguments: list[str]) -> int:
    """Do what is asked for."""
    try:
        if arguments == ["install"]:
            install()
        elif arguments[:1] == ["uninstall"]:
            uninstall(arguments[1:])
        else:
            print(__doc__, file=sys.stderr)
            return 2
    except Refused as reason:
        print(f"Error: {reason}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"Error: {error.filename2 or error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\nInterrupted. `make {arguments[0]}` again goes on.", file=sys.stderr)
        return 130
    return 0


def install() -> None:
    """Make the environment, or bring it up to these sources, and link its command."""
    if (link().is_symlink() or link().exists()) and not is_ours(link()):
        raise Refused(f"{link()} is another program. Move it away, and run `make install` again.")
    link().parent.mkdir(parents=True, exist_ok=True)
    if not link().is_symlink() and not os.access(link().parent, os.W_OK):
        raise Refused(f"{link().parent}, where the link to deepwork belongs, cannot be written")
    environment().parent.mkdir(parents=True, exist_ok=True)
    with alone():
        bring_up_to_date()
        if not link().is_symlink():
            link().symlink_to(command())
            print(f"linked     {link()}")
    for hint in hints():
        print(hint)


def bring_up_to_date() -> None:
    """Install these sources, unless they are what is installed."""
    receipt: dict[str, str | None] = {
        "route": "checkout",
        "upgrade": f"make -C {shlex.quote(str(ROOT))} install",
        "sources": digest(),
    }
    if installed_receipt() == receipt and runs(command()):
        print(f"unchanged  {command()}")
        return
    if environment().is_dir():
        keep_receipt({**receipt, "sources": None})  # if this is interrupted, neither the old nor the new ones are there
    fill(environment())
    if not runs(command()):
        raise Refused(f"{command()} does not start")
    keep_receipt(receipt)
    print(f"installed  {command()}")


def uninstall(options: list[str]) -> None:
    """Have deepwork taken out of all files of clients, then remove the link and the environment."""
    if options and not command().exists() and state().exists():
        print(f"{NAME} is not installed any more; remove your data with: rm -r {shlex.quote(str(state()))}")
    folder = environment().parent
    if folder.is_dir():
        with alone():
            if environment().is_dir():
                remove_environment(options)
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
    if link().is_symlink() and is_ours(link()):
        link().unlink()
        print(f"removed    {link()}")


def remove_environment(options: list[str]) -> None:
    """Remove the environment once its command has taken deepwork out of all files of clients."""
    if os.access(command(), os.X_OK):
        if subprocess.run([command(), "uninstall", *options], check=False).returncode:
            raise Refused(
                "the environment stays until `deepwork uninstall` has ended well; "
                "if it does not start, run `make install` first"
            )
        command().unlink()  # the last that needs the rest, which may go in any order
    shutil.rmtree(environment())
    print(f"removed    {environment()}")


@contextmanager
def alone() -> Iterator[None]:
    """Wait until no other `make install` or `make uninstall` changes the environment."""
    folder = os.open(environment().parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # NFS locks no folders
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def command() -> Path:
    """Return the command in the environment."""
    return environment() / "bin" / NAME


def environment() -> Path:
    """Return the folder of the environment."""
    return user_folder("XDG_DATA_HOME", ".local/share") / "environment"


def state() -> Path:
    """Return where deepwork keeps the user's data."""
    return user_folder("XDG_STATE_HOME", ".local/state")


def user_folder(variable: str, default: str) -> Path:
    """Return our folder in one of the user's."""
    named = os.environ.get(variable, "")
    return (Path(named) if os.path.isabs(named) else Path.home() / default) / NAME


def link() -> Path:
    """Return where users have commands of their own."""
    return Path.home() / ".local" / "bin" / NAME


def is_ours(path: Path) -> bool:
    """True if a command leads into the environment."""
    return path.is_symlink() and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(environment()))


def projects() -> list[str]:
    """Return what pip installs: the folders of the core and of all plugins, and some of them again, with their extras.

    With extras alone, pip 23 does not see that a folder has what another one needs.
    """
    with_extras = [f"{ROOT}/plugins/{name}{extras}" for name, extras in EXTRAS.items()]
    return [*map(str, project_folders(ROOT)), *with_extras]


def fill(folder: Path) -> None:
    """Install the core and all plugins from their folders, in one go: no index is asked for any of them."""
    python = folder / "bin" / "python"
    uv = shutil.which("uv")
    if not runs(python):
        shutil.rmtree(folder, ignore_errors=True)
        run(
            [uv, "venv", "--quiet", "--python", sys.executable, str(folder)]
            if uv
            else [sys.executable, "-m", "venv", str(folder)]
        )
    if not uv and not runs(python, "-m", "pip"):  # uv has made it, or `venv` was interrupted
        run([str(python), "-m", "ensurepip"])
    ours = [NAME, *(plugin.name.replace("_", "-") for plugin in project_folders(ROOT)[1:])]
    # pip installs a folder again although its version is there already; uv has to be told. Nothing is compiled ahead:
    # most of what the libraries bring is never imported.
    more = [f"--reinstall-package={name}" for name in ours] if uv else ["--no-compile"]
    print("Installing; without uv the first time takes a minute.", flush=True)
    run([*installer(str(python)), *more, *projects()])


def digest() -> str:
    """Return a digest of everything that is installed."""
    total = hashlib.sha256()
    for file in sorted(sources()):
        total.update(f"{file.relative_to(ROOT)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


def sources() -> Iterator[Path]:
    """Yield the files that a wheel of one of the distributions is built from."""
    for project in project_folders(ROOT):
        yield from (file for file in (project / "pyproject.toml", project / "README.md") if file.is_file())
        for file in (project / "src").rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                yield file


def installed_receipt() -> object:
    """Return what the last installation has noted, if it has."""
    try:
        return json.loads((environment() / RECEIPT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def keep_receipt(receipt: dict[str, str | None]) -> None:
    """Note what is installed, and how."""
    (environment() / RECEIPT).write_text(json.dumps(receipt, indent=2) + "\n", encoding="utf-8")


def runs(*command: Path | str) -> bool:
    """True if the command starts."""
    try:
        return subprocess.run([*command, "--version"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def hints() -> Iterator[str]:
    """Yield what the user can do now, and what stands in the way."""
    first, typed = shutil.which(NAME), NAME
    if first is None or (not is_ours(Path(first)) and Path(first).parent != environment() / "bin"):
        typed = shlex.quote(str(link()))
        if str(link().parent) not in os.environ.get("PATH", "").split(os.pathsep):
            yield f"Note: {link().parent} is not on your PATH. Add to your shell's start-up file:"
            yield '  export PATH="$HOME/.local/bin:$PATH"'
        elif first:
            yield f"Note: `{NAME}` is {first}, which stands before {link().parent} on your PATH and is another program."
            yield f"  Use {link()}, or change the order of PATH."
    shell = os.path.basename(os.environ.get("SHELL", ""))
    if shell in COMPLETION:
        yield f"For completion in {shell}: {COMPLETION[shell]}"
    yield f"Next, in the folder of your project: {typed} init"


def run(command: list[str]) -> None:
    """Run a command that has to work; packages are named as they come."""
    if run_installer(command):
        raise Refused(f"`{shlex.join(command[:4])} …` failed")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
