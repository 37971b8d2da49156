"""The feature `reviewers`: the agent's own sub-agent, and programs that the configuration names."""
