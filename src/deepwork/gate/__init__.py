"""The quality gate: who judges the outputs of a step, what came of it, and what follows from that."""
