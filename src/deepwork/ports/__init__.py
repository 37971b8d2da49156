"""Interfaces and records: what a plugin implements, and what it gives to the host."""
