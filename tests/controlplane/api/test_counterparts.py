"""Every address of the dashboard has its counterpart in the API, or a reason for having none.

COUNTERPARTS   name of an address in `dashboard/urls.py` to the calls that do or tell the same
BROWSER        name to the reason why it is no matter of programs
"""

from __future__ import annotations

from collections.abc import Mapping

from controlplane.api.application import api
from dashboard.urls import urlpatterns
from route_table import ROUTES


def calls(*names: str) -> tuple[str, ...]:
    """What a program asks for instead, as `METHOD path` below `/api/v1/`."""
    return names


COUNTERPARTS: Mapping[str, tuple[str, ...]] = {
    # jobs
    "fleet": calls("GET jobs"),
    "fleet_rates": calls("GET jobs/{name}/history"),
    "deploy": calls("POST jobs", "POST jobs/{name}/start"),
    "changes": calls("GET changes"),
    "changes_series": calls("GET changes"),
    "changes_file": calls("GET changes"),
    "job": calls("GET jobs/{name}", "GET jobs/{name}/operators"),
    "start": calls("POST jobs/{name}/start", "POST jobs/{name}/upgrade"),
    "start_check": calls("GET jobs/{name}/replays/plan"),
    "stop": calls("POST jobs/{name}/stop", "POST jobs/{name}/cancel"),
    "control": calls("POST jobs/{name}/control"),
    "history": calls("GET jobs/{name}/history"),
    "output": calls("GET jobs/{name}/output"),
    "operator": calls("GET jobs/{name}/operators/{vertex}"),
    "operator_subtasks": calls("GET jobs/{name}/operators/{vertex}"),
    "exceptions": calls("GET jobs/{name}/failures"),
    "exceptions_file": calls("GET jobs/{name}/failures"),
    "batches": calls("GET jobs/{name}/statistics"),
    "batches_series": calls("GET jobs/{name}/statistics"),
    "batches_file": calls("GET jobs/{name}/statistics"),
    "metrics": calls("GET jobs/{name}/metrics", "GET jobs/{name}/metrics/names"),
    "metrics_series": calls("GET jobs/{name}/metrics"),
    "metrics_file": calls("GET jobs/{name}/metrics"),
    "outputs": calls("GET jobs/{name}/outputs"),
    "outputs_file": calls("GET jobs/{name}/outputs"),
    "jump": calls("GET search"),
    # versions and configuration
    "versions": calls("GET jobs/{name}/versions"),
    "upload": calls("POST jobs/{name}/versions"),
    "upload_corrected": calls("POST jobs/{name}/versions"),
    "version_diff": calls("GET jobs/{name}/versions/{number}/diff/{other}"),
    "configuration": calls("GET jobs/{name}/configuration", "GET jobs/{name}/runs"),
    "job_settings": calls("PATCH jobs/{name}/settings"),
    "rescale": calls("POST jobs/{name}/rescale"),
    "rollback": calls("POST jobs/{name}/rollback"),
    "upkeep": calls("POST jobs/{name}/upkeep"),
    "move": calls("POST jobs/{name}/move"),
    "job_team": calls("POST jobs/{name}/team"),
    "cancel_operation": calls("POST operations/{operation_id}/cancel"),
    # checkpoints, savepoints, schedules, retention
    "checkpoints": calls(
        "GET jobs/{name}/checkpoints", "GET jobs/{name}/checkpoints/{run}/{checkpoint}"
    ),
    "savepoints": calls(
        "GET savepoints",
        "GET jobs/{name}/schedules",
        "GET jobs/{name}/retention",
        "GET jobs/{name}/strays",
        "GET jobs/{name}/savepoints/scan",
        "GET jobs/{name}/recovery-point",
    ),
    "take": calls("POST jobs/{name}/savepoints"),
    "import": calls("POST jobs/{name}/savepoints/import"),
    "scan": calls("POST jobs/{name}/savepoints/scan"),
    "clear_stray": calls("DELETE strays/{stray_id}"),
    "save_policy": calls("PUT jobs/{name}/retention"),
    "dry_run": calls("GET jobs/{name}/retention/preview"),
    "add_schedule": calls("POST jobs/{name}/schedules"),
    "pause_schedule": calls("PATCH schedules/{schedule_id}"),
    "rm_schedule": calls("DELETE schedules/{schedule_id}"),
    "all_savepoints": calls("GET savepoints"),
    "savepoint": calls("GET savepoints/{savepoint_id}"),
    "savepoint_rows": calls("GET savepoints/{savepoint_id}/rows"),
    "diff": calls("GET savepoints/{savepoint_id}/diff/{other_id}"),
    "verify": calls("POST savepoints/{savepoint_id}/verify"),
    "label": calls("PATCH savepoints/{savepoint_id}"),
    "pin": calls("PATCH savepoints/{savepoint_id}"),
    "expiry": calls("PATCH savepoints/{savepoint_id}"),
    "delete_savepoint": calls(
        "POST savepoints/{savepoint_id}/delete", "POST savepoints/{savepoint_id}/detach"
    ),
    # replays
    "job_replays": calls("GET replays"),
    "replays": calls("GET replays"),
    "new_replay": calls("GET jobs/{name}/replays/plan", "POST jobs/{name}/replays"),
    "replay": calls(
        "GET replays/{replay_id}",
        "GET replays/{replay_id}/comparison",
        "GET replays/{replay_id}/readiness",
    ),
    "clone_replay": calls("POST replays/{replay_id}/clone"),
    "abandon": calls("POST replays/{replay_id}/abandon"),
    "limit_replay": calls("POST replays/{replay_id}/limit"),
    "pause_replay": calls("POST replays/{replay_id}/pause"),
    "tune_replay": calls("POST replays/{replay_id}/tuning"),
    "tolerate": calls("POST replays/{replay_id}/tolerance"),
    "accept_difference": calls("POST replays/{replay_id}/differences/{difference_id}/accept"),
    "promote": calls("POST replays/{replay_id}/promote"),
    "roll_back": calls("POST replays/{replay_id}/rollback"),
    # alerts
    "alerts": calls("GET alerts", "GET alert-rules", "GET alert-routes"),
    "alert_preview": calls("GET alert-rules/preview"),
    "add_alert_rule": calls("POST alert-rules"),
    "pause_alert_rule": calls("PATCH alert-rules/{rule_id}"),
    "rm_alert_rule": calls("DELETE alert-rules/{rule_id}"),
    "add_alert_route": calls("POST alert-routes"),
    "rm_alert_route": calls("DELETE alert-routes/{route_id}"),
    "ack_alert": calls("POST alerts/{alert_id}/acknowledge"),
    "mute_alert": calls("POST alerts/{alert_id}/mute"),
    # clusters
    "cluster": calls("GET clusters", "GET clusters/{cluster}/task-managers"),
    "register_cluster": calls("POST clusters"),
    "change_cluster": calls("PATCH clusters/{cluster}"),
    "check_cluster": calls("POST clusters/{cluster}/check"),
    "remove_cluster": calls("DELETE clusters/{cluster}"),
    "start_tm": calls("POST clusters/{cluster}/task-managers"),
    "stop_tm": calls("DELETE clusters/{cluster}/task-managers/{manager}"),
    # people, tokens, the platform
    "teams": calls("GET teams"),
    "team": calls("GET teams"),
    "add_team": calls("POST teams"),
    "set_role": calls("PUT teams/{team}/members/{user}"),
    "rm_member": calls("DELETE teams/{team}/members/{user}"),
    "users": calls("GET users"),
    "add_user": calls("POST users"),
    "change_user": calls("PATCH users/{user}"),
    "login_link": calls("POST users/{user}/login-link"),
    "tokens": calls("GET tokens"),
    "issue_token": calls("POST tokens"),
    "revoke_token": calls("DELETE tokens/{token_id}"),
    "settings": calls("GET platform"),
    "audit": calls("GET audit"),
    "audit_csv": calls("GET audit"),
}

