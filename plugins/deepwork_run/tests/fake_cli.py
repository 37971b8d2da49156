"""Plays Claude Code or Codex, by its name: works on a session through the server that it is told to start.

`plan.json` beside it has for each name what to do at each start: `steps` to report, `then` `end`, `limit`, `login` or
`hang`, and `cost`, `daemon`, and `until`: a call lasts until the step has a file of its name in this folder.
"""

import json
import os
import re
import subprocess
import sys
import time
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

from deepwork_run.agents.scripted import Server, _declared, _written

FOLDER, NAME = Path(sys.argv[0]).parent, Path(sys.argv[0]).name
IS_CLAUDE = NAME == "claude"


def tell(**message):
    print(json.dumps(message), flush=True)


def server_command():
    if IS_CLAUDE:
        entry = json.loads(Path(sys.argv[sys.argv.index("--mcp-config") + 1]).read_text())["mcpServers"]["deepwork"]
        os.environ.update(entry["env"])
    else:
        option = next(word for word in sys.argv if word.startswith("mcp_servers.deepwork="))
        entry = tomllib.loads(option.replace("mcp_servers.deepwork", "entry", 1))["entry"]
    return [entry["command"], *entry["args"]]


def turn():
    number = sum(1 for line in (FOLDER / "calls").read_text().splitlines() if line.startswith(NAME))
    acts = json.loads((FOLDER / "plan.json").read_text())[NAME]
    return number, acts[min(number, len(acts)) - 1]


def call(number, step_id, has_ended):
    if IS_CLAUDE:
        block = (
            {"type": "tool_result", "tool_use_id": f"{step_id}{number}"}
            if has_ended
            else {"type": "tool_use", "name": "mcp__deepwork__finished_step", "id": f"{step_id}{number}"}
        )
        tell(type="user" if has_ended else "assistant", message={"id": f"m{number}{step_id}", "content": [block]})
    else:
        item = {"id": f"{step_id}{number}", "type": "mcp_tool_call", "tool": "finished_step"}
        tell(type="item.completed" if has_ended else "item.started", item=item)


def end(act, number):
    until = (datetime.now(UTC) + timedelta(seconds=act.get("for", 1))).timestamp()
    text = {
        "limit": f"Claude AI usage limit reached|{int(until) + 1}"
        if IS_CLAUDE
        else f"You've hit your usage limit. try again in {act.get('for', 1)} seconds",
        "login": "Please run /login" if IS_CLAUDE else "unexpected status 401 Unauthorized",
    }.get(act["then"], "The end")
    failed = act["then"] in ("limit", "login")
    if IS_CLAUDE:
        cost = {"total_cost_usd": act["cost"]} if "cost" in act else {}
        usage = {"input_tokens": 100, "output_tokens": 10}
        tell(type="result", is_error=failed, result=text, session_id=f"c{number}", usage=usage, **cost)
    elif failed:
        tell(type="turn.failed", error={"message": text})
    else:
        tell(type="turn.completed", usage={"input_tokens": 100, "output_tokens": 10})
    return 1 if failed else 0


def main():
    with (FOLDER / "calls").open("a") as calls:
        calls.write(f"{NAME} {os.getpid()}\n")
    prompt = sys.stdin.read()
    number, act = turn()
    with (FOLDER / "seen.jsonl").open("a") as record:
        variables = sorted(os.environ)
        about = {"name": NAME, "arguments": sys.argv[1:], "prompt": prompt, "variables": variables, "cwd": os.getcwd()}
        record.write(json.dumps(about) + "\n")
    if not IS_CLAUDE:
        tell(type="thread.started", thread_id=f"t{number}")
    if act.get("daemon"):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        with (FOLDER / "calls").open("a") as calls:
            calls.write(f"daemon {child.pid}\n")
    session_id = re.search(r'session_id="(\w+)"', prompt)[1]
    server = Server(server_command())
    reply = server.finish(session_id=session_id, step_id="?", outputs={})
    for _ in range(act.get("steps", 0)):
        if step := reply.get("begin_step"):
            call(number, step["step_id"], has_ended=False)
            while "until" in act and not os.path.exists(os.path.join(act["until"], step["step_id"])):
                time.sleep(0.01)
            outputs = {name: _written(name, about) for name, about in _declared(step)}
            reply = server.finish(session_id=session_id, step_id=step["step_id"], outputs=outputs)
            call(number, step["step_id"], has_ended=True)
    if act["then"] == "hang":
        (FOLDER / "hangs").touch()
        time.sleep(600)
    return end(act, number)


sys.exit(main())
