"""A plugin of somebody else that does everything right."""
