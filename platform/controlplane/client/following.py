"""Operations followed to their end, and what is printed of them."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from typing import Any

from controlplane.client.connection import Control
from engine.errors import ExternalError

POLL_S = 0.5
"""Short for a person who waits, long for a web process."""

ENDED = frozenset({"succeeded", "failed", "cancelled"})

Row = Mapping[str, Any]
Options = argparse.Namespace


class OperationFailed(ExternalError):
    """What was asked for began, and came to nothing."""


def follow(control: Control, options: Options, operation: Row) -> None:
    """Wait for its end, or say which it is. Raises OperationFailed."""
    if not options.no_wait:
        wait(control, options, operation)
    elif options.json:
        print_json(operation)
    else:
        print(operation["id"])


def wait(control: Control, options: Options, operation: Row) -> None:
    """Say each new thing that happens; the last word on stdout. Raises OperationFailed."""
    told = ""
    while operation["state"] not in ENDED:
        if operation["text"] != told:
            told = operation["text"]
            print(f"{operation['kind']}: {told}", file=sys.stderr)
        time.sleep(POLL_S)
        operation = control.get(f"operations/{operation['id']}")
    if options.json:
        print_json(operation)
    elif operation["state"] == "succeeded":
        print(operation["text"])
    if operation["state"] != "succeeded":
        why = operation["error"] or operation["text"]
        msg = f"{operation['kind']} of {operation['job']} {operation['state']}: {why}"
        raise OperationFailed(msg)


def print_json(found: object) -> None:
    """An answer for programs."""
    print(json.dumps(found, indent=2, ensure_ascii=False))
