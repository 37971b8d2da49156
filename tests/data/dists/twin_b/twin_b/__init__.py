"""One of two plugins with the same name."""
