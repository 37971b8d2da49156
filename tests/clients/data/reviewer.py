"""Judges a tour: it has to say how to try the project. A tour that is slow to read keeps it until somebody ends it."""

import json
import os
import sys
import time
from pathlib import Path

SECONDS = 60

request = json.load(sys.stdin)
[path] = request["files"]
tour = Path(path).read_text()
if "slow" in tour:
    server = os.getppid()
    Path("reading.new").write_text(str(os.getpid()))
    Path("reading.new").rename("reading")
    end = time.monotonic() + SECONDS
    while os.getppid() == server and time.monotonic() < end:
        time.sleep(0.02)
passed = "Try it" in tour
feedback = "Good" if passed else "It does not say how to try the project"
json.dump({"passed": passed, "feedback": feedback}, sys.stdout)
