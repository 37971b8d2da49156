"""What can be seen in the words of criteria and instructions, without a model."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cached_property
from typing import NamedTuple


def _words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


TOOLS = ("get_workflows", "start_workflow", "finished_step", "abort_workflow")

_NUMBERS = {
    word: number
    for number, word in enumerate(
        ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"), 1
    )
}
_FILLERS = _words_of(
    """
    a an the is are was were be been being do does did it its this that these those there here of in on at to for
    with and or any each every all has have had can could should would must will shall may by as from than so such
    very really quite overall sufficiently enough
    """
)
_NEGATIONS = _words_of(
    """
    not no never without none nothing nowhere
    """
)
# Words of praise say what a reviewer should feel, not what there is to see.
_PRAISE = _words_of(
    """
    good great nice well fine excellent perfect ok okay high low quality proper properly appropriate appropriately
    suitable adequate adequately decent acceptable satisfactory solid reasonable reasonably professional polished
    look looks feel feels seem seems nicely great best better todo tbd fixme done made written work works
    """
)
_SUBJECTS = _words_of(
    """
    work output outputs result results file files document text report step job task content
    """
)
_OPPOSITES = frozenset(
    frozenset(pair.split("/"))
    for pair in _words_of(
        """
        short/long brief/detailed formal/informal before/after include/exclude includes/excludes british/american
        past/present ascending/descending public/private first/last singular/plural light/dark upper/lower
        sync/async synchronous/asynchronous simple/complex
        """
    )
)
# Words that carry no meaning, and what is left out where questions are compared.
_EMPTY, _COMPARED_WITHOUT = _FILLERS | _SUBJECTS, _FILLERS | _NEGATIONS

_NUMBER = rf"(\d[\d,]*|{'|'.join(_NUMBERS)})"
_UPPER = r"at most|no more than|not more than|up to|a maximum of|maximum|not exceeding|not exceed|within"
_BELOW = r"fewer than|less than|under|below"
_LOWER = r"at least|no fewer than|no less than|not less than|not fewer than|a minimum of|minimum"
_ABOVE = r"more than|over|above"
_BOUND = re.compile(rf"\b(?:({_UPPER})|({_BELOW})|({_LOWER})|({_ABOVE})|(exactly))\s+{_NUMBER}\s*(%|[a-z]+)", re.ASCII)


class Bound(NamedTuple):
    """How many of something a criterion allows, and what else it speaks of."""

    unit: str
    lowest: float
    highest: float
    about: frozenset[str]


class Question:
    """A question of a criterion, taken apart once however often it is compared."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def words(self) -> list[str]:
        """The words in lower case; `n't` counts as `not`."""
        return re.findall(r"[\w%]+", re.sub(r"n['\u2019]t\b", " not", self.text.lower()))

    @cached_property
    def is_unobservable(self) -> bool:
        """True if nothing but praise is left without the words that carry no meaning."""
        rest = [word for word in self.words if word not in _EMPTY]
        return all(word in _PRAISE for word in rest)

    @cached_property
    def content(self) -> frozenset[str]:
        """The words that carry a meaning, in the singular."""
        return frozenset(_singular(word) for word in self.words if word not in _COMPARED_WITHOUT)

    @cached_property
    def is_negated(self) -> bool:
        return sum(word in _NEGATIONS for word in self.words) % 2 == 1

    @cached_property
    def bounds(self) -> list[Bound]:
        """How many of what the question allows."""
        return [*_bounds(self.text.lower())]

    def contradiction(self, other: Question) -> str | None:
        """Return why this and another cannot both be answered with yes; None if nothing speaks against it."""
        if self.content and self.content == other.content and self.is_negated != other.is_negated:
            return "one asks for the opposite of the other"
        if self.content ^ other.content in _OPPOSITES and self.content & other.content:
            excluded = " and ".join(repr(word) for word in sorted(self.content ^ other.content))
            return f"{excluded} exclude each other"
        for one in self.bounds:
            for two in other.bounds:
                if one.unit == two.unit and max(one.lowest, two.lowest) > min(one.highest, two.highest):
                    is_of_same = not one.about or not two.about or one.about & two.about
                    if is_of_same:
                        return f"no number of {one.unit} fits both"
        return None


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _bounds(lowered: str) -> Iterator[Bound]:
    for match in _BOUND.finditer(lowered):
        upper, below, lower, above, exactly, number, unit = match.groups()
        count = float(_NUMBERS[number] if number in _NUMBERS else number.replace(",", ""))
        rest = Question(lowered[: match.start()] + lowered[match.end() :])
        lowest = count if lower or exactly else count + 1 if above else 0.0
        highest = count if upper or exactly else count - 1 if below else float("inf")
        yield Bound(_singular(unit), lowest, highest, rest.content - _SUBJECTS)


