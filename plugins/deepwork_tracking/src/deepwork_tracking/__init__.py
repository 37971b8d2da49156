"""What agents did and why, for people who want to see it."""

from __future__ import annotations
