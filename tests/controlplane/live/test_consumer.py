"""The WebSocket as a browser sees it: order, gaps, rights, and what ends it."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth.models import AnonymousUser, User

from controlplane.access.models import Membership, Team
from controlplane.asgi import application as site
from controlplane.backends.models import Cluster
from controlplane.jobs.models import Job
from controlplane.live import topics
from controlplane.live.consumer import NOT_UNDERSTOOD, SIGNED_OUT, LiveConsumer
from controlplane.live.latest import latest_store
from controlplane.live.publish import apublish
from engine.testing.cluster import PATIENCE_S

pytestmark = pytest.mark.django_db(transaction=True)


class FastConsumer(LiveConsumer):
    tick_s = 0.05
    heartbeat_s = 0.2
    recheck_s = 0.3


@pytest.fixture
def jobs(db):
    """Job of alice and bob's team, and one of mallory's."""
    cluster = Cluster.objects.create(name="here", url="http://127.0.0.1:1")
    made = []
    for name, members in (("flights", ("alice", "bob")), ("secret", ("mallory",))):
        team = Team.objects.create(name=f"team-{name}")
        for member in members:
            Membership.objects.create(user=User.objects.create_user(member), team=team)
        made.append(Job.objects.create(name=name, team=team, cluster=cluster))
    forget(made)  # other tests, whose jobs had the same ids, may have published
    yield made
    forget(made)


def forget(jobs):
    for job in jobs:
        for topic in (topics.job(job.pk), topics.events(job.pk), topics.FLEET):
            latest_store().forget(topics.parse(topic))


@asynccontextmanager
async def tab(name, application=None):
    """One open socket of a person; of nobody without a name."""
    user = await User.objects.aget(username=name) if name else AnonymousUser()
    scope = {"type": "websocket", "path": "/ws/", "headers": [], "user": user}
    communicator = ApplicationCommunicator(application or FastConsumer.as_asgi(), scope)
    await communicator.send_input({"type": "websocket.connect"})
    assert (await communicator.receive_output(timeout=PATIENCE_S))["type"] == "websocket.accept"
    yield communicator
    await communicator.send_input({"type": "websocket.disconnect", "code": 1000})
    await communicator.wait(timeout=PATIENCE_S)


async def say(communicator, text):
    await communicator.send_input({"type": "websocket.receive", "text": text})


async def close_code(communicator):
    while (output := await communicator.receive_output(timeout=PATIENCE_S))[
        "type"
    ] != "websocket.close":
        pass
    return output["code"]


async def hear(communicator, kind=None):
    """The next message that is no heartbeat, which must be of that kind."""
    while True:
        message = json.loads((await communicator.receive_output(timeout=PATIENCE_S))["text"])
        if message["k"] not in ("hb", "hello") or message["k"] == kind:
            assert kind is None or message["k"] == kind
            return message


async def subscribe(communicator, *names, seq=None):
    await say(communicator, json.dumps({"op": "sub", "topics": dict.fromkeys(names, seq)}))


async def test_a_snapshot_comes_first_and_then_only_changes(jobs):
    name = topics.job(jobs[0].pk)
    await apublish(name, {"state": "RUNNING", "in": 10.0})
    async with tab("alice") as alice:
        assert (await hear(alice, "hello"))["user"] == "alice"
        await subscribe(alice, name)
        snap = await hear(alice, "snap")
        assert snap["d"] == {"state": "RUNNING", "in": 10.0}
        await apublish(name, {"state": "RUNNING", "in": 11.0})
        patch = await hear(alice, "patch")
        assert (patch["d"], patch["prev"]) == ({"in": 11.0}, snap["seq"])


async def test_events_arrive_in_order(jobs):
    name = topics.events(jobs[0].pk)
    async with tab("bob") as bob:
        await subscribe(bob, name)
        assert (await hear(bob, "snap"))["d"] == {"events": []}
        for number in range(5):
            await apublish(name, {"id": str(number)})
        assert [(await hear(bob, "event"))["d"]["id"] for _ in range(5)] == list("01234")


async def test_a_strangers_topic_is_gone_like_one_that_does_not_exist(jobs):
    async with tab("mallory") as mallory:
        for name in (topics.job(jobs[0].pk), topics.job(999), "nonsense", "op." + "0" * 32):
            await subscribe(mallory, name)
            assert await hear(mallory) == {"k": "gone", "t": name}


async def test_the_fleet_holds_only_what_one_may_see(jobs):
    mine, others = (str(job.pk) for job in jobs)
    await apublish("fleet", {mine: {"state": "RUNNING"}, others: {"state": "FAILED"}})
    async with tab("alice") as alice:
        await subscribe(alice, "fleet")
        snap = await hear(alice, "snap")
        assert set(snap["d"]) == {mine, "sum"}
        assert snap["d"]["sum"]["jobs"] == 1


async def test_a_role_that_is_taken_away_ends_the_topic(jobs):
    async with tab("bob") as bob:
        await subscribe(bob, topics.job(jobs[0].pk), "fleet")
        assert {(await hear(bob))["k"] for _ in range(2)} == {"snap"}
        await Membership.objects.filter(user__username="bob").adelete()
        assert (await hear(bob, "gone"))["t"] == topics.job(jobs[0].pk)


async def test_a_new_job_of_the_team_appears_in_the_fleet(jobs):
    async with tab("alice") as alice:
        await subscribe(alice, "fleet")
        await hear(alice, "snap")
        team, cluster = await sync_to_async(lambda: (jobs[0].team, jobs[0].cluster))()
        new = await Job.objects.acreate(name="new", team=team, cluster=cluster)
        await apublish("fleet", {str(new.pk): {"state": "CREATED"}})
        snap = await hear(alice, "snap")
        assert snap["d"][str(new.pk)] == {"state": "CREATED"}


async def test_a_change_that_the_channel_layer_lost_is_noticed_by_the_heartbeat(jobs):
    name = topics.job(jobs[0].pk)
    async with tab("alice") as alice:
        await subscribe(alice, name)
        await hear(alice, "snap")
        latest_store().merge(topics.parse(name), {"in": 5.0})  # stored, and not told to anybody
        assert (await hear(alice, "snap"))["d"] == {"in": 5.0}


async def test_heartbeats_come_when_nothing_else_does(jobs):
    async with tab("alice") as alice:
        assert (await hear(alice, "hello"))["k"] == "hello"
        assert (await hear(alice, "hb"))["k"] == "hb"


async def test_after_unsub_nothing_comes_any_more(jobs):
    name = topics.job(jobs[0].pk)
    async with tab("alice") as alice:
        await hear(alice, "hello")
        await subscribe(alice, name)
        await hear(alice, "snap")
        await say(alice, json.dumps({"op": "unsub", "topics": [name]}))
        await hear(alice, "hb")
        await apublish(name, {"in": 1.0})
        await hear(alice, "hb")
        assert json.loads((await alice.receive_output(timeout=PATIENCE_S))["text"])["k"] == "hb"


async def test_a_slow_browser_gets_the_newest_values_in_few_messages(jobs):
    name = topics.job(jobs[0].pk)
    async with tab("alice") as alice:
        await subscribe(alice, name)
        await hear(alice, "snap")
        for number in range(300):
            await apublish(name, {"in": number})
        heard = []
        while not heard or heard[-1]["d"].get("in") != 299:
            heard.append(await hear(alice))
        assert len(heard) < 60


@pytest.mark.parametrize(
    "text",
    ["no json", "[]", '{"op": "sub"}', '{"op": "sub", "topics": []}', "x" * 20_000, "[" * 16_000],
)
async def test_what_is_not_of_the_protocol_ends_the_socket(jobs, text):
    async with tab("alice") as alice:
        await hear(alice, "hello")
        await say(alice, text)
        assert await close_code(alice) == NOT_UNDERSTOOD


async def test_nobody_who_is_not_signed_in_hears_anything(jobs):
    async with tab(None) as nobody:
        assert await close_code(nobody) == SIGNED_OUT


async def test_whoever_is_shut_out_loses_the_socket(jobs):
    async with tab("alice") as alice:
        await hear(alice, "hello")
        await User.objects.filter(username="alice").aupdate(is_active=False)
        assert await close_code(alice) == SIGNED_OUT


async def test_closing_a_tab_leaves_no_task_behind(jobs):
    before = asyncio.all_tasks()
    async with tab("alice") as alice:
        await subscribe(alice, topics.job(jobs[0].pk))
        await hear(alice, "snap")
    # What a Redis channel layer listens with belongs to the process.
    left = {task for task in asyncio.all_tasks() - before if "channels_redis" not in repr(task)}
    assert left == set()


@pytest.mark.parametrize("unheard", ["hello", "snap"])
async def test_a_browser_that_hung_up_is_no_fault_of_ours(jobs, caplog, unheard):
    lost = asyncio.Event()

    async def behind_a_cut_line(scope, receive, send):
        async def say_or_fail(message):
            if f'"k":"{unheard}"' in message.get("text", ""):
                lost.set()
                raise ConnectionResetError
            await send(message)

        await FastConsumer.as_asgi()(scope, receive, say_or_fail)

    async with tab("alice", behind_a_cut_line) as alice:
        await subscribe(alice, topics.job(jobs[0].pk))
        await asyncio.wait_for(lost.wait(), PATIENCE_S)
    assert "the writer of a socket failed" not in caplog.text


async def test_a_socket_at_another_address_is_denied(db):
    scope = {
        "type": "websocket",
        "path": "/other/",
        "headers": [(b"origin", b"http://testserver"), (b"host", b"testserver")],
    }
    communicator = ApplicationCommunicator(site, scope)
    await communicator.send_input({"type": "websocket.connect"})
    assert (await communicator.receive_output(timeout=PATIENCE_S))["type"] == "websocket.close"
