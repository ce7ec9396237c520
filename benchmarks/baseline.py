"""The same sums as one batch in plain Polars, on one thread: what the engine is compared with.

Run as a process of its own, because Polars fixes its number of threads when it is imported. Prints
JSON: seconds for making the events and for summing them, processor time, and the peak memory.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import numpy as np
import polars as pl

from benchmarks.keyed_sums import BEGAN, SPLITS, Events
from engine.connectors.paced_log import micros_of

CHUNK = 65_536
"""Events are made in pieces of the size that the engine reads."""


def main(rows: int) -> None:
    source = Events(rows)
    began = micros_of(BEGAN)
    start = time.perf_counter()
    each = rows // SPLITS
    pieces = [
        source.generate(split, np.arange(lo, min(lo + CHUNK, each)), began)
        for split in source.splits()
        for lo in range(0, each, CHUNK)
    ]
    events = pl.concat(pieces)
    made = time.perf_counter()
    second = pl.from_epoch("time", time_unit="us").dt.truncate("1s").alias("second")
    sums = events.group_by("key", second).agg(n=pl.len(), sum=pl.sum("value"))
    done = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak_bytes = peak if sys.platform == "darwin" else peak * 1_024
    result = {
        "make_s": made - start,
        "sum_s": done - made,
        "cpu_s": time.process_time(),
        "peak_bytes": peak_bytes,
        "rows": int(sums["n"].sum()),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(int(sys.argv[1]))
