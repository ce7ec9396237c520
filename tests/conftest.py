"""Which tests run again beside a database server: those that ask for a database at all.

`make test-postgres` names the server in HEADWATER_DATABASE_URL. What touches no database would
only say there what it has said without one.
"""

from __future__ import annotations

import os

import pytest

DATABASE = frozenset({"db", "transactional_db"})


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not os.environ.get("HEADWATER_DATABASE_URL"):
        return
    chosen = [item for item in items if asks_for_a_database(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen


def asks_for_a_database(item: pytest.Item) -> bool:
    fixtures = DATABASE.intersection(getattr(item, "fixturenames", ()))
    return bool(fixtures) or item.get_closest_marker("django_db") is not None
