"""Judges a tour: it has to say how to try the project. A tour that is slow to read keeps it busy until it is killed."""

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
    project = Path(request["project_root"])
    (project / "reading.new").write_text(str(os.getpid()))
    (project / "reading.new").rename(project / "reading")
    end = time.monotonic() + SECONDS
    while os.getppid() == server and time.monotonic() < end:
        time.sleep(0.02)
passed = "Try it" in tour
feedback = "Good" if passed else "It does not say how to try the project"
results = [{"criterion": name, "passed": passed} for name in request["criteria"]]
json.dump({"passed": passed, "feedback": feedback, "criteria_results": results}, sys.stdout)
