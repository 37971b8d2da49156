"""Any graph of dependencies: an accepted plan can be finished, and any other is refused with its cycle."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepwork_orchestration.errors import OrchestrationError
from deepwork_orchestration.graph import check_graph

NAMES = [f"t{number}" for number in range(8)]
graphs = st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), max_size=4, unique=True), max_size=8)


def finishable(dependencies):
    """True if all tasks get done when every task without open dependencies is done, again and again."""
    finished = set()
    while ready := {name for name, needed in dependencies.items() if name not in finished and set(needed) <= finished}:
        finished |= ready
    return finished == set(dependencies)


@given(graphs)
def test_exactly_the_plans_that_can_be_finished_are_accepted(graph):
    dependencies = {name: graph.get(name, []) for name in NAMES}
    if finishable(dependencies):
        check_graph(NAMES, dependencies)
        return
    with pytest.raises(OrchestrationError) as refusal:
        check_graph(NAMES, dependencies)
    if refusal.value.code == "DEPENDENCY_CYCLE":
        cycle = re.findall(r"'(t\d)'", refusal.value.message)
        assert cycle[0] == cycle[-1]
        assert all(needed in dependencies[name] for name, needed in pairwise(cycle))
    else:
        assert refusal.value.code == "SELF_DEPENDENCY"
