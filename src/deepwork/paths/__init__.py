"""Safe paths, durable writes, locks, and the places of a project and its user."""
