"""`deepwork new-plugin`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from importlib.resources import as_file, files
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import click

from deepwork.cli.main import COMMANDS
from deepwork.commands.terminal import say
from deepwork.errors import ConfigError
from deepwork.loading.discovery import installed
from deepwork.loading.features import FEATURES
from deepwork.loading.manager import PluginManager
from deepwork.loading.selection import DISTRIBUTIONS
from deepwork.project.offers import list_offers
from deepwork.project.project import Project

# The files that belong to each hook; all other files of the template are written for every plugin.
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
CLASS_ENDINGS = ("runner", "store", "jobs", "settings")
# `# [tools,checks]` keeps a line if one of these hooks was chosen; `# [only tools]` if no other hook was chosen. The
# lines between `# [tools` and `# tools]` are kept if `tools` was chosen.
MARK = re.compile(r"\s*(?:#|<!--) \[(?P<only>only )?(?P<hooks>[a-z,]+)\](?: -->)?$")
BEGIN, END = re.compile(r"# \[([a-z]+)"), re.compile(r"# [a-z]+\]")


@click.command("new-plugin", epilog="Then read README.md in the new folder.")
@click.argument("name")
@click.option(
    "--hooks",
    default="tools",
    show_default=True,
    metavar="HOOK,…",
    help=f"What the plugin offers: any of {', '.join(PARTS)}, or all.",
)
@click.option("--into", default=".", metavar="DIR", help="Where to create the new folder (default: current directory).")
def new_plugin(name: str, hooks: str, into: str) -> None:
    """Create the distribution deepwork-NAME: a plugin with tests that passes lint, type checks and tests at once."""
    target = make_plugin(name, _chosen(hooks), Path(into))
    say(f"created  {target}")
    say()
    say(f"Next: install it for development and run its tests; {target}/README.md says how.")


def make_plugin(name: str, hooks: Collection[str], into: Path) -> Path:
    """Write a plugin with these hooks, and return its folder.

    Raises:
        ConfigError: The name cannot be used, or the folder exists or cannot be created.
    """
    _check_name(name)
    target = into / f"deepwork-{name.replace('_', '-')}"
    if target.exists():
        raise ConfigError(f"{target} exists already", hint="Choose another name or folder (--into), or remove it.")
    try:
        with as_file(files("deepwork") / "plugin_template") as template:
            for source in _sources(template, hooks):
                file = target / _renamed(source.relative_to(template).as_posix(), name)
                file.parent.mkdir(parents=True, exist_ok=True)
                text = _without_marks(source.read_text(encoding="utf-8"), hooks)
                file.write_text(_renamed(text, name), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{error.filename}: {error.strerror}", hint="Choose another folder: --into.") from None
    return target


def _chosen(hooks: str) -> list[str]:
    if hooks.strip() == "all":
        return list(PARTS)
    chosen = [hook.strip() for hook in hooks.split(",") if hook.strip()]
    unknown = [hook for hook in chosen if hook not in PARTS]
    if unknown or not chosen:
        problem = f"no hook is called {unknown[0]!r}" if unknown else "no hook is chosen"
        raise ConfigError(problem, hint=f"Choose from: {', '.join(PARTS)}, or all.")
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
    if name.replace("-", "_") in FEATURES:
        raise ConfigError(f"{name!r} is the name of a plugin of the core", hint="Choose another one.")
    kind = _used_names().get(name.replace("-", "_"))
    if kind:
        raise ConfigError(f"{name!r} is the name of a {kind} already", hint="Choose another one.")


def _used_names() -> dict[str, str]:
    """Return the names that the core and its distributions use, because a plugin names its parts after itself."""
    with TemporaryDirectory() as empty_project:
        builtins = [plugin for plugin in installed() if plugin.builtin]
        project = Project(empty_project, plugins=PluginManager(candidates=builtins))
        offers = list_offers(project)
        sets = project.tool_sets(offers.engine).items if offers.engine else []
    kinds = dict.fromkeys(DISTRIBUTIONS, "plugin of DeepWork")
    kinds |= {provided.item.name: "tool set" for provided in sets}
    kinds |= {offer.name: offer.kind for offer in offers.items}
    kinds |= dict.fromkeys(COMMANDS, "command")
    return {name.replace("-", "_"): kind for name, kind in kinds.items()}


def _sources(template: Path, hooks: Collection[str]) -> Iterator[Path]:
    """Yield the files of the template, except those of other hooks."""
    omitted = {part for hook, parts in PARTS.items() if hook not in hooks for part in parts}
    for source in sorted(template.rglob("*")):
        parts = PurePosixPath(source.relative_to(template).as_posix()).parts
        if source.is_file() and not omitted.intersection(parts) and "__pycache__" not in parts:
            yield source


def _without_marks(text: str, hooks: Collection[str]) -> str:
    """Remove the lines that are marked for other hooks, and the marks."""
    lines: list[str] = []
    is_kept = True
    for line in text.splitlines():
        begin, mark = BEGIN.fullmatch(line), MARK.search(line)
        if begin or END.fullmatch(line):
            is_kept = begin is None or begin[1] in hooks
        elif is_kept and (mark is None or _fits(mark, hooks)):
            lines.append(line[: mark.start()] if mark else line)
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines)).rstrip("\n") + "\n"


def _fits(mark: re.Match[str], hooks: Collection[str]) -> bool:
    marked = set(mark["hooks"].split(","))
    return marked.issuperset(hooks) if mark["only"] else not marked.isdisjoint(hooks)


def _class_stem(module: str) -> str:
    """Return the beginning of class names: a runner of the plugin `ollama_runner` is an `OllamaRunner`."""
    first, *parts = module.split("_")
    if parts and parts[-1] in CLASS_ENDINGS:
        parts.pop()
    return "".join(part.title() for part in [first, *parts])


def _renamed(text: str, name: str) -> str:
    """Replace `acme` by the plugin's name, in the form that a distribution, a module or a class needs."""
    module, distribution = name.replace("-", "_"), name.replace("_", "-")
    names = {
        "deepwork-acme": f"deepwork-{distribution}",
        "acme": module,
        "Acme": _class_stem(module),
    }
    return re.sub("|".join(names), lambda match: names[match[0]], text)
