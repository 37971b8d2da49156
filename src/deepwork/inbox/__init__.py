"""What of the core waits for a person, and who is told of what waits."""
