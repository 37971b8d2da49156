"""What waits for a person, and how it is answered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from deepwork.errors import PersonNeeded


@dataclass(frozen=True, kw_only=True)
class InboxAction:
    """One way to answer an item.

    Attributes:
        name: By which it is chosen, as in `deepwork inbox answer ID NAME`.
        label: What a button says.
        text: What the text is that it needs, such as `reason` or `reply`; None if it needs none.
        tasks: The tasks of the item that it can be about, by their ids, with the name of each. Whoever answers chooses
            one, and the inbox calls `answer_task`; empty if it is about the item itself.
        comments: Whether it takes comments on lines of the item's files, and a text or none; the inbox then calls
            `answer_comments`.
    """

    name: str
    label: str
    text: str | None = None
    tasks: Mapping[str, str] = field(default_factory=dict)
    comments: bool = False


@dataclass(frozen=True, kw_only=True)
class InboxItem:
    """One thing that waits for a person.

    Attributes:
        id: Names it among the items of its source, and stays the same as long as it waits. The inbox puts the name of
            the plugin before it: `tracking:iss_1`.
        kind: What sort of thing it is, such as `failed-gate`.
        what: What is wanted, in a line; more than 200 characters are cut.
        since: From when on it waits: ISO 8601 in UTC; empty if unknown.
        state: A text that differs as soon as the item has changed in a way that people should be told of again. `id`
            and `state` together are what a receiver of notifications drops repeats by.
        who: The agent or person that waits.
        detail: All that helps to decide, in at most 4,000 characters.
        files: Paths of the files to decide about; 20 are listed.
        criteria: The questions of their reviews; 20 are listed.
        reference: What it is about, for links: `{"kind": "session", "id": …, "step_id": …}`. The kind says which page
            shows it, and `id` what of that page.
        principal: Who alone may see it and answer; None: everybody who may see the project.
        held_by: Who has it in hand; no notification is sent of it then.
        actions: What can be done, the most usual first.
        urgency: The inbox lists what is more urgent first, and of the same urgency what has waited longest. A message
            has -1 (low), 0 (normal), 1 (high) or 2 (urgent); all else is 0.
        source: The plugin that it comes from. The inbox fills it in.
    """

    id: str
    kind: str
    what: str
    since: str
    state: str
    who: str | None = None
    detail: str = ""
    files: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    reference: Mapping[str, str] = field(default_factory=dict)
    principal: str | None = None
    held_by: str | None = None
    actions: tuple[InboxAction, ...] = ()
    urgency: int = 0
    source: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return what JSON has of it everywhere; without files or criteria there are no such keys."""
        data = asdict(self)
        for action in data["actions"]:
            if not action["comments"]:
                del action["comments"]
        return {key: value for key, value in data.items() if value or key not in ("files", "criteria")}


@dataclass(frozen=True, kw_only=True)
class Answerer:
    """Who answers, as far as can be known; it is kept with the answer.

    Attributes:
        principal: Whose items they may see and answer, besides items without an owner; None at a terminal of this
            machine, whose user can read everything anyhow.
        user: Their name on this machine.
        terminal: The terminal at which they are; it belongs to the user.
        process: The program that they use, and those above it.
        client: The pages to which they have logged in as a person, by the name of their plugin.
        asked_by: The client on stdio, with its version, that has shown them a form.
    """

    principal: str | None = None
    user: str | None = None
    terminal: str | None = None
    process: tuple[str, ...] = ()
    client: str | None = None
    asked_by: str | None = None

    @property
    def is_person(self) -> bool:
        """Whether a person is there: what waits for one must not be answered by a program."""
        return any(evidence is not None for evidence in (self.terminal, self.client, self.asked_by))

    def check_person(self, act: str) -> None:
        """Refuse an act that only a person may do. Every way to what waits for a person asks here.

        Args:
            act: What is to be done, such as `answer what waits in the inbox`.

        Raises:
            PersonNeeded: No person is seen to be there.
        """
        if not self.is_person:
            raise PersonNeeded(
                f"Only a person may {act}, and no person is seen to do this; nothing was changed",
                hint="It waits for the user, who answers with `deepwork inbox` in a terminal, or on the pages that "
                "`deepwork dashboard --open` opens.",
            )

    def may_see(self, item: InboxItem) -> bool:
        """True if an item is theirs, or everybody's."""
        return self.principal is None or item.principal in (None, self.principal)

    def recorded(self) -> dict[str, Any]:
        """Return the part that is stored with an answer."""
        known = {"terminal": self.terminal, "process": [*self.process] or None, "client": self.client}
        return known | {name: value for name in ("user", "principal", "asked_by") if (value := getattr(self, name))}


