"""Histories from the shell: make chaos SEEDS=0-99 MINUTES=30; one again: make chaos SEEDS=7.

Guarantee  every history gives the output of the undisturbed one and leaves nothing behind; of one
           that does not, what was done is told, with the command that does it again, and its
           folder is kept, with all logs.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from engine.clock import monotonic
from engine.testing.chaos.suite import Chaos


def main(argv: Sequence[str] | None = None) -> int:
    """Run histories until the time is up, or one breaks the law."""
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seeds", default="0-999", help="e.g. 7, or 0-99,200")
    parser.add_argument("--minutes", type=float, default=10, help="begin no other one after that")
    parser.add_argument("--go-on", action="store_true", help="also after one that broke the law")
    arguments = parser.parse_args(argv)
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    broken = _run(Chaos(folder), seeds_of(arguments.seeds), arguments.minutes, arguments.go_on)
    if not broken:
        shutil.rmtree(folder)
    return 1 if broken else 0


def _run(chaos: Chaos, seeds: Sequence[int], minutes: float, go_on: bool) -> int:
    """Run histories and tell of each; how many have broken the law."""
    until, broken, lived = monotonic() + 60 * minutes, 0, 0
    for seed in seeds:
        if monotonic() > until or (broken and not go_on):
            break
        began = monotonic()
        wrong = chaos.run(seed)
        lived, broken = lived + 1, broken + (wrong is not None)
        told = f"seed {seed}: the same output, after {monotonic() - began:.1f} s"
        print(wrong or told, flush=True)
    print(f"{lived} histories, of which {broken} broke the law")
    return broken


def seeds_of(text: str) -> list[int]:
    """Read a list of seeds and ranges.

    >>> seeds_of("7,30-32")
    [7, 30, 31, 32]
    """
    seeds: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        seeds += range(int(first), int(last or first) + 1)
    return seeds


if __name__ == "__main__":
    sys.exit(main())
