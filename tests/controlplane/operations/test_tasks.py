"""Sending operations to workers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from celery import current_app

from controlplane.celery import app
from controlplane.jobs import actions
from controlplane.operations import tasks


def test_tasks_go_through_our_broker_from_every_thread():
    with ThreadPoolExecutor(1) as pool:
        for find in (lambda: tasks.advance.app, lambda: current_app._get_current_object()):
            assert find() is app
            assert pool.submit(find).result() is app


def test_an_operation_is_sent_when_it_is_in_the_database_and_not_before(
    flights, alice, django_capture_on_commit_callbacks
):
    with app.connection_for_read() as connection:
        queue = connection.SimpleQueue("celery")
        queue.clear()
        with django_capture_on_commit_callbacks(execute=True) as callbacks:
            operation = actions.deploy(flights, alice)
            assert queue.qsize() == 0

        assert len(callbacks) >= 1
        message = queue.get(block=False)
        message.ack()
        assert message.payload[0] == [str(operation.pk)]
        queue.close()
