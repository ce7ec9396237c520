"""The names of all settings of a job, so that a misspelt one is told and not passed over.

Settings of other programs pass: only names that begin as ours do are looked at.

Errors   ConfigError, with the name that was probably meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from engine.errors import ConfigError

KNOWN = frozenset(
    {
        "parallelism.default",
        "pipeline.max-parallelism",
        "pipeline.name",
        "execution.checkpointing.dir",
        "execution.checkpointing.incremental",
        "execution.checkpointing.externalized-checkpoint-retention",
        "execution.checkpointing.interval",
        "execution.checkpointing.max-concurrent-checkpoints",
        "execution.checkpointing.min-pause",
        "execution.checkpointing.savepoint-dir",
        "execution.checkpointing.timeout",
        "execution.checkpointing.tolerable-failed-checkpoints",
        "headwater.event-time.from",
        "headwater.event-time.until",
        "headwater.parallelism",
        "headwater.read-limit",
        "headwater.restore.positions",
        "headwater.restore.renames",
        "headwater.sinks.discard",
        "headwater.sinks.shadow",
        "restart-strategy",
        "restart-strategy.exponential-delay.attempts-before-reset-backoff",
        "restart-strategy.exponential-delay.backoff-multiplier",
        "restart-strategy.exponential-delay.initial-backoff",
        "restart-strategy.exponential-delay.jitter-factor",
        "restart-strategy.exponential-delay.max-backoff",
        "restart-strategy.exponential-delay.reset-backoff-threshold",
        "restart-strategy.failure-rate.delay",
        "restart-strategy.failure-rate.failure-rate-interval",
        "restart-strategy.failure-rate.max-failures-per-interval",
        "restart-strategy.fixed-delay.attempts",
        "restart-strategy.fixed-delay.delay",
        "restart-strategy.fixed-delay.delay-ms",
        "restart-strategy.type",
        "state.backend",
        "state.backend.rocksdb.localdir",
        "state.backend.rocksdb.memory.block-cache-ratio",
        "state.backend.rocksdb.memory.per-operator",
        "state.backend.rocksdb.memory.write-buffer-ratio",
        "state.checkpoints.num-retained",
    }
)

OURS = frozenset(name.split(".")[0] for name in KNOWN)
"""How our names begin."""


def check_setting_names(given: Iterable[str]) -> None:
    """Refuse names that would have no effect. Raises ConfigError.

    >>> check_setting_names(["state.backend", "retries"])
    """
    for name in given:
        if name in KNOWN or name.split(".")[0] not in OURS:
            continue
        hint = probably_meant(name, sorted(KNOWN))
        msg = f"setting {name!r} is not known, and would have no effect; {hint}"
        raise ConfigError(msg)


def probably_meant(name: str, known: Sequence[str]) -> str:
    """The known name that is most like a misspelt one, or all of them, as words for a message.

    >>> probably_meant("colour", ["color", "size"])
    'did you mean color?'
    """
    meant = get_close_matches(name, known, n=1)
    return f"did you mean {meant[0]}?" if meant else f"known are {', '.join(known)}"
