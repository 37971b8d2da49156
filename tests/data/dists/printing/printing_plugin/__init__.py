"""Forgotten prints: at import and in a hook."""

from deepwork import hookimpl

print("print at import")  # noqa: T201 - that is what it is for


@hookimpl
def deepwork_job_sources():
    print("print at hook")  # noqa: T201 - that is what it is for
    return []
