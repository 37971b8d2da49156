"""The features that ship with the kernel. Nothing of them is imported here."""

from __future__ import annotations

# The module with the hooks of each. `deepwork doctor` shows their checks in this order.
FEATURES = {
    "json_store": "deepwork.builtin.json_store.plugin",
    "memory_store": "deepwork.builtin.memory_store",
    "local_jobs": "deepwork.builtin.local_jobs",
    "reviewers": "deepwork.builtin.reviewers.plugin",
    "proofs": "deepwork.builtin.proofs",
    "workflow_tools": "deepwork.builtin.workflow_tools.plugin",
    "authoring": "deepwork.builtin.authoring",
    "upkeep": "deepwork.builtin.upkeep",
    "http": "deepwork.builtin.http.plugin",
    "people": "deepwork.builtin.people.plugin",
    "clients": "deepwork.builtin.clients.plugin",
    "demo": "deepwork.builtin.demo.plugin",
}

# What reads the heads of sessions from the files of a store, which is not opened for it, by the store's name.
HEADS = {"json": "deepwork.builtin.json_store.heads:FileHeads"}
