"""Clients: their files, our entry in them, and what their hooks are told. Nothing here imports a model or a plugin."""
