"""Clusters: registering, testing, changing and removing one; its token; its task managers."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.html import strip_tags

from controlplane.access.errors import Refused
from controlplane.audit.models import AuditEntry
from controlplane.backends import actions
from controlplane.backends.models import Cluster
from controlplane.backends.probe import checked_url
from controlplane.backends.tokens import Address, address_of, seal, unseal
from controlplane.jobs.moving import move_job
from engine.testing.fake_service import FakeService
from loopback_engine import served

TOKEN = "a-token-of-an-engine"


@pytest.fixture
def root(db):
    return User.objects.create_superuser("root")


@pytest.fixture(scope="module")
def url():
    with served(FakeService()) as address:
        yield address


@pytest.fixture
def far(root, url):
    return actions.register_cluster(root, "far", url, TOKEN)[0]


def test_an_engine_that_answers_is_registered_as_what_it_is(far, url):
    assert (far.kind, far.url, far.status) == ("headwater", url, "ok")
    assert "rescale" in far.capabilities["features"]


def test_its_token_is_sealed_and_shown_nowhere(far, root):
    assert TOKEN not in far.sealed_token
    assert address_of(far) == Address(far.url, TOKEN)
    assert TOKEN not in repr(address_of(far))
    assert TOKEN not in str([vars(entry) for entry in AuditEntry.objects.all()])
    page = cluster_page(root)
    assert TOKEN not in page
    assert far.sealed_token not in page
    assert "with a token" in page


class Silent(FakeService):
    """An engine whose reporter reaches nobody."""

    async def cluster(self):
        found = await super().cluster()
        told = {
            "reporterPointsDropped": 52_500,
            "reporterPointsWaiting": 1_200,
            "reporterSilentTime": 190_500.0,
        }
        return replace(found, metrics={**found.metrics, **told})


def cluster_page(root):
    browser = Client()
    browser.force_login(root)
    return browser.get("/cluster/").content.decode()


def test_what_its_reporter_dropped_is_told_and_for_how_long_none_was_taken(root):
    with served(Silent()) as url:
        actions.register_cluster(root, "silent", url)
        page = strip_tags(cluster_page(root))
    assert re.search(r"Metrics dropped\s*52[.,]5\s*k", page)
    assert re.search(r"No metrics were taken for\s*3\s*m\s*10\s*s: 1,200 points wait", page)


def test_an_engine_without_a_reporter_has_no_figure_of_one(far, root):
    assert re.search(r"Metrics dropped\s*–\s*it has no reporter", strip_tags(cluster_page(root)))


def test_another_secret_key_does_not_open_it(settings):
    sealed = seal(TOKEN)
    settings.SECRET_KEY = "another"
    assert unseal(sealed) is None


def test_where_no_engine_answers_nothing_is_registered(root):
    with pytest.raises(Refused, match=r"no engine answers at http://127\.0\.0\.1:9") as refused:
        actions.register_cluster(root, "far", "http://127.0.0.1:9")
    assert (refused.value.status, list(refused.value.fields)) == (502, ["url"])
    assert not Cluster.objects.exists()


@pytest.mark.parametrize(
    "text",
    ["", "lab:8081", "ftp://lab", "http://", "http://lab:x", "http://lab/?a=1", "fake://lab"],
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(Refused, match="engine address cannot be used"):
        checked_url(text)


def test_a_password_in_an_address_is_refused_and_not_repeated():
    with pytest.raises(Refused) as refused:
        checked_url("http://me:secret@lab:8081")
    assert "secret" not in refused.value.message


def test_a_change_keeps_the_token_unless_it_is_replaced_or_forgotten(far, root, url):
    actions.change_cluster(far, root, url)
    far.refresh_from_db()
    assert address_of(far).token == TOKEN

    actions.change_cluster(far, root, url, forget_token=True)
    far.refresh_from_db()
    assert address_of(far).token is None


def test_a_cluster_with_jobs_is_not_taken_out_until_they_are_moved(flights, alice, lab, far, root):
    with pytest.raises(Refused, match="cluster lab has jobs: flights; move them"):
        actions.remove_cluster(lab, root)
    move_job(flights, alice, far)
    actions.remove_cluster(lab, root)

    assert list(Cluster.present.all()) == [far]
    flights.refresh_from_db()
    assert flights.cluster == far


def test_a_cluster_that_was_taken_out_comes_back_under_its_name(far, root, url):
    actions.remove_cluster(far, root)
    again, _ = actions.register_cluster(root, "far", url)

    assert (again.pk, again.removed_at, again.sealed_token) == (far.pk, None, "")


def test_whoever_may_only_look_moves_no_job(running, bob, far):
    with pytest.raises(Refused, match="needs the operator role"):
        move_job(running, bob, far)


def test_task_managers_are_started_and_stopped_through_the_engine(far, root, alice):
    name = actions.start_task_manager(far, root)
    actions.stop_task_manager(far, root, name)
    with pytest.raises(Refused, match="nobody-here"):
        actions.stop_task_manager(far, root, "nobody-here")
    with pytest.raises(Refused, match="needs the platform admin role"):
        actions.start_task_manager(far, alice)


def test_the_page_shows_what_runs_in_each_slot_and_names_only_visible_jobs(far, root, alice):
    browser = Client()
    browser.force_login(alice)
    page = browser.get("/cluster/").content.decode()

    assert "tm-1" in page
    assert "Register a cluster" not in page
    assert "needs a platform admin" in page


def test_the_page_asks_the_database_as_often_for_many_clusters(far, root, url):
    browser = Client()
    browser.force_login(root)
    few = queries_of(browser)
    Cluster.objects.create(name="third", url=url)

    assert queries_of(browser) == few


def queries_of(browser):
    with CaptureQueriesContext(connection) as captured:
        browser.get("/cluster/")
    return len(captured)
