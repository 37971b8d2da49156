"""Commands to which features and plugins add options, parsed once they are loaded, and groups with their commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from deepwork.commands.groups import CommandGroup

if TYPE_CHECKING:
    from deepwork.loading.manager import PluginManager

# What the parser of the command does not know is kept for `parsed_rest`.
SETTINGS = {"ignore_unknown_options": True, "allow_extra_args": True}


class ExtendedCommand(click.Command):
    """A command whose help has the options of features too; no plugin of anybody else is loaded for it.

    Args:
        extended: Returns the parameters of the command and those of features.
    """

    def __init__(
        self, *arguments: Any, extended: Callable[[Sequence[click.Parameter]], list[click.Parameter]], **options: Any
    ) -> None:
        super().__init__(*arguments, **{"context_settings": SETTINGS, **options})
        self._extended = extended

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, those of features among them."""
        click.Command(self.name, params=self.documented_params()).format_options(ctx, formatter)

    def documented_params(self) -> list[click.Parameter]:
        """Return the parameters of the command and those of features."""
        return self._extended(self.params)


class ExtendedGroup(CommandGroup):
    """A group of the core's commands, and of those that features add: in groups of the same name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List all commands by name."""
        return sorted({*super().list_commands(ctx), *self._of_features()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; features are loaded only for a command that the core does not have."""
        return super().get_command(ctx, cmd_name) or self._of_features().get(cmd_name)

    def cure(self, ctx: click.Context, name: str) -> str:
        """Name the command that was meant, or the features that are left out: one of them may have it."""
        from deepwork.cli.plugin_commands import loaded_features

        return super().cure(ctx, name) or left_out_text(loaded_features())

    def _of_features(self) -> Mapping[str, click.Command]:
        from deepwork.cli.plugin_commands import feature_commands

        return feature_commands(self.name or "")


def parsed_rest(context: click.Context, options: Iterable[click.Option], plugins: PluginManager) -> click.Context:
    """Parse what no parameter of the command has taken, by the options that plugins add.

    Raises:
        UsageError: No plugin adds such an option, or its value is wrong.
    """
    params: list[click.Parameter] = [*{option.name: option for option in options}.values()]
    parser = click.Command(context.info_name, params=params)
    try:
        return parser.make_context(context.info_name, [*context.args], parent=context.parent)
    except click.NoSuchOption as error:
        text = left_out_text(plugins)
        if not text:
            raise
        raise click.UsageError(f"{error.format_message()}{text}", ctx=error.ctx) from None


def left_out_text(plugins: PluginManager) -> str:
    """Return the sentence that names the features that are left out; "" if none is."""
    features = [f"feature {status.plugin.name!r}" for status in plugins.left_out if status.plugin.builtin]
    return f" Left out: {', '.join(features)}." if features else ""
