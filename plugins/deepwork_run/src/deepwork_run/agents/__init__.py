"""The agents of this plugin: each knows the program of one vendor, and nothing of sessions."""
