"""What ends a command with one line on standard error."""

from __future__ import annotations


class CommandError(Exception):
    """The command failed; its message is one line for people."""

    exit_code = 1


class UsageError(CommandError):
    """The command can't be done as it was asked for."""

    exit_code = 2
