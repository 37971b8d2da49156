"""The options of `deepwork serve` that transports add, and the transport that they choose."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from deepwork.cli.extended import left_out_text, parsed_rest

if TYPE_CHECKING:
    from deepwork.loading.manager import PluginManager
    from deepwork.ports.records import Serving, TransportSpec

STDIO = "stdio"


def with_transports(params: Sequence[click.Parameter]) -> list[click.Parameter]:
    """Return parameters with the options of the features' transports below `--transport`."""
    from deepwork.cli.plugin_commands import loaded_features
    from deepwork.loading.transports import transports_of

    transports = transports_of(loaded_features())
    extended: list[click.Parameter] = []
    for param in params:
        if param.name != "transport":
            extended.append(param)
            continue
        choice = copy.copy(param)
        choice.type = click.Choice([STDIO, *transports])
        notes = [spec.about for spec in transports.values() if spec.about]
        if isinstance(choice, click.Option) and choice.help:
            choice.help = "; ".join([choice.help.rstrip("."), *notes]) + "."
        options = {option.name: option for spec in transports.values() for option in spec.options}
        extended += [choice, *options.values()]
    return extended


def opened_transport(context: click.Context, plugins: PluginManager, name: str) -> Callable[[Serving], None] | None:
    """Parse the options that no parameter of the command has taken, and open the transport of this name.

    Returns:
        What serves; None for stdio.

    Raises:
        UsageError: No transport has the name or such an option, or an option has no effect with this transport.
        PluginError: A plugin is broken.
        ConfigError: The transport cannot be used as its options have it.
    """
    from deepwork.loading.transports import transports_of

    transports = transports_of(plugins)
    param = next(param for param in context.command.params if param.name == "transport")
    try:
        click.Choice([STDIO, *transports]).convert(name, param, context)
    except click.BadParameter as error:
        raise click.BadParameter(f"{error.message}{left_out_text(plugins)}", ctx=context, param=param) from None
    chosen = transports.get(name)
    parsed = parsed_rest(context, [option for spec in transports.values() for option in spec.options], plugins)
    _check_effect(parsed, name, chosen, transports)
    if chosen is None:
        return None
    names = {option.name for option in chosen.options}
    return chosen.open({key: value for key, value in parsed.params.items() if key in names})


def _check_effect(
    parsed: click.Context, name: str, chosen: TransportSpec | None, transports: Mapping[str, TransportSpec]
) -> None:
    """Refuse options that have no effect with this transport, unless they come from the environment."""
    effective = {option.name for option in chosen.options} if chosen else set[Any]()
    effective.update(needless for spec in transports.values() for needless in spec.needless)
    for param in _on_command_line(parsed):
        if param.name not in effective:
            raise click.UsageError(f"{param.opts[0]} has no effect with --transport {name}.", ctx=parsed)


def _on_command_line(parsed: click.Context) -> Iterator[click.Parameter]:
    for param in parsed.command.params:
        if parsed.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE:
            yield param
