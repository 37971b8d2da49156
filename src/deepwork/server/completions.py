"""Values that clients offer while their user types an argument of a prompt or of a resource."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from fastmcp import FastMCP
from mcp_types import Completion, CompletionArgument, CompletionContext, PromptReference, ResourceTemplateReference

from deepwork.errors import DeepWorkError
from deepwork.ports.records import Complete, PromptSpec, ResourceSpec
from deepwork.server.middleware import CallMiddleware

log = logging.getLogger("deepwork.server")

MAX_VALUES = 100


def add_completions(
    server: FastMCP[Any],
    prompts: Iterable[PromptSpec],
    resources: Iterable[ResourceSpec],
    middleware: CallMiddleware,
) -> None:
    """Answer requests for completions, if any prompt or resource has some."""
    tables: dict[tuple[str, str], Mapping[str, Complete]] = {
        **{("ref/prompt", prompt.name): prompt.complete for prompt in prompts},
        **{("ref/resource", resource.uri): resource.complete for resource in resources},
    }
    if not any(tables.values()):
        return

    async def complete(
        reference: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion:
        name = reference.name if isinstance(reference, PromptReference) else reference.uri
        function = tables.get((reference.type, name), {}).get(argument.name)
        if function is None:
            return Completion(values=[])
        others = dict((context.arguments if context else None) or {})
        try:
            answer = function(middleware.current(), argument.value, others)
            values = await answer if inspect.isawaitable(answer) else answer
        except DeepWorkError as error:
            log.warning("no values for %r of %s: %s", argument.name, name, error.message)
            return Completion(values=[])
        except Exception:
            # Whoever types can go on without a list.
            log.warning("no values for %r of %s", argument.name, name, exc_info=True)
            return Completion(values=[])
        return _matching(argument.value, [*values])

    server.add_completion_handler(complete)


def _matching(typed: str, values: list[str]) -> Completion:
    """Return the values that begin as typed, then the others that contain it."""
    wanted = typed.casefold()
    first = [value for value in values if value.casefold().startswith(wanted)]
    later = [value for value in values if wanted in value.casefold() and value not in first]
    matching = [*first, *later]
    return Completion(values=matching[:MAX_VALUES], total=len(matching), has_more=len(matching) > MAX_VALUES)
