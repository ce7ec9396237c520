"""Every page that the browser tests open: one line adds a page to all of them.

no sideways scroll    at 1440, 1024 and 400 px     test_shell.py
axe                   both themes, 1440 and 400    test_axe.py
"""

from __future__ import annotations

PAGES = (
    "/jobs/",
    "/changes/",
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
