"""Stores that each do one thing wrong, named with the one test that has to notice."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
import store_ids
import store_listings
import store_peeks
import store_processes
import store_saves
from good_store import Fixtures, GoodStore

from deepwork.testing import StateStoreContract, StateStoreProcessesContract

CONTRACTS = (StateStoreContract, StateStoreProcessesContract)
MODULES = (store_saves, store_listings, store_ids, store_peeks, store_processes)
for _store in (GoodStore, *(item for module in MODULES for item in vars(module).values())):
    if isinstance(_store, type) and issubclass(_store, GoodStore):
        globals()[f"Test{_store.__name__}"] = type(
            f"Test{_store.__name__}", (Fixtures, *CONTRACTS), {"store_class": _store, "breaks": _store.breaks}
        )
