"""A reviewer for DeepWork."""
