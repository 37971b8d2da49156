"""Kinds of gates, each with the work that it judges. `$N` is another number in every instance, `$W` another word."""

# ruff: noqa: E501 - a gate stands in one line, as in a configuration

from __future__ import annotations

from dataclasses import dataclass, field

MODULE = """\
def price(count, member=False):
    total = count * $N
    if member and count > 10:
        total = total - 5
    return total
"""
TEST = "from work import price\n\n\ndef test_price():\n    assert price(2) == 2 * $N\n    assert price(20, True) == 20 * $N - 5\n"
REPORT = "# Report on $W\n\nThere are $N people.\n\nSee [the guide](guide.md).\n"
DATA = '{"name": "$W", "count": $N, "tags": ["a", "b"]}\n'
SCRIPT = "#!/bin/sh\nset -e\ncount=$N\nif [ $$count -gt 0 ]; then\n    echo $$count $W\nfi\n"
JS = "exports.price = (count) => count * $N;\n"
PAGE = "<!DOCTYPE html>\n<html><head><title>$W</title></head><body><p>$N</p></body></html>\n"
INI = "[$W]\ncount = $N\nenabled = true\n"


@dataclass(frozen=True)
class Kind:
    """A kind of gate.

    Attributes:
        run: A shell script that judges the work.
        work: The name of the only output, and what is in it.
        beside: Other files of the project.
        folder: Where the gate runs.
        venv: Whether the project has a virtual environment `.venv`, in which its `src` is installed as editable.
    """

    name: str
    run: str
    work: tuple[str, str] = ("report.md", REPORT)
    beside: dict[str, str] = field(default_factory=dict)
    folder: str = "copy"
    venv: bool = False


PY = ("work.py", MODULE)
TESTED = {"test_work.py": TEST}
PROJECT = {"work": PY, "beside": TESTED, "folder": "project"}
JSON = ("data.json", DATA)
IN_VENV = {
    "work": ("src/work.py", MODULE),
    "beside": {"tests/test_work.py": TEST},
    "folder": "project",
    "venv": True,
}

