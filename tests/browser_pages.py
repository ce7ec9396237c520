"""Every page that `browser/test_every_page.py` opens, and looks at in each width and theme."""

from __future__ import annotations

PAGES = (
    "/jobs/",
    "/changes/",
    "/alerts/",
    "/jobs/flights/",
    "/jobs/sensors/",
    "/jobs/flights/checkpoints/",
    "/jobs/flights/savepoints/",
    "/savepoints/",
    "/jobs/flights/exceptions/",
    "/jobs/flights/batches/",
    "/jobs/flights/metrics/",
    "/jobs/flights/outputs/",
    "/jobs/flights/versions/",
    "/jobs/flights/configuration/",
    "/jobs/flights/replays/",
    "/replays/",
    "/replays/new/?job=flights",
    "/cluster/",
    "/teams/",
    "/teams/demo/",
    "/users/",
    "/tokens/",
    "/audit/",
    "/settings/",
    "/docs/api/",
)
