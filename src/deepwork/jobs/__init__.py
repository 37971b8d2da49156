"""Job files: read, checked, cached and looked up by name."""
