"""Many agents on one plan: workflows of tasks, claims with leases, workspaces and messages, in a shared database."""
