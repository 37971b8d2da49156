"""Pages that show what all agents do and what waits for a person, and the JSON API below them."""
