"""An object store for tests: moto's S3 server, in this process and on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import boto3
import pytest
from moto.server import ThreadedMotoServer

SECRET = "test-secret"
"""What must be seen in no log and no message."""


@contextmanager
def bucket() -> Iterator[str]:
    """The address of an empty bucket; the environment names its server and its credentials."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        patch.setenv("AWS_REGION", "us-east-1")
        boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="snapshots")
        yield "s3://snapshots"
    server.stop()
