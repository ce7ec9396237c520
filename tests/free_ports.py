"""Free ports for what a test starts: any of those that the system gives to nobody unasked.

Which ones is chance, so that two tests at once do not take the same: a program listens only seconds
after it was told where.
"""

from __future__ import annotations

import random
from itertools import islice

from controlplane.supervisor.ports import is_free

UNASKED = range(20_000, 32_000)


def free_ports(count: int) -> list[int]:
    """So many, on which nobody listens now."""
    shuffled = random.sample(UNASKED, len(UNASKED))
    return list(islice(filter(is_free, shuffled), count))
