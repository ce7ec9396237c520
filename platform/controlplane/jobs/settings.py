"""A job's settings: what each means, its default, and what values it may have.

    parallelism             subtasks of each operator            1 … 128, default 1
    checkpoint_interval_ms  between two checkpoints              100 … 1 day, default 1,000
    arguments               what the job file gets as sys.argv   at most 100 of 1,000 characters
    require_state           never start without a savepoint      default no
    control_port            port of the job's control stream     0: it has none

Errors   Refused (400) with the field and one sentence.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from controlplane.access.errors import invalid
from controlplane.backends.contract import SETTING_CHECKPOINT_INTERVAL, SETTING_NAME

MAX_PARALLELISM = 128
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class JobSettings:
    """Checked settings of a job."""

    parallelism: int = 1
    checkpoint_interval_ms: int = 1_000
    arguments: tuple[str, ...] = ()
    require_state: bool = False
    control_port: int = 0

    def as_json(self) -> dict[str, Any]:
        """What the database keeps."""
        return asdict(self) | {"arguments": list(self.arguments)}

    def for_engine(self, name: str) -> dict[str, str]:
        """The engine's settings of a run called `name`."""
        return {
            SETTING_NAME: name,
            SETTING_CHECKPOINT_INTERVAL: f"{self.checkpoint_interval_ms}ms",
        }


def settings_from(values: Mapping[str, Any]) -> JobSettings:
    """Checked settings; what is not given has its default. Raises Refused."""
    default = JobSettings()
    unknown = sorted(set(values) - set(asdict(default)))
    if unknown:
        msg = f"settings cannot have {unknown[0]}: use {', '.join(asdict(default))}"
        raise invalid(msg)
    return JobSettings(
        parallelism=checked_parallelism(values.get("parallelism", default.parallelism)),
        checkpoint_interval_ms=_whole(
            "checkpoint_interval_ms",
            values.get("checkpoint_interval_ms", default.checkpoint_interval_ms),
            100,
            DAY_MS,
        ),
        arguments=_arguments(values.get("arguments", default.arguments)),
        require_state=bool(values.get("require_state", default.require_state)),
        control_port=_whole("control_port", values.get("control_port", 0), 0, 65_535),
    )


def checked_parallelism(value: object) -> int:
    """A parallelism. Raises Refused."""
    return _whole("parallelism", value, 1, MAX_PARALLELISM)


def split_arguments(text: str) -> tuple[str, ...]:
    """The arguments in one line of text, split as a shell would. Raises Refused."""
    try:
        return _arguments(shlex.split(text))
    except ValueError as error:
        msg = f"arguments cannot be split: {str(error).lower()}; close every quote"
        raise invalid(msg, "arguments") from None


def _whole(name: str, value: object, low: int, high: int) -> int:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not low <= value <= high:  # type: ignore[operator]
        msg = f"{name} must be a whole number from {low} to {high}: got {value!r}"
        raise invalid(msg, name)
    return int(value)  # type: ignore[call-overload,no-any-return]


def _arguments(values: object) -> tuple[str, ...]:
    listed = isinstance(values, Sequence) and not isinstance(values, str)
    if not listed or not all(isinstance(value, str) for value in values):  # type: ignore[attr-defined]
        msg = "arguments must be a list of texts: write them as in a shell"
        raise invalid(msg, "arguments")
    found = tuple(str(value) for value in values)  # type: ignore[attr-defined]
    if len(found) > 100 or any(len(value) > 1_000 or "\0" in value for value in found):
        msg = "arguments are too many or too long: at most 100 of at most 1,000 characters"
        raise invalid(msg, "arguments")
    return found
