"""The room of the terminal."""
