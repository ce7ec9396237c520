"""Where a job file runs: jars on Apache Flink, all others on Headwater."""

from __future__ import annotations

import pytest

from controlplane.access.errors import Refused
from controlplane.backends.models import Cluster
from controlplane.jobs.actions import add_version, create_job
from controlplane.jobs.moving import move_job
from people import JOB_FILE, jar_file


@pytest.fixture
def flink(flights):
    return Cluster.objects.create(name="flink", url="http://far:8081", kind=Cluster.Kind.FLINK)


def test_each_file_goes_to_the_first_cluster_that_can_run_it(flights, flink, team, alice):
    sums = create_job("sums", team, alice, "sums.jar", jar_file())
    words = create_job("words", team, alice, "words.py", JOB_FILE)
    assert (sums.cluster.name, words.cluster_id) == ("flink", flights.cluster_id)


def test_a_jar_waits_until_a_flink_is_registered(flights, team, alice):
    with pytest.raises(Refused, match="no cluster of Apache Flink is registered"):
        create_job("sums", team, alice, "sums.jar", jar_file())


def test_a_file_that_the_chosen_cluster_cannot_run_is_refused(flights, flink, team, alice):
    with pytest.raises(Refused, match=r"sums\.jar cannot run on .* is Headwater"):
        create_job("sums", team, alice, "sums.jar", jar_file(), cluster=flights.cluster)
    with pytest.raises(Refused, match=r"words\.py cannot run on flink"):
        create_job("words", team, alice, "words.py", JOB_FILE, cluster=flink)


def test_neither_a_version_nor_a_move_takes_a_job_to_where_it_cannot_run(
    flights, flink, team, alice
):
    sums = create_job("sums", team, alice, "sums.jar", jar_file())
    with pytest.raises(Refused, match=r"sums\.py cannot run on flink"):
        add_version(sums, alice, "sums.py", JOB_FILE)
    with pytest.raises(Refused, match=r"sums\.jar cannot run on"):
        move_job(sums, alice, flights.cluster)
