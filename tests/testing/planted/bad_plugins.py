"""Plugins that each do one thing wrong, named with the one test that has to notice.

Each is written as an installed distribution into a folder on the path.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from deepwork.testing import PluginContract

GOOD = '''
from deepwork import api, hookimpl


@hookimpl
def deepwork_tool_sets():
    def greet(name: str) -> str:
        """Greet somebody."""
        return f"hello {name}"

    tool = api.ToolSpec("greet", greet, title="Greet", output="text")
    yield api.ToolSet(name="planted", tools=[tool], prefix="planted_")


@hookimpl
def deepwork_checks():
    yield api.Check("planted", lambda: [api.Finding(api.Level.OK, "all is well")])


@hookimpl
def deepwork_commands():
    import click

    yield click.Command("planted", help="Does nothing.")
'''

NEWER = "\n\n@hookimpl\ndef {hook}({arguments}):\n    {body}\n"


def hook(name, body, arguments=""):
    return GOOD + NEWER.format(hook=f"deepwork_{name}", arguments=arguments, body=body)


BAD = {
    "nobody": ("test_it_is_installed_under_its_name", None),
    "unloadable": ("test_it_can_be_loaded", "import a_module_that_nobody_has\n" + GOOD),
    "silent": ("test_it_offers_something", "answer = 42\n"),
    "noisy": ("test_importing_it_prints_nothing", "print('hello')\n" + GOOD),
    "threaded": (
        "test_importing_it_starts_no_thread",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(1,), daemon=True).start()\n" + GOOD,
    ),
    "heavy": ("test_importing_it_imports_no_other_library", "import rich.console\nimport starlette\n" + GOOD),
    "doubled": ("test_it_can_be_blocked", GOOD),
    "demanding": (
        "test_it_declares_what_it_has_without_settings",
        hook(
            "state_stores",
            "yield api.StateStoreSpec(name=context._project_settings['name'], open=None)",
            "context",
        ),
    ),
    "chatty": ("test_declaring_prints_nothing", hook("job_sources", "print('here I am')")),
    "moody": (
        "test_it_declares_the_same_every_time",
        "import itertools\nnumbers = itertools.count()\n"
        + hook("state_stores", "yield api.StateStoreSpec(name=f'store_{next(numbers)}', open=None)"),
    ),
    "empty_handed": (
        "test_what_it_offers_can_be_made",
        hook("state_stores", "yield api.StateStoreSpec(name='nothing', open=lambda workspace: None)"),
    ),
    "empty_headed": (
        "test_what_it_offers_can_be_made",
        hook("review_runners", "yield api.ReviewRunnerSpec(name='nothing', create=object, max_inline_files=0)"),
    ),
    "undescribed": ("test_its_tools_are_named_and_described", GOOD.replace('"""Greet somebody."""', "pass")),
    "misnamed": ("test_its_tools_are_named_and_described", GOOD.replace('ToolSpec("greet"', 'ToolSpec("greet them"')),
    "unexplained": ("test_its_commands_explain_themselves", GOOD.replace(', help="Does nothing."', "")),
    "shadowing": (
        "test_its_commands_have_names_of_their_own",
        GOOD.replace('click.Command("planted"', 'click.Command("doctor"'),
    ),
    "wordy": (
        "test_its_checks_find_something_to_say",
        GOOD.replace('api.Finding(api.Level.OK, "all is well")', '"all is well"'),
    ),
    "crashing": (
        "test_its_checks_find_something_to_say",
        GOOD.replace('lambda: [api.Finding(api.Level.OK, "all is well")]', "lambda: 1 / 0"),
    ),
    "rival": (
        "test_a_server_with_it_starts_and_serves_its_tools",
        GOOD.replace('ToolSpec("greet"', 'ToolSpec("start_workflow"').replace('prefix="planted_"', 'prefix=""'),
    ),
}


def install(folder, name, text, **more):
    """Write a distribution, whose entry points are its name and whatever else is given."""
    (folder / f"planted_{name}.py").write_text(text)
    about = folder / f"planted_{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: planted-{name}\nVersion: 1.0\n")
    points = {name: f"planted_{name}", **more}
    lines = [f"{point} = {module}\n" for point, module in points.items()]
    (about / "entry_points.txt").write_text("".join(["[deepwork]\n", *lines]))


FOLDER = Path(tempfile.mkdtemp())
install(FOLDER, "good", GOOD)
for _name, (_breaks, _text) in BAD.items():
    if _text:
        # The second entry point of `doubled` imports what the first one names.
        more = {"doubled_too": "planted_doubled_too"} if _name == "doubled" else {}
        install(FOLDER, _name, _text, **more)
(FOLDER / "planted_doubled_too.py").write_text("from planted_doubled import *\n")
sys.path.append(str(FOLDER))

CONTRACTS = (PluginContract,)
for _name, (_breaks, _) in {"good": (None, GOOD), **BAD}.items():
    globals()[f"Test{_name.title()}"] = type(
        f"Test{_name.title()}", CONTRACTS, {"plugin": _name, "breaks": _breaks, "__module__": __name__}
    )
