"""Entry of the command line: an engine, or with `--control` a control plane.

    headwater [--url URL] COMMAND …                         an engine: `engine.cli`
    headwater --control URL [--token-file FILE] COMMAND …   a control plane
    HEADWATER_TOKEN=… headwater --control URL COMMAND …     the same, with the token itself

Errors   one sentence on stderr, exit code 1; wrong usage is 2; Ctrl-C is 130; a reader that has
         seen enough (`| head`) is 141. Never a traceback for what either of them says on purpose.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from controlplane.client.arguments import TOKEN_VARIABLE, parse
from controlplane.client.commands import COMMANDS
from controlplane.client.connection import Control
from engine.errors import ConfigError, HeadwaterError

INTERRUPTED = 130
UNREAD = 141
"""As of a program that SIGPIPE ended."""


def main(
    argv: Sequence[str] | None = None,
    connect: Callable[[str, str], Control] = Control,
    environ: Mapping[str, str] = os.environ,
) -> int:
    """Run one command and return its exit code. `connect` takes an address and a token."""
    given = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(given, connect, environ)
        sys.stdout.flush()
    except BrokenPipeError:
        # Else the interpreter complains at its end that it cannot write the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD
    return code


def _run(
    given: list[str], connect: Callable[[str, str], Control], environ: Mapping[str, str]
) -> int:
    if not _is_for_control(given):
        # Imported only when asked for: it loads what runs jobs.
        from engine import cli

        return cli.main(given)
    options = parse(given)
    try:
        with connect(options.control, _token(options.token_file, environ)) as control:
            COMMANDS[options.command](control, options)
    except HeadwaterError as error:
        print(f"headwater: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _is_for_control(given: Sequence[str]) -> bool:
    """Whether `--control` is there; what follows `--` belongs to a job."""
    options = given[: given.index("--")] if "--" in given else given
    return any(one == "--control" or one.startswith("--control=") for one in options)


def _token(path: str | None, environ: Mapping[str, str]) -> str:
    """The API token. Raises ConfigError when there is none."""
    if path:
        try:
            token = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            msg = f"token file {path} cannot be read: {error}"
            raise ConfigError(msg) from error
    else:
        token = environ.get(TOKEN_VARIABLE, "").strip()
    if not token or not token.isascii() or not token.isprintable():
        where = f"file {path}" if path else f"${TOKEN_VARIABLE}"
        msg = (
            f"API token is missing: {where} holds none; make one on the page API tokens and give "
            f"--token-file FILE or ${TOKEN_VARIABLE}"
        )
        raise ConfigError(msg)
    return token
