"""Ends the process that imports it."""

import sys

sys.exit("no licence found")
