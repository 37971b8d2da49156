"""YAML documents: read strictly and within limits, every problem with its line."""
