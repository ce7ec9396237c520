"""Variables of the environment: all are described, and none is told."""

from __future__ import annotations

import re
from pathlib import Path

from controlplane.configuration import parts, variables

PLATFORM = Path(__file__).parents[3] / "platform"
READ = re.compile(r'(?:environ\.get\(|environ\[|environment\.\w+\()\s*"(HEADWATER_\w+)"')
OF_CHILDREN = {"HEADWATER_CONTROL_PORT", "HEADWATER_LEASH_PIPE"}
"""What `manage.py up` tells the programs that it starts; people do not set them."""


def test_every_variable_is_described():
    read = {name for path in PLATFORM.rglob("*.py") for name in READ.findall(path.read_text())}
    missing = read - OF_CHILDREN - {one.name for one in variables({})}

    assert len(read) > 10
    assert not missing, f"describe these in controlplane/environment.py: {sorted(missing)}"
    assert all(one.meaning for one in variables({}))


def test_a_variable_is_set_by_itself_or_by_a_file():
    for name in ("HEADWATER_OIDC_CLIENT_SECRET", "HEADWATER_OIDC_CLIENT_SECRET_FILE"):
        found = {one.name: one.is_set for one in variables({name: "x"})}
        assert found["HEADWATER_OIDC_CLIENT_SECRET"]
        assert sum(found.values()) == 1


def test_a_file_sets_nothing_that_is_not_read_from_one():
    assert not any(one.is_set for one in variables({"HEADWATER_SECRET_KEY_FILE": "x"}))


def test_every_secret_that_may_be_in_a_file_says_so():
    secrets = {
        name
        for path in PLATFORM.rglob("*.py")
        for name in re.findall(r'environment\.secret\("(\w+)"', path.read_text())
    }
    named = {one.name for name in secrets for one in variables({f"{name}_FILE": "x"}) if one.is_set}
    assert named == secrets


def test_the_page_tells_no_value(client, admin_user, monkeypatch, db):
    monkeypatch.setenv("HEADWATER_SECRET_KEY", "hunter2-hunter2")
    client.force_login(admin_user)
    page = client.get("/settings/").content.decode()

    assert "HEADWATER_SECRET_KEY" in page
    assert "hunter2" not in page
    assert "only for tests" not in page
    assert all(part.version in page for part in parts())
