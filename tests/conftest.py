"""Of tests in all folders: a second run on a database server, no deadlines, a shared InfluxDB.

`make test-postgres` names the database in HEADWATER_DATABASE_URL: those tests run again that ask
for one at all. What touches none would only say there what it has said without.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from fixtures import influxd

# How long an example takes depends on what else the machine does.
settings.register_profile("headwater", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("headwater")

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


@pytest.fixture(scope="session")
def influx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real InfluxDB; it takes some seconds to start."""
    with influxd.influxd(tmp_path_factory.mktemp("influxd")) as url:
        yield url
