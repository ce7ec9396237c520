"""The demo jobs: deployed once, and left alone when they are there.

Both read recordings that are played against the wall clock; when they begin is an argument, fixed
here at the first deployment, so that every later run, restore and replay sees the same stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User

from controlplane.access.models import Team
from controlplane.jobs import actions
from controlplane.jobs.models import Job


@dataclass(frozen=True, slots=True)
class DemoJob:
    """One of the examples."""

    name: str
    file: Path
    settings: Mapping[str, Any]
    note: str


def demo_jobs(
    examples: Path, home: Path, now: datetime, control_port: int, flights_speed: int
) -> list[DemoJob]:
    """The examples whose files are there; flights are played at a multiple of real time."""
    began = now.replace(microsecond=0).isoformat()
    found = [
        DemoJob(
            "flights",
            examples / "flights.py",
            {
                "parallelism": 2,
                "arguments": [
                    *("--anchor", began),
                    *("--speed", str(flights_speed)),
                    *("--output", str(home / "output" / "flights")),
                ],
            },
            "a year of flights from New York",
        ),
        DemoJob(
            "sensors",
            examples / "sensors.py",
            {
                "parallelism": 1,
                "arguments": [
                    *("--anchor", began),
                    *("--output", str(home / "output" / "sensors")),
                    *(("--control", f"127.0.0.1:{control_port}") if control_port else ()),
                ],
                "control_port": control_port,
            },
            "three sensors, an amplifier, and sums per second",
        ),
    ]
    return [job for job in found if job.file.is_file()]


def deploy_demo(jobs: list[DemoJob], team: Team, actor: User) -> list[str]:
    """Create and start those that do not exist yet; their names."""
    fresh = [job for job in jobs if not Job.objects.filter(name=job.name).exists()]
    for demo in fresh:
        job = actions.create_job(
            demo.name,
            team,
            actor,
            demo.file.name,
            demo.file.read_bytes(),
            demo.settings,
            demo.note,
        )
        actions.deploy(job, actor, idempotency_key=f"demo-{job.pk}")
    return [demo.name for demo in fresh]