@dataclass(frozen=True)
class Answer:
    """What somebody answers to an item.

    Attributes:
        action: The name of one of its actions.
        text: The text, if the action needs one.
        task: The id of the task, if the action has `tasks`; it may be left out if there is only one.
        comments: What they say of lines of its files, if the action takes comments:
            `{file, line, end_line?, text, must?, suggestion?}`, not checked yet.
        state: The state in which they have seen the item; one that has changed since is not answered.
    """

    action: str
    text: str | None = None
    task: str | None = None
    comments: Sequence[Mapping[str, Any]] = ()
    state: str | None = None


class InboxSource(ABC):
    """What a plugin has for the inbox of one project.

    Attributes:
        name: What stands before the ids of its items. It counts for features of the core alone, which may offer several
            sources; a plugin offers one, and its name is the plugin's.
        contested: The actions that several people may choose at once: who comes second, when the item is gone, is
            told that it has changed.
    """

    name: str = ""
    contested: Collection[str] = ()

    @abstractmethod
    async def items(self) -> Sequence[InboxItem] | InboxContents:
        """Return everything that waits now. It is called every second while an inbox is open, so it must be cheap.

        Of more than 1,000 visible items the inbox shows as many, and counts the others. A source that
        reads fewer than there are returns `InboxContents`, and counts in `more` the others that everybody may see.

        Raises:
            DeepWorkError: It cannot be said; the inbox shows the error beside the items of the other sources.
        """

    @abstractmethod
    async def answer(self, item_id: str, action: str, text: str | None, by: Answerer) -> str:
        """Carry out an action, by the same function as the command that exists for it.

        The inbox has just seen that a person answers, that the item waits, that it has the action, and that there is a
        text if it needs one.
        Others may have answered meanwhile.

        Returns:
            What was done, in a line.

        Raises:
            DeepWorkError: It was not done; the error says why, and nothing was changed.
        """

    async def answer_task(self, item_id: str, action: str, task_id: str, text: str | None, by: Answerer) -> str:
        """Carry out an action that has `tasks`, on one of them. All else is as for `answer`.

        Raises:
            NotImplementedError: The source offers actions with `tasks`, and does not carry them out.
        """
        raise NotImplementedError

    async def answer_comments(self, item_id: str, answer: Answer, by: Answerer) -> str:
        """Carry out an action that takes comments. All else is as for `answer`.

        Raises:
            NotImplementedError: The source offers actions with `comments`, and does not carry them out.
        """
        raise NotImplementedError

    async def notify(self, inbox: Inbox) -> None:  # noqa: B027 - sources that send nothing need not say so
        """Send notifications of what waits in the whole inbox, until it is cancelled; by default there are none."""


@dataclass(frozen=True, kw_only=True)
class InboxFailure:
    """A source that could not say what waits."""

    source: str
    error: str
    hint: str | None = None


@dataclass(frozen=True, kw_only=True)
class InboxContents:
    """What waits for a person: the most urgent first, then the oldest.

    Attributes:
        items: As many as are listed.
        failures: The sources that could not say what waits.
        more: How many wait besides. They are listed when others have been answered.
    """

    items: tuple[InboxItem, ...]
    failures: tuple[InboxFailure, ...] = ()
    more: int = 0

    @property
    def total(self) -> int:
        """How many things wait, listed or not."""
        return len(self.items) + self.more

    def as_json(self) -> dict[str, Any]:
        """Return what JSON has of it."""
        failures = [asdict(failure) for failure in self.failures]
        return {"items": [item.as_json() for item in self.items], "failures": failures, "more": self.more}


class Inbox(ABC):
    """What waits for people in one project, of all plugins: `PluginContext.inbox()`."""

    @abstractmethod
    async def items(self, by: Answerer) -> InboxContents:
        """Return what waits and is theirs to see. It never raises: a failing source hides none of the others."""

    @abstractmethod
    async def answer(self, item_id: str, answer: Answer, by: Answerer) -> str:
        """Answer an item by its whole id, as `items` gives it, and say in a line what was done.

        Raises:
            PersonNeeded: They are not seen to be a person.
            UnknownItem: Nothing waits under this id, or it is not theirs.
            ItemChanged: It is no longer as they have seen it.
            ArgumentError: It has no such action or task, or the task or the text is missing.
            DeepWorkError: The source has refused; nothing was changed.
        """

    @abstractmethod
    async def notify(self) -> None:
        """Send notifications of what waits, as the user has configured, until it is cancelled.

        Run it in a task of its own beside the view of the inbox. One process sends for a project at a time; the
        others wait, and go on when it ends. It returns at once if the user has configured no recipient.

        Raises:
            ConfigError: What is configured cannot be used.
        """
