"""A plugin for DeepWork."""
