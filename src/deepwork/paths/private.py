"""Files with secrets of the user: readable by their owner alone, or not read at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from deepwork.errors import ConfigError

MAX_BYTES = 1024 * 1024


def read_private(path: Path, subject: str) -> str:
    """Read a file of mode 0600, which errors call by the subject, such as `token file`.

    Raises:
        ConfigError: It cannot be read, is not a regular file, or others may read it.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
                raise ConfigError(f"{subject} {str(path)!r} is not a regular file of at most 1 MiB")
            if status.st_mode & 0o077:
                raise ConfigError(
                    f"{subject} {str(path)!r} can be read by others (mode {stat.S_IMODE(status.st_mode):04o})",
                    hint=f"Run: chmod 600 {path}",
                )
            return file.read(MAX_BYTES).decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{subject} {str(path)!r} is not UTF-8") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{subject} {str(path)!r} cannot be read: {reason}") from None


def _without_waiting(path: str, flags: int) -> int:
    """Open without blocking, because a FIFO would wait for a writer."""
    return os.open(path, flags | os.O_NONBLOCK)
