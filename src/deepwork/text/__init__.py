"""Text for people and agents: escaping, shortening and did-you-mean, one recipe each."""
