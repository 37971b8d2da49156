"""The promises: what a plugin implements or hands in."""
