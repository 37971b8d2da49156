"""Processes, their supervisor, private copies of programs, git, and threads."""
