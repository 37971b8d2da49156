"""Sessions: what is stored, pure transitions from one state to the next, and the stacks of connections."""
