"""A foreign plugin that does everything right."""
