"""The source of frames."""

from __future__ import annotations

import polars as pl
import pytest

from engine.connectors.frame import FrameSource
from engine.errors import GraphError
from engine.testing.conformance import check_source

WORDS = pl.DataFrame({"word": list("abcdefghijk")})


def test_frames_are_read_whole_from_any_row() -> None:
    check_source(
        lambda: FrameSource({"left": WORDS, "right": WORDS.head(3), "none": WORDS.clear()})
    )


def test_frames_of_two_schemas_are_refused() -> None:
    with pytest.raises(GraphError, match="needs frames of one schema"):
        FrameSource({"left": WORDS, "right": pl.DataFrame({"n": [1]})})
