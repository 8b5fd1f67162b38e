"""The command line ``warpbots``: train, sweep, simulate, info, view, render, convert and new."""

from warpbots.cli.command_line import main, parser

__all__ = ["main", "parser"]