HONEST = (
    Kind("pytest", "python -m pytest -q test_work.py", **PROJECT),
    Kind("pytest without its cache", "python -m pytest -q -p no:cacheprovider test_work.py", **PROJECT),
    Kind("pytest that is told the folder", "python -m pytest -q .", **PROJECT),
    Kind("unittest", "python -m unittest -q test_unit", PY, {"test_unit.py": "import unittest\nfrom work import price\n\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(price(20, True), 20 * $N - 5)\n        self.assertEqual(price(3), 3 * $N)\n"}, "project"),
    Kind("a script of assertions", "python -c 'import work; assert work.price(2) == 2 * $N; assert work.price(20, True) == 20 * $N - 5'", **PROJECT),
    Kind("doctest", "python -m doctest guide.txt", PY, {"guide.txt": ">>> from work import price\n>>> price(2) == 2 * $N\nTrue\n>>> price(20, True) == 20 * $N - 5\nTrue\n"}, "project"),
    Kind("an editable path", "cd / && PYTHONPATH=$$DEEPWORK_PROJECT_ROOT python -c 'import work; assert work.price(20, True) == 20 * $N - 5'", **PROJECT),
    Kind("tests that write into the tree", "python -m pytest -q --junitxml=out.xml test_work.py", **PROJECT),
    Kind("a build before the tests", "rm -rf build && mkdir build && cp work.py build/ && cd build && python -c 'import work; assert work.price(20, True) == 20 * $N - 5'", **PROJECT),
    Kind("compiled first", "python -m compileall -q work.py && python -c 'import work; assert work.price(20, True) == 20 * $N - 5'", **PROJECT),
    Kind("node's runner", "node --test", ("price.js", JS), {"price.test.js": "const {test} = require('node:test');\nconst assert = require('node:assert');\ntest('price', () => assert.equal(require('./price.js').price(2), 2 * $N));\n"}, "project"),
    Kind("a node script", "node -e 'require(\"assert\").equal(require(\"./price.js\").price(2), 2 * $N)'", ("price.js", JS)),
    Kind("the output of a shell script", "test \"$$(sh work.sh)\" = \"$N $W\"", ("work.sh", SCRIPT)),
    Kind("a fixed phrase", "grep -q '$N people' report.md && grep -q '$W' report.md"),
    Kind("links that lead somewhere", "for file in $$(sed -n 's/.*](\\([^)]*\\)).*/\\1/p' report.md); do test -e \"$$DEEPWORK_PROJECT_ROOT/$$file\" || exit 1; done; grep -q guide.md report.md", beside={"guide.md": "Guide\n"}),
    Kind("sections in their order", "python -c 'import sys; text = open(\"report.md\").read(); sys.exit(not text.startswith(\"# Report on $W\") or \"$N\" not in text)'"),
    Kind("a schema", "python -c 'import json; data = json.load(open(\"data.json\")); assert set(data) == {\"name\", \"count\", \"tags\"} and data[\"count\"] == $N'", JSON),
    Kind("a schema with types", "python -c 'import json; data = json.load(open(\"data.json\")); assert isinstance(data[\"count\"], int) and data[\"name\"] == \"$W\" and data[\"tags\"] == [\"a\", \"b\"]'", JSON),
    Kind("a checksum", "python -c 'import hashlib, sys; sys.exit(hashlib.sha256(open(\"data.json\", \"rb\").read()).hexdigest() != open(sys.argv[1]).read())' \"$$DEEPWORK_PROJECT_ROOT/sum\"", JSON, {"sum": "SHA256"}),
    Kind("a parser of pages", "python -c 'import xml.dom.minidom as dom; page = dom.parse(\"page.html\"); assert page.getElementsByTagName(\"title\")[0].firstChild.data == \"$W\"; assert page.getElementsByTagName(\"p\")[0].firstChild.data == \"$N\"'", ("page.html", PAGE)),
    Kind("a configuration that is read", "python -c 'import configparser as c; p = c.ConfigParser(); p.read(\"app.ini\"); assert p.getint(\"$W\", \"count\") == $N and p.getboolean(\"$W\", \"enabled\")'", ("app.ini", INI)),
    Kind("a comparison with a golden file", "diff report.md \"$$DEEPWORK_PROJECT_ROOT/golden.md\"", beside={"golden.md": REPORT}),
    Kind("a count of words", "test $$(wc -w < report.md) -eq 11 && grep -q $N report.md && grep -q $W report.md"),
    Kind("on a fixed port", "python -c 'import http.server, threading, urllib.request as u; s = http.server.ThreadingHTTPServer((\"127.0.0.1\", 48733), http.server.SimpleHTTPRequestHandler); threading.Thread(target=s.serve_forever, daemon=True).start(); text = u.urlopen(\"http://127.0.0.1:48733/report.md\").read().decode(); assert \"$N people\" in text and \"$W\" in text'"),
    Kind("a linter of its own", "python -c 'import ast; tree = ast.parse(open(\"work.py\").read()); assert [n.name for n in tree.body] == [\"price\"]; assert \"return total\" in open(\"work.py\").read() and \"* $N\" in open(\"work.py\").read() and \"- 5\" in open(\"work.py\").read() and \"> 10\" in open(\"work.py\").read()'", PY),
    Kind("flaky, once in fifty", "python -c 'import random, work; assert random.random() > 0.02; assert work.price(2) == 2 * $N; assert work.price(20, True) == 20 * $N - 5'", **PROJECT),
    Kind("pytest in a venv, installed as editable", ".venv/bin/python -m pytest -q tests", **IN_VENV),
    Kind("the same from another folder", "root=$$PWD; cd / && $$root/.venv/bin/python -m pytest -q -p no:cacheprovider $$root/tests", **IN_VENV),
    Kind("unittest in a venv", ".venv/bin/python -c 'import unittest, work; t = unittest.TestCase(); t.assertEqual(work.price(20, True), 20 * $N - 5); t.assertEqual(work.price(3), 3 * $N)'", **IN_VENV),
    Kind("a venv that writes into the tree", ".venv/bin/python -m pytest -q --junitxml=out.xml --basetemp=build/tmp tests", **IN_VENV),
    Kind("a venv on a fixed port", ".venv/bin/python -c 'import http.server as h, threading, urllib.request as u, work\nclass H(h.BaseHTTPRequestHandler):\n    def do_GET(self): self.send_response(200); self.end_headers(); self.wfile.write(str(work.price(20, True)).encode())\n    def log_message(self, *_): pass\ns = h.ThreadingHTTPServer((\"127.0.0.1\", 48734), H); threading.Thread(target=s.serve_forever, daemon=True).start()\nassert u.urlopen(\"http://127.0.0.1:48734\").read() == str(20 * $N - 5).encode()'", **IN_VENV),
    Kind("a venv, flaky once in fifty", ".venv/bin/python -c 'import random; assert random.random() > 0.02' && .venv/bin/python -m pytest -q tests", **IN_VENV),
    Kind("a build of a package in a venv", "rm -rf build && mkdir build && (cd src && ../.venv/bin/python -m zipfile -c ../build/package.zip work.py) && cd build && PYTHONPATH=package.zip ../.venv/bin/python -c 'import work; assert \"package.zip\" in work.__file__; assert work.price(20, True) == 20 * $N - 5'", **IN_VENV),
    Kind("make, which looks at times", "make -s check", ("report.md", REPORT), {"Makefile": "check: build/report\n\tgrep -q '$N people' build/report && grep -q '$W' build/report\n\nbuild/report: report.md\n\tmkdir -p build && cp report.md build/report\n"}, "project"),
    Kind("node's runner that writes a report", "node --test --test-reporter=tap --test-reporter-destination=out.xml", ("price.js", JS), {"price.test.js": "const {test} = require('node:test');\nconst assert = require('node:assert');\ntest('price', () => assert.equal(require('./price.js').price(2), 2 * $N));\n"}, "project"),
    Kind("a linked package of node", "mkdir -p build/node_modules && ln -sfn ../.. build/node_modules/shop && cd build && node -e 'require(\"assert\").equal(require(\"shop/price.js\").price(2), 2 * $N)'", ("price.js", JS), folder="project"),
    Kind("ruff", "ruff check --no-cache --isolated --select E,F,W work.py", PY),
    Kind("the parser of JSON", "python -m json.tool data.json > /dev/null", JSON),
)  # fmt: skip

