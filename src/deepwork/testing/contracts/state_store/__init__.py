"""What every state store has to do: a contract for each thing that stores are used for."""

from __future__ import annotations

from deepwork.testing.contracts.state_store.archive import ArchiveContract
from deepwork.testing.contracts.state_store.damage import DamageContract
from deepwork.testing.contracts.state_store.listings import ListingContract
from deepwork.testing.contracts.state_store.peek import PeekContract
from deepwork.testing.contracts.state_store.revisions import RevisionContract
from deepwork.testing.contracts.state_store.saved import SavedSessionContract
from deepwork.testing.contracts.state_store.servers import ServersContract

__all__ = ["StateStoreContract"]


class StateStoreContract(
    SavedSessionContract,
    PeekContract,
    RevisionContract,
    ListingContract,
    ArchiveContract,
    ServersContract,
    DamageContract,
):
    """Override `store`; override the other fixtures for what your store can do besides.

    The store of each test is empty, and inside of its `async with`.
    """
