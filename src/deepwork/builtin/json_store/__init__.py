"""The feature `json_store`: sessions as files of the project. Hooks of clients read them with `heads` alone."""
