"""Job files that no author intends: good ones with bytes, lines or values changed, and some made to cost much."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import yaml

# Changed at random.

HEAD = {
    "name": "big",
    "version": "1.0.0",
    "summary": "A big job",
    "common_job_info_provided_to_all_steps_at_runtime": "About everything",
}
TOKENS = [
    "*a", "&a ", "<<: *a", "!!int ", "!!bool x", "!!python/name:os.system", "%TAG !a! b", "---", "...", "{", "}", "[",
    "]", "'", '"', "|", ">", "#", ":", "-", "?", "@", "`", ",", "~", "null", "yes", "off", "0x1F", "1:30", "1e999",
    ".nan", "2001-13-45", "\t", "\r", "\x00", "\x07", "\x1b", "\x85", "\u2028", "\ufeff", "é😀", "9" * 600, "x" * 300,
]  # fmt: skip
VALUES = [None, True, 5, -1.5, "", "x", "x" * 300, "a\nb\x1b", [], {}, [[]], [None], {"a": {}}, {1: 2}, "step", "../x"]


def good_job(name: str = "good") -> str:
    """Write the job that has to stay listed beside anything else."""
    step = {"id": "a", "name": "A", "description": "Do a", "instructions_file": "a.md", "outputs": {}, "reviews": []}
    return yaml.safe_dump({**HEAD, "name": name, "steps": [step]})


def big_job() -> str:
    """Write a job with everything that the format knows, many times."""
    steps, ids = [], [f"step_{number}" for number in range(30)]
    for before, step_id in zip([None, *ids], ids, strict=False):
        steps.append(
            {
                "id": step_id,
                "name": f"Step {step_id}",
                "description": f"Do {step_id}",
                "instructions_file": f"steps/{step_id}.md",
                "dependencies": [before] if before else [],
                "inputs": [{"name": "what", "description": "What to do"}]
                + ([{"file": "out.md", "from_step": before}] if before else []),
                "outputs": {"out.md": {"type": "file", "description": "Out", "required": True}},
                "reviews": [{"run_each": "out.md", "quality_criteria": {"Good": "Is it good?"}}],
                "hooks": {"after_agent": [{"script": "check.sh"}], "before_tool": [{"prompt": "Think"}]},
                "stop_hooks": [{"prompt_file": "stop.md"}],
                "exposed": True,
                "hidden": False,
                "agent": "writer",
            }
        )
    flow = {"name": "all", "summary": "All", "steps": [ids[0], ids[1:3], *ids[3:]]}
    return yaml.safe_dump({**HEAD, "steps": steps, "workflows": [flow]}, sort_keys=False)


def mutate_bytes(text: str, chance: random.Random) -> bytes:
    """Change, insert or remove single bytes, or cut the file off."""
    content = bytearray(text.encode())
    for _ in range(chance.choice([1, 1, 2, 8, 40])):
        place, kind = chance.randrange(len(content) + 1), chance.randrange(4)
        if kind == 0:
            content[place : place + 1] = bytes([chance.randrange(256)])
        elif kind == 1:
            content[place:place] = chance.randbytes(chance.choice([1, 2, 30]))
        elif kind == 2:
            del content[place : place + chance.choice([1, 2, 100])]
        elif chance.random() < 0.2:
            del content[place:]
    return bytes(content)


def mutate_lines(text: str, chance: random.Random) -> bytes:
    """Remove, repeat, swap, indent or join lines."""
    lines = text.splitlines(keepends=True)
    for _ in range(chance.choice([1, 1, 2, 5])):
        first, second = chance.randrange(len(lines)), chance.randrange(len(lines))
        kind = chance.randrange(6)
        if kind == 0 and len(lines) > 1:
            del lines[first]
        elif kind == 1:
            lines.insert(second, lines[first])
        elif kind == 2:
            lines[first], lines[second] = lines[second], lines[first]
        elif kind == 3:
            lines[first] = " " * chance.randrange(1, 5) + lines[first]
        elif kind == 4:
            lines[first] = lines[first].lstrip(" ")
        else:
            lines[first] = lines[first].rstrip("\n")
    return "".join(lines).encode()


def mutate_tokens(text: str, chance: random.Random) -> bytes:
    """Put something that means something to YAML in the place of a word, or beside it."""
    parts = re.split(r"(\W+)", text)
    for _ in range(chance.choice([1, 1, 2, 5])):
        place = chance.randrange(len(parts))
        token = chance.choice(TOKENS)
        parts[place] = chance.choice([token, f"{token} {parts[place]}", f"{parts[place]}{token}"])
    return "".join(parts).encode()


def mutate_structure(text: str, chance: random.Random) -> bytes:
    """Replace, remove, rename or move values of the parsed document."""
    document = yaml.safe_load(text)
    for _ in range(chance.choice([1, 1, 2, 4])):
        node = document
        while isinstance(node, dict | list) and node:
            parent, key = node, chance.choice(list(node) if isinstance(node, dict) else range(len(node)))
            node = parent[key]
            if chance.random() < 0.3:
                break
        else:
            if node in ({}, []) and node is document:
                continue
        kind = chance.randrange(5)
        if kind == 0:
            parent[key] = chance.choice(VALUES)
        elif kind == 1:
            del parent[key]
        elif kind == 2 and isinstance(parent, dict):
            parent[chance.choice([f"{key}x", str(key)[1:], 7, None, True, ""])] = parent.pop(key)
        elif kind == 3:
            parent[key] = [node] if chance.random() < 0.5 else {"x": node}
        else:
            parent[key] = document if chance.random() < 0.1 else list(HEAD)
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True).encode()


MUTATORS = [mutate_bytes, mutate_lines, mutate_tokens, mutate_structure]


# Bombs.

TOP = yaml.safe_dump(HEAD, sort_keys=False).replace("big", "bomb")
MIB = 1024 * 1024


def a_step(step_id: object, more: str = "") -> str:
    """Write one step as a line of flow style."""
    return f"- {{id: {step_id}, name: n, description: d, instructions_file: f, outputs: {{}}, reviews: []{more}}}\n"


def laughs(link: str) -> str:
    """Write nine levels, each of nine times the one before."""
    levels = ["a0: &a0 {k: lol}\n"] + [f"a{n}: &a{n} {link.replace('@', f'*a{n - 1}')}\n" for n in range(1, 10)]
    return "".join(levels)


def many(form: str, count: int) -> str:
    """Write a form many times, with the number in the place of `@`."""
    return "".join(form.replace("@", str(number)) for number in range(count))


# Each has to be refused within a second and 50 MiB.
BOMBS: dict[str, Callable[[], str | bytes]] = {
    "aliases of aliases": lambda: TOP + laughs("[@, @, @, @, @, @, @, @, @]"),
    "aliases of aliases in steps": lambda: TOP + laughs("[@, @, @, @, @, @, @, @, @]") + "steps: *a9\n",
    "merge keys of merge keys": lambda: TOP + laughs("{<<: [@, @, @, @, @, @, @, @, @]}"),
    "one big list, many aliases": lambda: f"a: &a [{'x,' * 10_000}]\nb: [{'*a,' * 100_000}]\n",
    "one long text, many aliases": lambda: f"a: &a {'x' * MIB}\nb: [{'*a,' * 100_000}]\n",
    "an alias of itself": lambda: TOP + "steps: &a [*a]\n",
    "an alias of itself, far inside": lambda: TOP + f"steps: &a {'[' * 60}*a{']' * 60}\n",
    "deep through aliases": lambda: "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 5_000)),
    "brackets": lambda: "[" * 4_000_000,
    "brackets that close": lambda: "[" * 2_000_000 + "]" * 2_000_000,
    "braces": lambda: "{a: " * 1_000_000,
    "dashes": lambda: "- " * 2_000_000,
    "question marks": lambda: "? " * 2_000_000,
    "indentation": lambda: "".join(f"{' ' * depth}a:\n" for depth in range(2_800)),
    "short texts": lambda: f"[{'a,' * 2_000_000}]",
    "empty mappings": lambda: "- {}\n" * 800_000,
    "empty keys": lambda: many("k@:\n", 400_000),
    "documents": lambda: "---\n" * 1_000_000,
    "documents with values": lambda: "--- a\n" * 650_000,
    "tag directives": lambda: many("%TAG !t@! x\n", 200_000) + "---\n" + TOP,
    "anchors": lambda: many("- &a@ x\n", 300_000),
    "a number of 4 million digits": lambda: TOP.replace("1.0.0", "9" * 4_000_000),
    "a hexadecimal number": lambda: f"name: 0x{'F' * 4_000_000}\n",
    "a binary number": lambda: f"name: 0b{'1' * 4_000_000}\n",
    "a number of base 60": lambda: f"name: 1{':59' * 1_300_000}\n",
    "a number of base 60, almost": lambda: TOP + f"steps: 1{':59' * 1_300_000}x\n",
    "a long fraction": lambda: f"name: 1.{'5' * 4_000_000}\n",
    "a date with a long fraction": lambda: f"name: 2001-01-01 00:00:00.{'5' * 4_000_000}\n",
    "a huge exponent": lambda: "name: 1.0e+" + "9" * 4_000_000,
    "a key of 4 million letters": lambda: TOP + f"? {'k' * 4_000_000}\n: x\n",
    "a name of 4 million letters": lambda: TOP.replace("bomb", "a" * 4_000_000 + "A"),
    "a tag of 4 million letters": lambda: f"name: !{'t' * 4_000_000} x\n",
    "an escaped tag": lambda: f"name: !{'%41' * 1_300_000} x\n",
    "an anchor of 4 million letters": lambda: f"name: *{'a' * 4_000_000}\n",
    "text that does not end": lambda: 'name: "' + "\\x41" * 1_000_000,
    "lines that do not end": lambda: "name: '" + "\n" * 4_000_000,
    "base64": lambda: f"name: !!binary {'QUFB' * 1_000_000}\n",
    "NUL bytes": lambda: b"\0" * 4_000_000,
    "bytes that are not UTF-8": lambda: b"\xff" * 4_000_000,
    "wide characters, then a mistake": lambda: "# \U0001f600\n" + "#" * 4_000_000 + "\nname: [\n",
    "more than 4 MiB": lambda: TOP + "#" * 5 * MIB,
    "names that resemble each other": lambda: TOP
    + "steps:\n"
    + many(a_step("step_number_@"), 3_000)
    + a_step("last", f", dependencies: [{many('step_numer_@,', 3_000)}]"),
    "ids of a million letters": lambda: TOP
    + "steps:\n"
    + a_step("ab" * 500_000, f", dependencies: [{'ba' * 500_000}]"),
    "an output of a million letters": lambda: TOP
    + "steps:\n"
    + a_step("a", ", stop_hooks: {}").replace("outputs: {}", f"outputs: {{? {'o' * MIB} : {{}}}}"),
    "an expensive review": lambda: TOP
    + "steps:\n"
    + a_step("a").replace("[]", f"[{{run_each: {'a b ' * 250_000}, quality_criteria: {{a: b}}}}]"),
    "a cycle of 2,000 steps": lambda: TOP
    + "steps:\n"
    + "".join(a_step(f"s{n}", f", dependencies: [s{(n + 1) % 2_000}]") for n in range(2_000)),
}  # fmt: skip

# Within the limits for size, depth and values, so that it has to be read whole before it can be refused.
WIDE: dict[str, Callable[[], str | bytes]] = {
    "an ordered map": lambda: f"name: !!omap [{'{a: b},' * 60_000}]\n",
    "one key, many times": lambda: "k: 1\n" * 90_000,
    "90,000 unknown keys": lambda: TOP + "steps: []\n" + many("k@: 1\n", 90_000),
    "190,000 texts as steps": lambda: f"{TOP}steps: [{'a,' * 190_000}]\n",
    "60,000 empty steps": lambda: f"{TOP}steps: [{'{},' * 60_000}]\n",
    "a workflow of 190,000 entries": lambda: (
        f"{TOP}steps:\n{a_step('a')}workflows: [{{name: w, summary: s, steps: [{'a,' * 190_000}]}}]\n"
    ),
    "a step with 190,000 dependencies": lambda: TOP + "steps:\n" + a_step("a", f", dependencies: [{'b,' * 190_000}]"),
    "a cycle of 10,000 steps": lambda: (
        TOP + "steps:\n" + "".join(a_step(f"s{n}", f", dependencies: [s{(n + 1) % 10_000}]") for n in range(10_000))
    ),
}
