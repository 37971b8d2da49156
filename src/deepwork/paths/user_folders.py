"""The user's own folders, outside of every project."""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from deepwork.errors import ConfigError
from deepwork.paths.folder import Folder


def user_config_dir(environment: Mapping[str, str]) -> Path:
    """Return the folder where programs keep the user's configuration.

    Raises:
        ConfigError: The environment names it by a relative path.
    """
    return _folder(environment, "XDG_CONFIG_HOME", "~/.config")


def user_config_file(environment: Mapping[str, str]) -> Path:
    """Return where the user's own configuration is."""
    return user_config_dir(environment) / "deepwork" / "config.yml"


def user_state_dir(environment: Mapping[str, str]) -> Path:
    """Return the folder of the user's decisions and reports.

    Raises:
        ConfigError: The environment names it by a relative path.
    """
    return _folder(environment, "XDG_STATE_HOME", "~/.local/state") / "deepwork"


def project_name(project: Path) -> str:
    """Return what a project's folder is called in the folders of its user's state."""
    return sha256(os.fsencode(project)).hexdigest()[:24]


class ProjectFolder:
    """A folder of one project in the state of its user, who alone can read it."""

    kind: str

    def __init__(self, state: Path, project: Path) -> None:
        self._state = state
        self.path = state / self.kind / project_name(project)

    def opened(self, *, create: bool = False) -> Folder:
        """Open the folder.

        Raises:
            PathRefused: A link leads out of the state, or it is not a folder.
            OSError: It does not exist, or cannot be made.
        """
        if create:
            self._state.mkdir(parents=True, exist_ok=True, mode=0o700)
        return Folder.open(self.path, inside=self._state, create=create)


def check_user_folders(environment: Mapping[str, str], project: Path) -> None:
    """Refuse folders of the user that lie in the project: its repository could bring what they hold.

    Raises:
        ConfigError: One does.
    """
    for folder in (user_config_dir(environment), user_state_dir(environment)):
        if Path(os.path.realpath(folder)).is_relative_to(project):
            raise ConfigError(
                f"your own folder {str(folder)!r} lies in the project {str(project)!r}, whose repository could bring "
                "what is in it",
                hint="Let HOME, XDG_CONFIG_HOME and XDG_STATE_HOME name folders outside of the project.",
            )


def _folder(environment: Mapping[str, str], variable: str, default: str) -> Path:
    path = environment.get(variable) or os.path.expanduser(default)
    if not os.path.isabs(path):
        name = variable if environment.get(variable) else "HOME"
        raise ConfigError(
            f"{name}: {path!r} is not an absolute path, so a project could bring your own files",
            hint=f"Unset {name}, or give a full path.",
        )
    return Path(path)
