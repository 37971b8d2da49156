"""Everything of one project joined: configuration, trust, shared objects, and the composition root."""
