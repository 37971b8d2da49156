"""Has a hook that no release knows."""

from deepwork import hookimpl


@hookimpl
def deepwork_horoscopes():
    return []
