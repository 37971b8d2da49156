"""Checks that give something else than findings, raise, print, or are fine."""

from deepwork import hookimpl
from deepwork.api import Check, Finding, Level


def texts():
    return ["all is well"]


def words():
    yield Finding("superb", "all is well")


def fails():
    yield Finding(Level.WARNING, "a password stands in a file")
    raise KeyError("ACME_URL")


def prints():
    print("looking around")  # noqa: T201 - that is what it is for
    yield Finding(Level.OK, "all is really well")


@hookimpl
def deepwork_checks():
    yield Check("texts", texts)
    yield Check("words", words)
    yield Check("fails", fails)
    yield Check("prints", prints)
