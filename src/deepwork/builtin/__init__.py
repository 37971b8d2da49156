"""The core's own plugins, declared through the same hooks as anybody's, on `deepwork.api` alone."""
