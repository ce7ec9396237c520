"""Addresses of the pages."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import path, re_path
from django.views.generic import RedirectView

from dashboard.views import (
    account,
    audit,
    batches,
    checkpoints,
    cluster,
    exceptions,
    fleet,
    job,
    jump,
    operators,
    replays,
    savepoints,
    series,
    teams,
    tokens,
    users,
    versions,
)

app_name = "dashboard"

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="dashboard:fleet"), name="root"),
    path("login/", account.Login.as_view(), name="login"),
    path("login/once/<str:token>/", account.once, name="login_once"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("jobs/", fleet.page, name="fleet"),
    path("jobs/deploy/", fleet.deploy, name="deploy"),
    path("jobs/<str:name>/", job.page, name="job"),
    path("jobs/<str:name>/start/", job.start, name="start"),
    path("jobs/<str:name>/stop/", job.stop, name="stop"),
    path("jobs/<str:name>/control/", job.control, name="control"),
    path("jobs/<str:name>/history.json", series.history, name="history"),
    path("jobs/<str:name>/output.json", series.output, name="output"),
    path("jobs/<str:name>/op/<str:vertex>/", operators.page, name="operator"),
    path(
        "jobs/<str:name>/op/<str:vertex>/subtasks.json",
        operators.subtasks,
        name="operator_subtasks",
    ),
    path("jobs/<str:name>/checkpoints/", checkpoints.page, name="checkpoints"),
    path("jobs/<str:name>/savepoints/", savepoints.page, name="savepoints"),
    path("jobs/<str:name>/savepoints/take/", savepoints.take, name="take"),
    path("jobs/<str:name>/savepoints/import/", savepoints.import_, name="import"),
    path("jobs/<str:name>/schedules/", savepoints.add_schedule, name="add_schedule"),
    path("schedules/<int:schedule_id>/remove/", savepoints.remove_schedule, name="rm_schedule"),
    path("jobs/<str:name>/exceptions/", exceptions.page, name="exceptions"),
    re_path(
        r"^jobs/(?P<name>[^/]+)/exceptions\.(?P<shape>csv|json)$",
        exceptions.export,
        name="exceptions_file",
    ),
    path("jobs/<str:name>/batches/", batches.page, name="batches"),
    path("jobs/<str:name>/batches/series.json", batches.series, name="batches_series"),
    re_path(
        r"^jobs/(?P<name>[^/]+)/batches\.(?P<shape>csv|json)$",
        batches.export,
        name="batches_file",
    ),
    path("jobs/<str:name>/versions/", versions.page, name="versions"),
    path("jobs/<str:name>/versions/upload/", versions.upload, name="upload"),
    path("jobs/<str:name>/replays/", replays.of_job, name="job_replays"),
    path("replays/", replays.page, name="replays"),
    path("replays/new/", replays.new, name="new_replay"),
    path("replays/new/preflight/", replays.preflight, name="preflight"),
    path("replays/<int:replay_id>/", replays.one, name="replay"),
    path("replays/<int:replay_id>/abandon/", replays.abandon, name="abandon"),
    path("cluster/", cluster.page, name="cluster"),
    path("teams/", teams.page, name="teams"),
    path("teams/add/", teams.create, name="add_team"),
    path("teams/<str:team>/", teams.one, name="team"),
    path("teams/<str:team>/members/", teams.set_role, name="set_role"),
    path("teams/<str:team>/members/<str:user>/remove/", teams.remove, name="rm_member"),
    path("users/", users.page, name="users"),
    path("users/add/", users.add, name="add_user"),
    path("users/<str:user>/", users.change, name="change_user"),
    path("users/<str:user>/login/", users.login_link, name="login_link"),
    path("tokens/", tokens.page, name="tokens"),
    path("tokens/issue/", tokens.issue, name="issue_token"),
    path("tokens/<int:token_id>/revoke/", tokens.revoke, name="revoke_token"),
    path("audit/", audit.page, name="audit"),
    path("audit/download.csv", audit.download, name="audit_csv"),
    path("jump.json", jump.search, name="jump"),
]
