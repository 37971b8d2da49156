"""The user's and the project's configuration: both optional, read strictly, joined into one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import BeforeValidator, Field

from deepwork.documents.limits import MAX_BYTES
from deepwork.documents.load import read_document
from deepwork.documents.problems import DocumentError
from deepwork.errors import ConfigError, PathRefused
from deepwork.models.config import IGNORED, NotificationsSection, Section, ToolsSection
from deepwork.paths.paths import describe, is_utf8, read_regular
from deepwork.paths.user_folders import check_user_folders, user_config_file, user_state_dir
from deepwork.paths.workspace import Workspace
from deepwork.ports.context import CommandFolder, CommandVerdict
from deepwork.project.settings import NeedsTrust, at_most, join, trusted_part
from deepwork.project.trust import Trust
from deepwork.text import json_type, visible

ProofPolicy = Literal["off", "warn", "hold"]
PROOFS: tuple[ProofPolicy, ...] = get_args(ProofPolicy)
# The runner that hands reviews back to the agent, the one that asks a person, and the feature with the first.
SELF_REVIEW = "self"
PERSON = "person"
REVIEWERS = "reviewers"
OUTPUT_ROOTS = "DEEPWORK_ALLOWED_OUTPUT_ROOTS"


class StateSection(Section):
    """Where sessions are kept."""

    store: str = Field("json", description="json, memory, or a store of a plugin, such as sql.")


class CommandSection(Section):
    """A program that reviews."""

    run: Annotated[list[str], Field(min_length=1)] = Field(
        description="The program and its arguments; no shell is involved."
    )
    pass_env: list[str] = Field(
        [], description="Variables that it sees besides the usual ones; * at the end stands for any rest."
    )
    verdict: CommandVerdict = Field(
        "json",
        description="json: it prints a verdict. exit_code: 0 passes, any other code fails. sarif: it prints SARIF.",
    )
    folder: CommandFolder = Field(
        "copy", description="Where it runs. copy: a folder with copies of what is judged. project: the project itself."
    )
    repeatable: bool | None = Field(
        None,
        description="Whether it may be asked again about broken work, to see it refuse; by default with exit_code.",
    )
    must_fail: list[str] = Field([], description="Files that it must refuse in the place of the work, as a proof.")


def _runner_or_runners(value: Any) -> Any:
    """Refuse what is neither the name of a runner nor a list of different names.

    Raises:
        ValueError: It says why.
    """
    names = value if isinstance(value, list) else [value]
    if not names:
        raise ValueError("names nobody: a list of runners has at least one")
    for name in names:
        if not isinstance(name, str):
            # The problems of a document are made of ValueError.
            raise ValueError(  # noqa: TRY004
                f"has to be the name of a runner, or a list of names, not {json_type(name)}"
            )
    if len({*names}) < len(names):
        raise ValueError("names a runner more than once")
    if PERSON in names and (names[-1] != PERSON or SELF_REVIEW in names):
        raise ValueError(
            "has a person before others, or beside self: a person comes last, so that nobody reads what another "
            "reviewer refuses, and what is handed back to the agent would pass without them"
        )
    return value


class RouteSection(Section):
    """Sends reviews to a runner, or to several that judge one after the other; what is not given fits all."""

    job: str | None = Field(None, description="Only reviews of this job.")
    step: str | None = Field(None, description="Only reviews of this step.")
    review: str | None = Field(None, description="Only reviews with this run_each.")
    runner: Annotated[str | list[str], BeforeValidator(_runner_or_runners)] = Field(
        description="Who judges these reviews: self, one of commands, or a runner of a plugin; or several in turn."
    )

    @property
    def runners(self) -> list[str]:
        """The names of all who judge, in their order."""
        return [self.runner] if isinstance(self.runner, str) else self.runner


def _as_strict(name: str, value: Any, own: Mapping[str, Any]) -> bool:
    return bool(value) or not own[name]


def _of_no_other_runner(name: str, value: Any, own: Mapping[str, Any]) -> bool:
    """True if the project takes no reviews away from runners that the user has chosen."""
    return value == own[name] or not (own["runner"] or own["runners"])


class GateSection(Section):
    """How outputs are reviewed. A project can make this stricter and cheaper than its user has it, and nothing else."""

    enabled: Annotated[bool, NeedsTrust(unless=_as_strict), Field(description="Whether outputs are reviewed.")] = True
    strict: bool = Field(
        default=False, description="Only a person can skip a review, and only reviewers that give verdicts may judge."
    )
    prove: ProofPolicy | None = Field(
        None, description="What follows if a gate also passes broken work: off, warn, or hold; hold if it is strict."
    )
    runner: Annotated[
        str | None,
        NeedsTrust(unless=_of_no_other_runner),
        Field(description="Who judges: self (a sub-agent of the agent), one of commands, or a runner of a plugin."),
    ] = None
    timeout: Annotated[int, Field(gt=0)] = Field(
        120, description="Seconds for one external review, plus 30 for each file above five."
    )
    max_attempts: Annotated[
        int,
        Field(gt=0),
        NeedsTrust(unless=at_most),
        Field(description="Failed external reviews after which a step is stuck and the user is asked."),
    ] = 3
    concurrency: Annotated[
        int, Field(gt=0), NeedsTrust(unless=at_most), Field(description="How many reviews run at once.")
    ] = 4
    keep: bool = Field(
        default=False,
        description="Whether what is reported of every reviewed step is kept, not only of those that people review.",
    )
    person_after: Annotated[str | None, Field(pattern=r"^[1-9][0-9]{0,5}[smhd]$")] = Field(
        None,
        description="After so long without an answer, a step that waits for a person is overdue: 30s, 15m, 2h, 3d.",
    )
    runners: Annotated[
        list[RouteSection],
        NeedsTrust(unless=_of_no_other_runner),
        Field(description="Sends single reviews to other runners; the first that fits decides."),
    ] = []
    commands: dict[str, CommandSection] = Field({}, description="Programs that can be selected as runners, by name.")


class PluginsSection(Section):
    """Which plugins are loaded, and their settings."""

    block: list[str] = Field([], description="Plugins or distributions that are not loaded.")
    require: list[str] = Field([], description="Plugins without which the server does not start.")
    settings: dict[str, dict[str, Any]] = Field({}, description="Settings of plugins, by the plugin's name.")


class Config(Section):
    """Everything that may stand in a configuration file; `version` and `platforms` as older files have them."""

    version: Any = Field(None, description=IGNORED)
    platforms: Any = Field(None, description=IGNORED)
    state: StateSection = StateSection()
    quality_gate: GateSection = Field(GateSection(), description="How the outputs of steps are reviewed.")
    tools: ToolsSection = ToolsSection()
    plugins: PluginsSection = PluginsSection()
    notifications: NotificationsSection = Field(
        NotificationsSection(), description="Who is told of what waits for a person. Only in your own file."
    )
    allowed_output_roots: Annotated[
        list[str], NeedsTrust(), Field(description="Folders outside of the project in which outputs may lie.")
    ] = []


class LoadedConfig(NamedTuple):
    """The configuration, the workspace that follows from it, and what a plugin's settings are made of.

    `user` is what the user's own file says, `requested` what the project's says, trusted or not, and `ignored` tells of
    what the project can never say.
    """

    config: Config
    workspace: Workspace
    trust: Trust
    user_settings: Mapping[str, Mapping[str, Any]]
    project_settings: Mapping[str, Mapping[str, Any]]
    user: Config
    requested: Config
    ignored: tuple[str, ...]


def load_config(root: Path, environment: Mapping[str, str]) -> LoadedConfig:
    """Join defaults, the user's file, the project's file and the environment, the later winning.

    Settings of the project that need trust are left out until the user has trusted them.

    Raises:
        ConfigError: A file cannot be used; the error has file, line and the nearest valid key.
    """
    check_user_folders(environment, root)
    trust = Trust(root, user_state_dir(environment))
    user = _read(user_config_file(environment))
    project = _read(Workspace(root).config_file, inside=root)
    own = user.model_dump(exclude_unset=True)
    trusted_settings = trusted_part(Config, project.model_dump(exclude_unset=True), trust.allows, own=own)
    # Whoever is told of what waits could be anybody, so no project can say who it is, and no question is asked.
    trusted_settings.pop("notifications", None)
    joined = join(own, trusted_settings)
    # A project cannot load a plugin that its user blocks, so the two lists are joined.
    blocked = {*user.plugins.block, *project.plugins.block}
    joined["plugins"] = {**joined.get("plugins", {}), "block": sorted(blocked)}
    # Nor can it make a gate lenient that its user has made strict.
    strict = user.quality_gate.strict or project.quality_gate.strict
    prove = max(_proof_policy(user.quality_gate, strict=strict), project.quality_gate.prove or "off", key=PROOFS.index)
    joined["quality_gate"] = {**joined.get("quality_gate", {}), "strict": strict, "prove": prove}
    roots = _roots_of_environment(environment)
    if roots is not None:
        joined["allowed_output_roots"] = roots
    config = Config.model_validate(joined)
    extra_roots = tuple(Path(os.path.expanduser(folder)).absolute() for folder in config.allowed_output_roots)
    workspace = Workspace(root, extra_roots)
    ignored = _ignored(project, user_config_file(environment))
    return LoadedConfig(
        config, workspace, trust, user.plugins.settings, project.plugins.settings, user, project, ignored
    )


def _ignored(project: Config, own_file: Path) -> tuple[str, ...]:
    if "notifications" not in project.model_fields_set:
        return ()
    text = (
        f"notifications in .deepwork/config.yml has no effect and cannot be trusted: write it into your own {own_file}"
    )
    return (text,)


def _proof_policy(own: GateSection, *, strict: bool) -> ProofPolicy:
    return own.prove or ("hold" if strict else "warn")


def resolve_root(project_root: str | Path) -> Path:
    """Make the project's folder absolute.

    Raises:
        ConfigError: There is no such folder.
    """
    root = Path(os.path.realpath(project_root))
    if not root.is_dir():
        raise ConfigError(f"project root {str(project_root)!r} is not a folder", hint="Give an existing one: --path.")
    if not is_utf8(str(root)):
        raise ConfigError(f"project root {str(root)!r} is not UTF-8, which replies could not carry", hint="Rename it.")
    return root


def _read(file: Path, *, inside: Path | None = None) -> Config:
    """Read one file; the project's must lie in the project, links resolved."""
    roots = [inside] if inside else [Path(os.path.realpath(file)).parent]
    path = str(file) if inside else os.path.realpath(file)
    try:
        content = read_regular(path, roots, limit=MAX_BYTES)
        return read_document(content).validate(Config)
    except FileNotFoundError:
        return Config()
    except (PathRefused, OSError) as error:
        raise ConfigError(f"{visible(str(file))} {describe(error)}") from None
    except DocumentError as error:
        raise ConfigError(error.at(file)) from None


def _roots_of_environment(environment: Mapping[str, str]) -> list[str] | None:
    folders = environment.get(OUTPUT_ROOTS)
    return None if folders is None else [folder for folder in folders.split(os.pathsep) if folder.strip()]
