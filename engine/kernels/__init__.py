"""Kernels: the few loops over single rows, compiled, and what is built of them.

    active()   the loops that this process uses: `plain` at first, `compiled` once they are loaded
    KeySlots   the keys of rows as small numbers, so that arrays can be indexed by key

Order    both ways give the same numbers, so it does not matter when a process changes over.
"""

from engine.kernels.keyslots import KeySlots
from engine.kernels.loading import Loading, active, load

__all__ = ["KeySlots", "Loading", "active", "load"]
