"""The room of job files: read, checked, cached, found by name."""
