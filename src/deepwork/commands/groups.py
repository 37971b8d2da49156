"""Groups of commands."""

from __future__ import annotations

import click

from deepwork.text import near


class CommandGroup(click.Group):
    """Shows whole summaries, and names the command that was probably meant instead of an unknown one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; click alone looks for similar names neither in all its releases nor among ours."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"No such command {name!r}.{self.cure(ctx, name)}")
        return super().resolve_command(ctx, args)

    def cure(self, ctx: click.Context, name: str) -> str:
        """Return a sentence that suggests the intended name for an unknown one; "" if none is near."""
        meant = near(name, self.list_commands(ctx))
        return f" Did you mean {meant!r}?" if meant else ""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands; click alone cuts each summary at the end of the line."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [
            (name, command.get_short_help_str(limit=1000))
            for name, command in commands
            if command and not command.hidden
        ]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)
