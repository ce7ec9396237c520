"""The write endpoint: tokens, sizes, encodings, and answers that name the bad line."""

from __future__ import annotations

import gzip
import sqlite3
from threading import BoundedSemaphore

import pytest
from django.test import Client
from influxdb_client import InfluxDBClient
from influxdb_client import Point as ClientPoint
from influxdb_client.client.exceptions import InfluxDBError
from influxdb_client.client.write_api import SYNCHRONOUS

from controlplane.metrics import views
from controlplane.metrics.embedded.store import Refused, SeriesStore
from controlplane.metrics.store import series_store
from controlplane.metrics.views import MAX_TEXT_BYTES, token_digest

URL = "/api/v2/write?bucket=outputs&org=headwater&precision=ns"


@pytest.fixture
def store(settings, tmp_path, monkeypatch):
    settings.HEADWATER_HOME = tmp_path
    settings.STATIC_ROOT = tmp_path  # whitenoise wants it to exist
    monkeypatch.setenv("HEADWATER_POINTS_TOKEN_SHA256", token_digest("right"))
    store = series_store()
    yield store
    store.close()


def post(body, url=URL, token="right", **headers):
    return Client(enforce_csrf_checks=True).post(
        url,
        data=body,
        content_type="text/plain",
        headers={"Authorization": f"Token {token}", **headers},
    )


def values(store):
    return [series.points for series in store.query("outputs", "m", "f")]


def test_points_are_kept(store):
    assert post(b"m f=1 1000000\nm f=2 2000000").status_code == 204
    assert values(store) == [[(1, 1.0), (2, 2.0)]]


def test_a_gzipped_body_is_unpacked(store):
    assert post(gzip.compress(b"m f=1 1000000"), Content_Encoding="gzip").status_code == 204
    assert values(store) == [[(1, 1.0)]]


def test_a_bad_line_is_named_and_the_good_ones_are_kept(store):
    answer = post(b"m f=1 1000000\nm oops\nm f=2i 2000000\nm f=3 3000000")
    assert answer.status_code == 400
    message = answer.json()["message"]
    assert "2 rejected, 2 kept" in message
    assert "line 2: no field" in message
    assert "line 3: field 'f' is of type float: got integer" in message
    assert values(store) == [[(1, 1.0), (3, 3.0)]]


@pytest.mark.parametrize("token", ["", "wrong"])
def test_only_the_token_may_write(store, token):
    assert post(b"m f=1", token=token).status_code == 401
    assert values(store) == []


def test_without_a_configured_token_nobody_may_write(store, monkeypatch):
    monkeypatch.setenv("HEADWATER_POINTS_TOKEN_SHA256", "")
    assert post(b"m f=1", token="").status_code == 401


@pytest.mark.parametrize(
    "url", ["/api/v2/write", "/api/v2/write?bucket=a/b", "/api/v2/write?bucket=a&precision=h"]
)
def test_a_wrong_parameter_is_refused(store, url):
    assert post(b"m f=1", url=url).status_code == 400


def test_a_body_that_is_too_large_is_refused(store):
    assert post(b"x" * (MAX_TEXT_BYTES + 1)).status_code == 413


def test_a_small_body_cannot_unpack_into_a_large_one(store):
    bomb = gzip.compress(b"\n" * (MAX_TEXT_BYTES * 4))
    assert post(bomb, Content_Encoding="gzip").status_code == 413


@pytest.mark.parametrize("body", [b"no gzip", gzip.compress(b"m f=1 1" * 100, mtime=0)[:-12]])
def test_a_torn_gzip_body_is_refused(store, body):
    assert post(body, Content_Encoding="gzip").status_code == 400
    assert values(store) == []


def test_a_body_that_is_no_text_is_refused(store):
    assert post(b"m f=\xff").status_code == 400


def test_a_body_that_is_packed_otherwise_is_refused_and_not_taken_for_text(store):
    answer = post(b"m f=1 1", Content_Encoding="br")

    assert answer.status_code == 415
    assert "packed with 'br'" in answer.json()["message"]
    assert values(store) == []


def test_a_refusal_names_the_first_line_at_fault(store):
    assert post(b"m f=1 1000000\nm oops\nm f=2i 2000000").json()["line"] == 2


def test_what_is_older_than_raw_points_are_kept_is_told_apart(store, monkeypatch):
    def beyond(_bucket, points):
        return [Refused(0, "it is older than raw points are kept", beyond_retention=True)]

    monkeypatch.setattr(SeriesStore, "write", lambda _self, *given: beyond(*given))
    answer = post(b"m f=1 1000000\nm f=2 2000000")
    assert answer.status_code == 422
    assert answer.json()["code"] == "unprocessable entity"
    assert "points beyond retention policy dropped=1, 1 kept: line 1" in answer.json()["message"]


def test_too_many_writes_at_once_are_asked_to_come_again(store, monkeypatch):
    monkeypatch.setattr(views, "_turns", BoundedSemaphore(1))
    with views._turns:
        answer = post(b"m f=1")
    assert (answer.status_code, answer["Retry-After"]) == (429, "1")
    assert answer.json()["code"] == "too many requests"
    assert post(b"m f=1 1000000").status_code == 204


def test_a_disk_that_takes_nothing_is_no_fault_of_the_client(store, monkeypatch):
    def full(*_given):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(SeriesStore, "write", full)
    answer = post(b"m f=1")
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
    assert answer.json()["message"].endswith("disk is full")


@pytest.mark.django_db(transaction=True)
def test_the_influxdb_client_writes_here_and_understands_refusals(store, live_server):
    with InfluxDBClient(live_server.url, "right", org="headwater", enable_gzip=True) as client:
        api = client.write_api(write_options=SYNCHRONOUS)
        api.write("outputs", record=ClientPoint("m").tag("k", "a,b").field("f", 1.5).time(7))
        assert store.query("outputs", "m", "f")[0].points == [(7e-6, 1.5)]
        with pytest.raises(InfluxDBError, match=r"line 2: field 'f' is of type float: got integer"):
            api.write("outputs", record="m f=1 8\nm f=1i 9")
    assert [len(one.points) for one in store.query("outputs", "m", "f")] == [1, 1]
