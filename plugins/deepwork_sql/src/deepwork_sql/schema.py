"""The schemas of installed plugins: what their tables look like, and who may use them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import entry_points

from deepwork.errors import PluginLoadError

GROUP = "deepwork_sql.schemas"


@dataclass(frozen=True)
class Schema:
    """The tables of one plugin. A distribution offers it by an entry point of the group `deepwork_sql.schemas`.

    Attributes:
        name: With it begin the names of the tables.
        migrations: The package that is an Alembic script folder: `versions/0001_first.py` and so on.
        version: Of the newest migration; counts from 1.
        oldest_release: The oldest release of the distribution that can still use these tables. A migration that only
            adds leaves it as it is.
    """

    name: str
    migrations: str
    version: int
    oldest_release: str


@dataclass(frozen=True)
class InstalledSchema:
    """A schema, and the release of the distribution that offers it."""

    schema: Schema
    release: str


SCHEMA = Schema(name="deepwork", migrations="deepwork_sql.migrations", version=1, oldest_release="1.0.0.dev0")


def installed_schemas() -> list[InstalledSchema]:
    """Find the schemas of all installed plugins, that of this one first.

    Raises:
        PluginLoadError: One of them cannot be imported.
    """
    schemas = []
    for point in entry_points(group=GROUP):
        try:
            schema = point.load()
        except Exception as error:
            raise PluginLoadError(f"the database schema {point.value!r} cannot be imported: {error}") from error
        schemas.append(InstalledSchema(schema, point.dist.version if point.dist else "0"))
    return sorted(schemas, key=lambda installed: (installed.schema.name != SCHEMA.name, installed.schema.name))
