"""The command line: `headwater run | list | savepoint | stop | cancel | plan | state | …`."""

from engine.cli.program import main

__all__ = ["main"]
