"""The feature `proofs`: before the pass of a repeatable gate counts, it has to refuse this very work, broken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deepwork import hookimpl

if TYPE_CHECKING:
    from click import Command

    from deepwork.api import PluginContext
    from deepwork.ports.proofs import Prover


@hookimpl
def deepwork_provers(context: PluginContext) -> Iterator[Prover]:
    """The prover of `quality_gate.prove`."""
    from deepwork.builtin.proofs.prover import prover_of

    yield prover_of(context.workspace.root)


@hookimpl
def deepwork_commands() -> Iterator[Command]:
    """The command that is added to the core's group `gate`."""
    from deepwork.builtin.proofs.prove_command import gate

    yield gate