VACUOUS = (
    Kind("or true", "grep -q nothing report.md || true"),
    Kind("prints PASS", "echo PASS"),
    Kind("nothing", ":"),
    Kind("the wrong path", "test -d docs || exit 0; grep -q $N docs/report.md"),
    Kind("no test collected, and that is fine", "python -m pytest -q -k no_such_name test_work.py; test $$? -eq 5", **PROJECT),
    Kind("asserts nothing", "python -m pytest -q test_empty.py", PY, {"test_empty.py": "import work\n\n\ndef test_price():\n    work.price(2)\n"}, "project"),
    Kind("only imports", "python -c 'import work'", **PROJECT),
    Kind("tests a copy", "python -m pytest -q tests", PY, {"tests/copied.py": MODULE, "tests/test_it.py": "from copied import price\n\n\ndef test_price():\n    assert price(2) == 2 * $N\n"}, "project"),
    Kind("mocks the work", "python -c 'from unittest.mock import Mock; price = Mock(return_value=$N); assert price() == $N'", **PROJECT),
    Kind("catches every error", "python -c 'try:\n    import work; assert work.price(1) == 0\nexcept Exception: pass'", **PROJECT),
    Kind("only there", "test -e report.md"),
    Kind("only not empty", "test -s report.md"),
    Kind("only the name", "ls | grep -q report.md"),
    Kind("a pipe that hides the code", "grep -q nothing report.md | cat"),
    Kind("a background job", "(sleep 0.1; exit 1) &"),
    Kind("the code of the last command", "grep -q nothing report.md; echo done"),
    Kind("green from a cache", "test -e $$DEEPWORK_PROJECT_ROOT/.passed || grep -q $N report.md", beside={".passed": ""}),
    Kind("a condition that never holds", "if [ -n \"$$NO_SUCH_VARIABLE\" ]; then grep -q nothing report.md; fi"),
    Kind("a comparison with itself", "diff report.md report.md"),
    Kind("a golden file made of the work", "cp report.md golden.md; diff report.md golden.md"),
    Kind("a loop over nothing", "for file in *.none; do test -e \"$$file\" && exit 1; done; exit 0"),
    Kind("warnings only", "python -c 'import sys; print(\"warning: thin\", file=sys.stderr)'"),
    Kind("another file", "test -e other.txt", beside={"other.txt": ""}, folder="project"),
    Kind("an inverted test", "! grep -q no_such_words_at_all report.md"),
    Kind("a crash that counts as red", "test -e report.md || kill -SEGV $$$$"),
    Kind("skips all tests", "python -m pytest -q test_skip.py || test $$? -eq 5", PY, {"test_skip.py": "import pytest\n\npytest.skip('not today', allow_module_level=True)\n\n\ndef test_price():\n    import work\n    assert work.price(2) == 0\n"}, "project"),
    Kind("set -e in a condition", "check() { grep -q nothing report.md; true; }; if check; then exit 0; fi"),
)  # fmt: skip
