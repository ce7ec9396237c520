"""Which pages may open the socket."""

from __future__ import annotations

import pytest

from controlplane.live.origin import is_same


@pytest.mark.parametrize(
    ("origin", "host", "same"),
    [
        ("http://127.0.0.1:8000", "127.0.0.1:8000", True),
        ("https://headwater.example", "headwater.example", True),
        ("http://127.0.0.1:8001", "127.0.0.1:8000", False),
        ("http://127.0.0.1", "127.0.0.1:8000", False),
        ("http://evil.example", "127.0.0.1:8000", False),
        ("null", "127.0.0.1:8000", False),
        ("", "127.0.0.1:8000", False),
    ],
)
def test_only_pages_of_this_host_and_port_open_a_socket(origin, host, same):
    assert is_same({"origin": origin, "host": host}) is same


def test_an_origin_that_the_settings_trust_may_too(settings):
    settings.CSRF_TRUSTED_ORIGINS = ["https://proxy.example"]
    assert is_same({"origin": "https://proxy.example", "host": "127.0.0.1:8000"})
