"""Write docs/reference/job-rules.md, the page about the rules of `deepwork jobs check`, from the rules themselves."""

from __future__ import annotations

import sys
from pathlib import Path

from deepwork.builtin.authoring.rules import Rule, rules

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "job-rules.md"

HEAD = """\
# Rules for jobs

What [`deepwork jobs check`](cli.md#deepwork-jobs-check) finds, by the names of its rules. An *error* is in a job that
cannot be started, or not be finished; `jobs check` exits with 1. A *warning* is probably a mistake. *Info* is worth
knowing, and is printed with `--info`; `--json`, `--sarif` and editors have all of them.

A comment on the line, or on the line above, says that a finding is intended; errors cannot be ignored:

<!-- sketch -->
```yaml
name: report  # deepwork: ignore[folder-name]
```

In an instructions file it is `<!-- deepwork: ignore[bypass] -->`.

The examples leave out what does not matter: a job needs every key of [job.yml](job-yml.md), a step delivers one file
named `<id>.md`, and the one workflow has the steps in their order. `make reference` writes this page, and tests check
the examples.
"""


def page() -> str:
    """Return the text of the page."""
    return "\n".join([HEAD, *(_section(name, rule) for name, rule in rules().items())])


def _section(name: str, rule: Rule) -> str:
    parts = [f"## {name}\n\n*{rule.level}.* {rule.says.strip()} {rule.cure}\n"]
    for title, example in (("Bad", rule.bad), ("Good", rule.good)):
        if example is not None:
            parts.append(f"{title}:\n\n<!-- sketch -->\n```yaml\n{example}```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(PAGE.write_text(page(), encoding="utf-8") == 0)
