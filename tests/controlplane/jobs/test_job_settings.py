"""A job's settings: what is checked, and what reaches the engine."""

from __future__ import annotations

import pytest

from controlplane.access.errors import Refused
from controlplane.audit.models import AuditEntry
from controlplane.jobs import actions
from controlplane.jobs.settings import settings_from


def test_what_nobody_chose_is_left_to_the_job_file_and_the_engine():
    assert settings_from({}).for_engine("flights") == {
        "pipeline.name": "flights",
        "execution.checkpointing.interval": "1000ms",
    }


def test_what_was_chosen_reaches_the_engine_under_its_names():
    chosen = {
        "checkpoint_timeout_ms": 90_000,
        "checkpoint_min_pause_ms": 500,
        "incremental": False,
        "state_backend": "rocksdb",
        "restart_strategy": "fixed-delay",
        "restart_attempts": 5,
        "restart_delay_ms": 2_000,
    }
    sent = settings_from(chosen).for_engine("flights")
    assert (
        sent
        | {
            "execution.checkpointing.timeout": "90000ms",
            "execution.checkpointing.min-pause": "500ms",
            "execution.checkpointing.incremental": "false",
            "state.backend": "rocksdb",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "5",
            "restart-strategy.fixed-delay.delay": "2000ms",
        }
        == sent
    )


def test_settings_of_an_older_platform_are_read_with_defaults():
    assert settings_from({"parallelism": 3}).recovery_point_objective_s == 0


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"incremental": "yes"}, "incremental must be true or false: got 'yes'"),
        ({"checkpoint_timeout_ms": 10}, "from 1000 to 86400000: got 10"),
        ({"state_backend": "disk"}, "state_backend is not known: got 'disk'; use one of memory"),
        ({"restart_strategy": "always"}, "use one of exponential-delay, fixed-delay"),
        ({"restart_attempts": 3}, "restart_attempts has no meaning with restart strategy of the"),
        ({"restart_strategy": "none", "restart_delay_ms": 1}, "strategy none: choose fixed-delay"),
        ({"tags": ["A B"]}, "tags cannot have 'A B': use up to 40 small letters"),
        ({"tags": "nightly"}, "tags must be a list of texts"),
        ({"tags": [str(n) for n in range(21)]}, "tags are too many: got 21; a job has at most 20"),
        ({"delay_objective_s": -1}, "delay_objective_s must be a whole number from 0"),
        ({"require_state": 1}, "require_state must be true or false: got 1"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused_beside_its_field(values, sentence):
    with pytest.raises(Refused, match=sentence) as refused:
        settings_from(values)
    assert list(refused.value.fields) == [list(values)[-1]]


def test_a_change_is_audited_with_what_it_was_and_is(flights, alice):
    actions.change_settings(flights, alice, {"tags": ["b", "a", "a"], "delay_objective_s": 60})

    entry = AuditEntry.objects.get(action="job.settings")
    assert (entry.before["tags"], entry.after["tags"]) == ([], ["a", "b"])
    assert (entry.before["delay_objective_s"], entry.after["delay_objective_s"]) == (0, 60)