_WAVED = r"(?:the |this |that |these |any |all |every |its |our |your |their )?(?:quality |external |self[- ])?"
_REVIEW = r"(?:reviews?|reviewers?|(?:quality )?gates?|(?:deepwork )?server|deepwork)\b"
_TOOL = r"`?(?:finished_step|start_workflow|the server|deepwork)`?"
_AROUND = [
    re.compile(pattern)
    for pattern in (
        rf"\b(?:skip|bypass|circumvent|evade|disregard|get around|work around|go around|go past)\b {_WAVED}{_REVIEW}",
        rf"\bignore {_WAVED}{_REVIEW}",
        r"\bquality_review_override_reason\b",
        rf"\bwithout (?:calling|reporting to|using|waiting for|telling) (?:{_TOOL}|{_WAVED}{_REVIEW})",
        rf"\bno need to (?:call|use|report to|wait for) (?:{_TOOL}|{_WAVED}{_REVIEW})",
        r"\b(?:edit|change|modify|write to|write into|delete|remove|overwrite|patch)\b.{0,30}"
        r"(?:\.deepwork/tmp|session_\w+\.json|the session file|the review file)",
        r"\b(?:pretend|claim|say|report)\b.{0,30}\b(?:was|were|has|have|is|are)\b.{0,20}\b(?:passed|reviewed|approved)\b"
        r".{0,20}\b(?:even if|anyway|regardless|although|whether or not)\b",
        r"\bpretend\b.{0,40}\b(?:review|passed|approved|done|finished)\b",
        r"\b(?:tell|ask|instruct) the reviewers? to (?:pass|approve|accept|say yes)",
        # Tests that always pass, and an argument that an agent always passes, are something else.
        r"(?:^|[,:;(] ?|\b(?:and|or|then) |\b(?:you|reviewers?)(?: should| must| may| can)? )(?:always|just|simply) "
        r"(?:pass|approve|accept|answer (?:with )?yes|say yes)"
        rf"(?: (?:it|them|this|(?:every|any)thing|{_WAVED}(?:work|steps?|{_REVIEW})))?"
        r"(?=$|[,;:)]| (?:if|when|whatever|whether|without|regardless|anyway|even|so)\b)",
    )
]
_NOT_CALLED = re.compile(
    rf"\b(?:do not|don't|never) (?:call|use|report to|wait for) (?:{_TOOL}|{_WAVED}{_REVIEW})"
    r"(?!.{0,40}\b(?:until|before|unless|without|yet|twice|again|if|while|when|as long|more than)\b)"
)
_REFUSED_BEFORE = re.compile(
    r"\b(?:not|never|don't|cannot|can't|nobody|no one|without|instead of|must not|forbidden to|rather than)\b.{0,25}$"
)
_LEFT_TO_PEOPLE = re.compile(r"\bonly\b|\bperson\b|\buser\b|\bhuman\b|\bunless\b")
_CALL = re.compile(r"`([a-z]+(?:_[a-z]+)+)`|\b([a-z]+(?:_[a-z]+)+)\(")
_NAMED_OUTPUT = re.compile(r"\boutputs?\s+(?:is |are |named |called )?[`\"“]([\w./-]+)[`\"”](?! of\b)")
# A word first: `.md` and `*.md` name no single file.
_QUOTED = re.compile(r"`(\w[^`\s]{2,79})`")
_REPORTED = re.compile(r"\boutputs\s*[=:]\s*\{([^}\n]*)\}")
_KEY = re.compile(r"[\"'`]([^\"'`]+)[\"'`]\s*:")


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a text with the line on which each begins; a line in a list is one of its own."""
    for match in re.finditer(r"(?:[^.!?;\n]|[.!?;](?!\s|$)|\n(?![ \t]*(?:\n|[-*#\d>])))+", text):
        start = match.start() + len(match[0]) - len(match[0].lstrip())
        yield text.count("\n", 0, start) + 1, " ".join(match[0].split())


def ways_around(text: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences that tell to go past the server or the review, with their lines."""
    for line, sentence in sentences(text):
        lowered = sentence.lower().replace("\u2019", "'")
        if _NOT_CALLED.search(lowered):
            yield line, sentence
            continue
        for pattern in _AROUND:
            match = pattern.search(lowered)
            if match and not _REFUSED_BEFORE.search(lowered[: match.start()]) and not _LEFT_TO_PEOPLE.search(lowered):
                yield line, sentence
                break


def called_names(text: str) -> Iterator[tuple[int, str]]:
    """Yield the names in a text that look like those of tools, with their lines."""
    for match in _CALL.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match[1] or match[2]


def named_outputs(text: str) -> Iterator[tuple[int, str]]:
    """Yield the names that a text itself calls outputs, with their lines."""
    for match in _NAMED_OUTPUT.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match[1]
    for match in _REPORTED.finditer(text):
        for key in _KEY.finditer(match[1]):
            yield text.count("\n", 0, match.start()) + 1, key[1]


def quoted_names(text: str, without: Collection[str]) -> Iterator[tuple[int, str]]:
    """Yield other names that a text has between backquotes, with their lines."""
    for match in _QUOTED.finditer(text):
        if match[1] not in without:
            yield text.count("\n", 0, match.start()) + 1, match[1]
