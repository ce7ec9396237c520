"""Rows per second and peak memory of peers and of Headwater, on the same work in the same run.

    python -m benchmarks.peers [--peers bytewax,csp] [--works tumbling,json] [--scale X]

Compare the ratios, not rows/s of different machines or runs: what else the machine does meets both.
Headwater runs as real processes with a checkpoint each second and files as output; peers collect
their results in memory, and but for Spark and Quix Streams keep no checkpoints.
"""

from __future__ import annotations

import argparse
import signal
from collections.abc import Sequence

import psutil

from benchmarks.peers.catalog import LEFT_OUT, PEERS, Peer
from benchmarks.peers.measure import measured_ours, measured_peer
from benchmarks.peers.table import heading, line
from benchmarks.peers.work import WORKS, Work
from engine.version import VERSION


def names(known: Sequence[str], given: str) -> list[str]:
    """Names from a list with commas; all when it is empty."""
    chosen = [name for name in given.split(",") if name]
    for name in chosen:
        if name not in known:
            msg = f"unknown name '{name}': choose from {', '.join(known)}"
            raise SystemExit(msg)
    return [name for name in known if not chosen or name in chosen]


def measured(work: Work, peers: Sequence[Peer], scale: float) -> None:
    """Print the lines of one work, ours first."""
    ours = measured_ours(work, int(work.ours * scale), VERSION)
    print(line(ours, ours), flush=True)
    for peer in peers:
        if work.name in peer.works:
            score = measured_peer(peer, work, int(peer.rows * work.share * scale))
            print(line(score, ours), flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.peers", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--peers", default="", help="only these, with commas")
    parser.add_argument("--works", default="", help="only this work, with commas")
    parser.add_argument("--scale", type=float, default=1.0, help="so many times the rows")
    args = parser.parse_args()
    chosen = names([peer.name for peer in PEERS], args.peers)
    works = names(list(WORKS), args.works)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends what was started, as Ctrl-C
    print(f"{psutil.cpu_count()} cores, one worker or process each\n\n{heading()}")
    for work in works:
        measured(WORKS[work], [peer for peer in PEERS if peer.name in chosen], args.scale)
    print("\n" + "\n".join(LEFT_OUT))


if __name__ == "__main__":
    main()
