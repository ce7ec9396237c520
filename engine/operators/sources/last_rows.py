"""Where a split ends that is read up to a moment: the same row, whatever batches it came in.

    batch that takes the split's watermark to `until` ──read again, record by record──▶
    the record that does so is the last one; the position is right behind it

Guarantee  a snapshot that is taken afterwards goes on with the next record, when a later job has
           no end or a later one: nothing is read and dropped.
Cost       one batch is read twice, once for each split.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from engine.connectors.contract import Source
from engine.elements import Micros
from engine.operators.sources.source_splits import OpenSplit, SplitState
from engine.watermarks import SplitWatermarks, WatermarkStrategy


@dataclass(frozen=True, slots=True)
class LastRows:
    """How the splits of one source end."""

    source: Source
    strategy: WatermarkStrategy
    until: Micros

    def has(self, split: OpenSplit) -> bool:
        """Whether the split has come to its end."""
        return split.watermark >= self.until

    def read(
        self, split: OpenSplit, before: SplitState, records: int, now: Micros
    ) -> tuple[pl.DataFrame, bool]:
        """Read the last batch of a split again, from where it was `before` it, up to the end.

        `records`: how many there were in the batch. Also says whether the split has no more.
        """
        assert split.reader is not None
        split.reader.close()
        split.reader = self.source.open(split.id, before.position)
        split.watermarks = SplitWatermarks(self.strategy, before.watermark, before.generator)
        frames, finished = [], False
        # Per record, in one batch of each split: only so is the last one found.
        for _ in range(records):
            polled = split.reader.poll(1, now)
            finished = polled.finished
            if polled.frame is not None and polled.frame.height:
                frames.append(split.watermarks.stamp(polled.frame))
            if self.has(split) or finished:
                break
        return pl.concat(frames, how="diagonal"), finished
