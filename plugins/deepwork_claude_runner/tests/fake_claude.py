"""A program that takes Claude Code's arguments as strictly as that does, and behaves as a test says.

It is copied to a folder as `claude`. Beside it are `behaviour.json`, which says what to do, and `calls.jsonl`, to which
it writes how it was called. It takes no orders from the environment, because tests examine what is in there.
"""

import base64
import json
import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
VALUES = {
    "--output-format": {"text", "json", "stream-json"},
    "--system-prompt-file": None,
    "--json-schema": None,
    "--setting-sources": {"", "user", "project", "local"},
    "--tools": None,
    "--add-dir": None,
    "--permission-mode": {"acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "plan"},
    "--max-turns": None,
    "--model": None,
    "--max-budget-usd": None,
}
SWITCHES = {"-p", "--print", "--safe-mode", "--strict-mcp-config", "--no-session-persistence", "--version", "--help"}


def parse(words):
    """Read flags and the prompt; what is unknown or out of place ends the program with code 1."""
    options, remaining_words = {}, list(words)
    while remaining_words:
        word = remaining_words.pop(0)
        if word == "--":
            options["prompt"] = remaining_words
            break
        if word in VALUES:
            if not remaining_words:
                sys.exit(f"error: option '{word} <value>' argument missing")
            value = remaining_words.pop(0)
            if VALUES[word] is not None and value not in VALUES[word]:
                sys.exit(f"error: option '{word} <value>' argument '{value}' is invalid.")
            options[word] = value
        elif word in SWITCHES:
            options[word] = True
        elif word.startswith("-"):
            sys.exit(f"error: unknown option '{word}'")
        else:
            options.setdefault("prompt", []).append(word)
    return options


def result(**more):
    """Make the JSON that print mode ends with."""
    answer = {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "num_turns": 2,
        "result": "",
        "total_cost_usd": 0.0123,
        "usage": {"input_tokens": 100, "cache_read_input_tokens": 20, "output_tokens": 30},
        "modelUsage": {"claude-fake-1": {}},
        "session_id": "00000000-0000-4000-8000-000000000000",
    }
    print(json.dumps({**answer, **more}), flush=True)


def verdict(system_prompt, *, passed, feedback):
    """Judge every criterion that the system prompt lists."""
    names = re.findall(r"^- \*\*(.*)\*\*: ", system_prompt, re.MULTILINE)
    results = [{"criterion": name, "passed": passed, "feedback": feedback} for name in names]
    return {"passed": passed, "feedback": feedback, "criteria_results": results}


def spawn(seconds):
    """Leave a child behind that keeps stdout and stderr open."""
    code = f"import time; time.sleep({seconds})"
    return subprocess.Popen([sys.executable, "-ISc", code], stdin=subprocess.DEVNULL).pid


def behave(behaviour, options):
    """Do what the test says. Each mode is something that a reviewer may do."""
    system_prompt = options["system prompt"]
    mode = behaviour["mode"]
    time.sleep(behaviour.get("seconds", 0))
    if behaviour.get("leaves_child"):
        note("children", spawn(300))
    if mode in ("pass", "fail"):
        feedback = behaviour.get("feedback", "All is well" if mode == "pass" else "Say more")
        result(structured_output=verdict(system_prompt, passed=mode == "pass", feedback=feedback))
    elif mode == "answer":
        result(structured_output=behaviour["answer"])
    elif mode == "text":
        result(result=behaviour.get("text", "It looks fine to me."))
    elif mode == "messages":
        messages = [{"type": "system"}, {"type": "assistant"}]
        output = verdict(system_prompt, passed=True, feedback="All is well")
        print(json.dumps([*messages, {"type": "result", "is_error": False, "structured_output": output}]))
    elif mode == "error":
        result(**behaviour["reply"])
        sys.exit(1)
    elif mode == "raw":
        sys.stdout.buffer.write(base64.b64decode(behaviour["bytes"]))
    elif mode == "exit":
        sys.stderr.write(behaviour.get("stderr", "something broke\n"))
        sys.exit(behaviour.get("code", 1))
    elif mode == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif mode == "hang":
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        time.sleep(300)
    elif mode == "flood":
        chunk = b"x" * (1 << 20)
        for _ in range(behaviour.get("megabytes", 400)):
            os.write(1, chunk)
    else:
        sys.exit(f"no such mode: {mode}")


def note(name, value):
    """Add a line to a file beside this one, in a single write, because several of us run at the same time."""
    line = (json.dumps(value) + "\n").encode()
    descriptor = os.open(os.path.join(HERE, f"{name}.jsonl"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, line)
    os.close(descriptor)


def main():
    options = parse(sys.argv[1:])
    if options.get("--version"):
        print("9.9.9 (Claude Code)")
        return
    with open(os.path.join(HERE, "behaviour.json"), encoding="utf-8") as file:
        behaviours = json.load(file)
    if options.get("--help"):
        unknown = behaviours[0].get("unknown_flags", [])
        print("\n".join(f"  {flag}" for flag in [*VALUES, *sorted(SWITCHES)] if flag not in unknown))
        return
    if not (options.get("-p") or options.get("--print")):
        sys.exit("error: not interactive")
    note("pids", os.getpid())
    with open(options["--system-prompt-file"], encoding="utf-8") as file:
        options["system prompt"] = file.read()
        options["mode of the file"] = os.fstat(file.fileno()).st_mode & 0o777
    stdin = sys.stdin.buffer.read().decode("utf-8", "replace")
    note(
        "calls", {"argv": sys.argv[1:], "options": options, "stdin": stdin, "cwd": os.getcwd(), "env": dict(os.environ)}
    )
    started = time.monotonic()
    behave(next(behaviour for behaviour in behaviours if behaviour.get("about", "") in stdin), options)
    note("spans", {"began": started, "ended": time.monotonic()})


if __name__ == "__main__":
    main()