BROWSER: Mapping[str, str] = {
    "root": "leads to the list of jobs",
    "login": "a program has a token",
    "login_once": "a program has a token",
    "sso": "a program has a token",
    "sso_back": "a program has a token",
    "logout": "a token ends by being revoked",
    "api_reference": "the API serves its own description, openapi.json",
}


def offered() -> set[str]:
    """Every call of the API."""
    return {
        f"{method.upper()} {path.removeprefix('/api/v1/')}"
        for path, methods in api.get_openapi_schema()["paths"].items()
        for method in methods
    }


def test_every_address_of_the_dashboard_has_its_counterpart():
    named = {str(one.name) for one in urlpatterns}
    missing = named - set(COUNTERPARTS) - set(BROWSER)
    assert not missing, (
        "what the browser can do, programs can: build the call of the API and name it in "
        f"COUNTERPARTS of {__name__}: {sorted(missing)}"
    )
    assert (set(COUNTERPARTS) | set(BROWSER)) - named == set(), "addresses that are gone"
    assert not set(COUNTERPARTS) & set(BROWSER)


def test_every_counterpart_is_a_call_of_the_api():
    named = {name for names in COUNTERPARTS.values() for name in names}
    assert named - offered() == set()


def test_what_changes_something_does_so_by_a_call_that_does():
    for one in urlpatterns:
        if f"POST /{one.pattern}" in ROUTES and one.name in COUNTERPARTS:
            names = COUNTERPARTS[one.name]
            assert not all(name.startswith("GET ") for name in names), one.name
