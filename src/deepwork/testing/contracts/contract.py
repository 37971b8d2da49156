"""What all contracts have in common."""

from __future__ import annotations

from typing import Any

import pytest


class Contract:
    """A class of tests that others inherit.

    A test of a contract cannot be left out. Where an implementation is known to fall short, say so:

        @pytest.mark.xfail(reason="the server sorts by day")
        async def test_the_last_changed_comes_first(self, store):
            await super().test_the_last_changed_comes_first(store)
    """

    pytestmark = pytest.mark.anyio

    def __init_subclass__(cls, **more: Any) -> None:
        """Refuse a class that overrides a test otherwise.

        Raises:
            TypeError: It does; the error names the test.
        """
        super().__init_subclass__(**more)
        for name, original in _promised(cls).items():
            if getattr(cls, name) is not original and not _is_excused(getattr(cls, name)):
                raise TypeError(
                    f"{cls.__name__}.{name} overrides a test of a contract; only an "
                    "@pytest.mark.xfail(reason=...) may, which says how the implementation falls short"
                )

    @pytest.fixture
    def anyio_backend(self) -> str:
        """The event loop under which servers run."""
        return "asyncio"


def _promised(cls: type) -> dict[str, Any]:
    """Find the tests that a class inherits from contracts: classes whose names end with `Contract`."""
    return {
        name: test
        for contract in reversed(cls.__mro__[1:])
        if contract.__name__.endswith("Contract")
        for name, test in vars(contract).items()
        if name.startswith("test_")
    }


def _is_excused(test: Any) -> bool:
    marks = getattr(test, "pytestmark", ())
    return any(mark.name == "xfail" and mark.kwargs.get("reason") for mark in marks)
