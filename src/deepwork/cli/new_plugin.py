"""`deepwork new-plugin`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from importlib.resources import as_file, files
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import click

from deepwork.cli.terminal import say
from deepwork.errors import ConfigError
from deepwork.loading.discovery import BUILTINS, installed

# What each hook brings along; everything else of the template is there for all.
PARTS = {
    "stores": ("store.py", "test_store.py"),
    "runners": ("runner.py", "test_runner.py"),
    "jobs": ("jobs.py", "test_jobs.py", "packaged_jobs"),
    "tools": ("tools.py", "test_tools.py"),
    "commands": ("commands.py", "test_commands.py"),
    "checks": ("checks.py", "test_checks.py"),
}
NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
LONGEST = 30
# A line that ends so, or the lines between two such lines, are there for some hooks, or only without others.
MARK = re.compile(r"\s*(?:#|<!--) \[(?P<only>only )?(?P<hooks>[a-z,]+)\](?: -->)?$")
BEGIN, END = re.compile(r"# \[([a-z]+)"), re.compile(r"# [a-z]+\]")


@click.command("new-plugin", epilog="Then read README.md in the new folder.")
@click.argument("name")
@click.option(
    "--hooks",
    default="tools",
    show_default=True,
    metavar="HOOK,…",
    help=f"What it offers: any of {', '.join(PARTS)}, or all.",
)
@click.option("--into", default=".", metavar="DIR", help="Where the new folder is made (default: current directory).")
def new_plugin(name: str, hooks: str, into: str) -> None:
    """Make the distribution deepwork-NAME: a plugin with tests, whose lint, types and tests pass at once."""
    target = make_plugin(name, _chosen(hooks), Path(into))
    say(f"created  {target}")
    say()
    say(f"Next: install it for development and run its tests; {target}/README.md says how.")


def make_plugin(name: str, hooks: Collection[str], into: Path) -> Path:
    """Write a plugin with these hooks, and give its folder.

    Raises:
        ConfigError: The name cannot be used, or the folder exists or cannot be made.
    """
    _check_name(name)
    target = into / f"deepwork-{name.replace('_', '-')}"
    if target.exists():
        raise ConfigError(f"{target} exists already", hint="Choose another name or folder (--into), or remove it.")
    try:
        with as_file(files("deepwork") / "plugin_template") as template:
            for source in _wanted(template, hooks):
                place = target / _named(source.relative_to(template).as_posix(), name)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(_named(_cut(source.read_text(encoding="utf-8"), hooks), name), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{error.filename}: {error.strerror}", hint="Choose another folder: --into.") from None
    return target


def _chosen(hooks: str) -> list[str]:
    if hooks.strip() == "all":
        return list(PARTS)
    chosen = [hook.strip() for hook in hooks.split(",") if hook.strip()]
    unknown = [hook for hook in chosen if hook not in PARTS]
    if unknown or not chosen:
        what = f"no hook is called {unknown[0]!r}" if unknown else "no hook is chosen"
        raise ConfigError(what, hint=f"Choose from: {', '.join(PARTS)}, or all.")
    return chosen


def _check_name(name: str) -> None:
    if name.startswith(("deepwork-", "deepwork_")):
        raise ConfigError(f"the name {name!r} has 'deepwork' in it already", hint=f"Give the rest: {name[9:]}")
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} cannot be the name of a plugin",
            hint="Use lower-case letters, digits and single hyphens, and begin with a letter: acme-tracker",
        )
    if len(name) > LONGEST:
        raise ConfigError(f"the name {name!r} is longer than {LONGEST} characters", hint="Choose a shorter one.")
    if name.replace("-", "_") in BUILTINS:
        raise ConfigError(f"{name!r} is the name of a plugin of the core", hint="Choose another one.")
    kind = _taken().get(name.replace("-", "_"))
    if kind:
        raise ConfigError(f"{name!r} is the name of a {kind} already", hint="Choose another one.")


def _taken() -> dict[str, str]:
    """Find the names of what the core offers, and of its other distributions; a plugin's parts bear its name."""
    from deepwork.cli.main import COMMANDS
    from deepwork.loading.manager import PluginManager
    from deepwork.loading.selection import DISTRIBUTIONS
    from deepwork.project.offers import list_offers
    from deepwork.project.project import Project

    with TemporaryDirectory() as empty:
        builtins = [plugin for plugin in installed() if plugin.builtin]
        project = Project(empty, plugins=PluginManager(candidates=builtins))
        offers = list_offers(project)
        sets = project.tool_sets(project.engine()).items
    kinds = dict.fromkeys(DISTRIBUTIONS, "plugin of DeepWork")
    kinds |= {provided.item.name: "tool set" for provided in sets}
    kinds |= {offer.name: offer.kind for offer in offers.items}
    kinds |= dict.fromkeys(COMMANDS, "command")
    return {name.replace("-", "_"): kind for name, kind in kinds.items()}


def _wanted(template: Path, hooks: Collection[str]) -> Iterator[Path]:
    """Give the files of the template that belong to these hooks, or to all."""
    unwanted = {part for hook, parts in PARTS.items() if hook not in hooks for part in parts}
    for source in sorted(template.rglob("*")):
        place = PurePosixPath(source.relative_to(template).as_posix())
        if source.is_file() and not unwanted.intersection(place.parts) and "__pycache__" not in place.parts:
            yield source


def _cut(text: str, hooks: Collection[str]) -> str:
    """Leave out the lines that are marked for other hooks, and the marks."""
    kept: list[str] = []
    keeping = True
    for line in text.splitlines():
        begin, mark = BEGIN.fullmatch(line), MARK.search(line)
        if begin or END.fullmatch(line):
            keeping = begin is None or begin[1] in hooks
        elif keeping and (mark is None or _fits(mark, hooks)):
            kept.append(line[: mark.start()] if mark else line)
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(kept)).rstrip("\n") + "\n"


def _fits(mark: re.Match[str], hooks: Collection[str]) -> bool:
    marked = set(mark["hooks"].split(","))
    return marked.issuperset(hooks) if mark["only"] else not marked.isdisjoint(hooks)


def _named(text: str, name: str) -> str:
    """Put the plugin's name in the place of `acme`, as distribution, module or class needs it."""
    module, distribution = name.replace("-", "_"), name.replace("_", "-")
    names = {
        "deepwork-acme": f"deepwork-{distribution}",
        "acme": module,
        "Acme": "".join(part.title() for part in module.split("_")),
    }
    return re.sub("|".join(names), lambda found: names[found[0]], text)
