"""The brain: what the four tools do, without any protocol around it."""
