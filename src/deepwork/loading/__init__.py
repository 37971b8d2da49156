"""Plugins: discovered, imported, asked what they offer, and selected by name."""
