"""Measures servers against each other in one run: `python -m bench --help`."""
