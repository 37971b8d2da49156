"""The room of plugins: found, imported, asked what they have."""
