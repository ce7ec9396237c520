"""Every address and topic of the platform, and who gets what there.

"POST /jobs/<str:name>/stop/": operator(how="stop", typed="{job}"),
 method  route as in urls.py   who may  what is sent: a form, JSON, or the query of a GET

rule            anonymous  stranger  viewer  operator  admin  superuser
everyone()          in        in       in       in      in       in
signed_in()       login       in       in       in      in       in
viewer()          login      404       in       in      in       in
operator()        login      404      403       in      in       in
admin()           login      404      403      403      in       in
platform_admin()  login      403      403      403     403       in
owner()           login      404      404      404      in      in
nothing()           404      404      404      404     404     404
token()             401      401      401      401     401      401

in      any answer but the others, a 405 and a fault: what is sent may still be refused (409)
login   sent to the login page; below /api/ a 401
403     its sentence names the role that is needed
{job}   a value of the fixture `world` in `controlplane/access/test_routes.py`
@x.py   a job file of that name
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from controlplane.live.topics import Family

Needs = Literal[
    "everyone",
    "signed_in",
    "viewer",
    "operator",
    "admin",
    "platform_admin",
    "owner",
    "token",
    "nothing",
]


@dataclass(frozen=True)
class Rule:
    """Who is let in, and what is sent to find out."""

    needs: Needs
    data: dict[str, str] = field(default_factory=dict)


def everyone(**data: str) -> Rule:
    return Rule("everyone", data)


def signed_in(**data: str) -> Rule:
    return Rule("signed_in", data)


def viewer(**data: str) -> Rule:
    return Rule("viewer", data)


def operator(**data: str) -> Rule:
    return Rule("operator", data)


def admin(**data: str) -> Rule:
    return Rule("admin", data)


def platform_admin(**data: str) -> Rule:
    return Rule("platform_admin", data)


def owner(**data: str) -> Rule:
    return Rule("owner", data)


def nothing(**data: str) -> Rule:
    return Rule("nothing", data)


def token(**data: str) -> Rule:
    return Rule("token", data)


ROUTES: dict[str, Rule] = {
    # signing in
    "GET /": everyone(),
    "POST /": everyone(),
    "GET /login/": everyone(),
    "POST /login/": everyone(username="nobody", password="wrong"),
    "GET /login/once/<str:token>/": everyone(),
    "POST /logout/": everyone(),
    "GET /login/sso/": nothing(),  # single sign-on is off unless it is set up
    "GET /login/sso/back/": nothing(),
    # jobs
    "GET /jobs/": signed_in(),
    "POST /jobs/deploy/": operator(name="other", team="{team}", file="@other.py", parallelism="1"),
    "GET /jobs/rates.json": signed_in(),
    "GET /changes/": signed_in(),
    "GET /changes/series.json": signed_in(),
    "GET /changes.<shape>": signed_in(),
    "GET /jobs/<str:name>/": viewer(),
    "POST /jobs/<str:name>/start/": operator(version="1"),
    "GET /jobs/<str:name>/start/check/": operator(version="1"),
    "POST /jobs/<str:name>/stop/": operator(how="stop", typed="{job}"),
    "POST /jobs/<str:name>/control/": operator(key="a", value="2"),
    "GET /jobs/<str:name>/history.json": viewer(),
    "GET /jobs/<str:name>/output.json": viewer(),
    "GET /jobs/<str:name>/exceptions/": viewer(),
    "GET /jobs/<name>/exceptions.<shape>": viewer(),
    "GET /jobs/<str:name>/batches/": viewer(),
    "GET /jobs/<str:name>/batches/series.json": viewer(),
    "GET /jobs/<name>/batches.<shape>": viewer(),
    "GET /jobs/<str:name>/metrics/": viewer(),
    "GET /jobs/<str:name>/metrics/series.json": viewer(),
    "GET /jobs/<name>/metrics.<shape>": viewer(),
    "GET /jobs/<str:name>/outputs/": viewer(),
    "GET /jobs/<name>/outputs.<shape>": viewer(),
    "GET /jobs/<str:name>/op/<str:vertex>/": viewer(),
    "GET /jobs/<str:name>/op/<str:vertex>/subtasks.json": viewer(),
    # versions
    "GET /jobs/<str:name>/versions/": viewer(),
    "POST /jobs/<str:name>/versions/upload/": operator(file="@flights.py"),
    "POST /jobs/<str:name>/versions/upload/corrected/": operator(),
    "GET /jobs/<str:name>/versions/diff/": viewer(old="{number}", new="{number}"),
    "GET /jobs/<str:name>/configuration/": viewer(),
    "POST /jobs/<str:name>/settings/": operator(parallelism="2"),
    "POST /jobs/<str:name>/rescale/": operator(parallelism="2"),
    "POST /jobs/<str:name>/rollback/": operator(),
    "POST /jobs/<str:name>/upkeep/": operator(wish="pause"),
    "POST /jobs/<str:name>/move/": operator(cluster="{cluster}"),
    "POST /jobs/<str:name>/team/": admin(team="{team}"),
    "POST /operations/<uuid:operation_id>/cancel/": operator(),
    # checkpoints, savepoints, schedules
    "GET /jobs/<str:name>/checkpoints/": viewer(),
    "GET /jobs/<str:name>/savepoints/": viewer(),
    "POST /jobs/<str:name>/savepoints/take/": operator(),
    "POST /jobs/<str:name>/savepoints/import/": operator(path="/nowhere"),
    "POST /jobs/<str:name>/savepoints/scan/": operator(),
    "POST /jobs/<str:name>/savepoints/rules/": operator(keep_last="3"),
    "GET /jobs/<str:name>/savepoints/rules/preview/": viewer(keep_last="3"),
    "GET /savepoints/": signed_in(),
    "GET /savepoints/<int:savepoint_id>/": viewer(),
    "GET /savepoints/<int:savepoint_id>/rows/": operator(operator="daily", state="panes"),
    "GET /savepoints/<int:savepoint_id>/diff/<int:other_id>/": operator(),
    "POST /savepoints/<int:savepoint_id>/verify/": operator(),
    "POST /savepoints/<int:savepoint_id>/label/": operator(label="mine"),
    "POST /savepoints/<int:savepoint_id>/pin/": operator(pinned="1"),
    "POST /savepoints/<int:savepoint_id>/expiry/": operator(),
    "POST /savepoints/<int:savepoint_id>/delete/": operator(how="mark", typed="{savepoint}"),
    "POST /schedules/<int:schedule_id>/pause/": operator(),
    "POST /strays/<int:stray_id>/clear/": operator(),
    "POST /jobs/<str:name>/schedules/": operator(every_minutes="5"),
    "POST /schedules/<int:schedule_id>/remove/": operator(),
    # replays
    "GET /jobs/<str:name>/replays/": viewer(),
    "GET /replays/": signed_in(),
    "GET /replays/new/": viewer(job="{job}"),
    "POST /replays/new/": operator(savepoint="{savepoint}", version="1", parallelism="1"),
    "GET /replays/<int:replay_id>/": viewer(),
    "GET /replays/<int:replay_id>/clone/": operator(),
    "POST /replays/<int:replay_id>/abandon/": operator(typed="{replay_name}"),
    "POST /replays/<int:replay_id>/limit/": operator(rows_per_second="100"),
    "POST /replays/<int:replay_id>/pause/": operator(paused="1"),
    "POST /replays/<int:replay_id>/tune/": operator(level_for_s="5", back_days="7"),
    "POST /replays/<int:replay_id>/tolerance/": operator(
        output="daily", column="n", how="absolute", value="1"
    ),
    "POST /replays/<int:replay_id>/accept/": operator(difference="{difference}"),
    "POST /replays/<int:replay_id>/promote/": operator(typed="{replay_name}"),
    "POST /replays/<int:replay_id>/rollback/": operator(typed="{replay_name}"),
    "GET /jump.json": signed_in(),
    # alerts
    "GET /alerts/": signed_in(),
    "GET /alerts/preview/": viewer(
        team="{team}", measure="restarts", threshold="3", severity="warn"
    ),
    "POST /alerts/rules/": operator(
        team="{team}", measure="restarts", threshold="3", severity="warn"
    ),
    "POST /alerts/rules/<int:rule_id>/pause/": operator(),
    "POST /alerts/rules/<int:rule_id>/remove/": operator(),
    "POST /alerts/<int:alert_id>/acknowledge/": operator(),
    "POST /alerts/<int:alert_id>/mute/": operator(minutes="5", reason="known"),
    "POST /alerts/routes/": admin(team="{team}", kind="email", target="ops@example.org"),
    "POST /alerts/routes/<int:route_id>/remove/": admin(),
    # clusters
    "GET /cluster/": signed_in(),
    "POST /cluster/register/": platform_admin(name="lab-2", url="http://127.0.0.1:9"),
    "POST /cluster/<str:cluster>/change/": platform_admin(url="http://127.0.0.1:9"),
    "POST /cluster/<str:cluster>/check/": platform_admin(),
    "POST /cluster/<str:cluster>/remove/": platform_admin(typed="{cluster}"),
    "POST /cluster/<str:cluster>/start-tm/": platform_admin(),
    "POST /cluster/<str:cluster>/stop-tm/": platform_admin(manager="tm-1"),
    # people, teams, tokens, audit
    "GET /teams/": signed_in(),
    "POST /teams/add/": platform_admin(name="another"),
    "GET /teams/<str:team>/": viewer(),
    "POST /teams/<str:team>/members/": admin(user="mallory", role="viewer"),
    "POST /teams/<str:team>/members/<str:user>/remove/": admin(),
    "GET /users/": platform_admin(),
    "POST /users/add/": platform_admin(name="zoe"),
    "POST /users/<str:user>/": platform_admin(to="disable"),
    "POST /users/<str:user>/login/": platform_admin(),
    "GET /tokens/": signed_in(),
    "POST /tokens/issue/": signed_in(name="ci", scope="read", days="30"),
    "POST /tokens/<int:token_id>/revoke/": owner(typed="ci"),
    "GET /settings/": platform_admin(),
    "GET /audit/": signed_in(),
    "GET /audit/download.csv": signed_in(),
    # the API, and the page that describes it
    "GET /docs/api/": signed_in(),
    "GET /api/v1/": everyone(),
    "GET /api/v1/openapi.json": everyone(),
    "GET /api/v1/me": signed_in(),
    "GET /api/v1/jobs": signed_in(),
    "POST /api/v1/jobs": operator(name="other", team="{team}", file="@other.py"),
    "GET /api/v1/jobs/<name>": viewer(),
    "PATCH /api/v1/jobs/<name>/settings": operator(parallelism="2"),
    "POST /api/v1/jobs/<name>/start": operator(),
    "POST /api/v1/jobs/<name>/upgrade": operator(version="1"),
    "POST /api/v1/jobs/<name>/rollback": operator(),
    "POST /api/v1/jobs/<name>/rescale": operator(parallelism="2"),
    "POST /api/v1/jobs/<name>/stop": operator(),
    "POST /api/v1/jobs/<name>/cancel": operator(),
    "POST /api/v1/jobs/<name>/control": operator(line="a 2"),
    "GET /api/v1/jobs/<name>/versions": viewer(),
    "POST /api/v1/jobs/<name>/versions": operator(file="@flights.py"),
    "GET /api/v1/jobs/<name>/versions/<number>": viewer(),
    "GET /api/v1/jobs/<name>/runs": viewer(),
    "GET /api/v1/jobs/<name>/checkpoints": viewer(),
    "GET /api/v1/jobs/<name>/checkpoints/<run>/<checkpoint>": viewer(),
    "GET /api/v1/jobs/<name>/operators": viewer(),
    "GET /api/v1/jobs/<name>/operators/<vertex>": viewer(),
    "GET /api/v1/jobs/<name>/configuration": viewer(),
    "GET /api/v1/jobs/<name>/recovery-point": viewer(),
    "GET /api/v1/jobs/<name>/history": viewer(),
    "GET /api/v1/jobs/<name>/output": viewer(),
    "GET /api/v1/jobs/<name>/outputs": viewer(),
    "GET /api/v1/jobs/<name>/statistics": viewer(),
    "GET /api/v1/jobs/<name>/metrics": viewer(),
    "GET /api/v1/jobs/<name>/metrics/names": viewer(),
    "GET /api/v1/jobs/<name>/failures": viewer(),
    "GET /api/v1/jobs/<name>/versions/<number>/diff/<other>": viewer(),
    "GET /api/v1/changes": signed_in(),
    "GET /api/v1/search": signed_in(),
    "GET /api/v1/platform": platform_admin(),
    "GET /api/v1/operations": viewer(job="{job}"),
    "GET /api/v1/operations/<operation_id>": viewer(),
    "POST /api/v1/operations/<operation_id>/cancel": operator(),
    "GET /api/v1/jobs/<name>/savepoints": viewer(),
    "POST /api/v1/jobs/<name>/savepoints": operator(label="x"),
    "POST /api/v1/jobs/<name>/savepoints/import": operator(path="/nowhere"),
    "GET /api/v1/jobs/<name>/savepoints/scan": viewer(),
    "POST /api/v1/jobs/<name>/savepoints/scan": operator(),
    "GET /api/v1/jobs/<name>/strays": viewer(),
    "DELETE /api/v1/strays/<stray_id>": operator(),
    "GET /api/v1/savepoints": signed_in(),
    "GET /api/v1/savepoints/<savepoint_id>": viewer(),
    "GET /api/v1/savepoints/<savepoint_id>/rows": operator(operator="daily", state="panes"),
    "GET /api/v1/savepoints/<savepoint_id>/diff/<other_id>": operator(),
    "PATCH /api/v1/savepoints/<savepoint_id>": operator(),
    "POST /api/v1/savepoints/<savepoint_id>/verify": operator(),
    "POST /api/v1/savepoints/<savepoint_id>/delete": operator(),
    "POST /api/v1/savepoints/<savepoint_id>/detach": operator(),
    "GET /api/v1/jobs/<name>/retention": viewer(),
    "PUT /api/v1/jobs/<name>/retention": operator(keep_last="3"),
    "GET /api/v1/jobs/<name>/retention/preview": viewer(keep_last="3"),
    "GET /api/v1/jobs/<name>/schedules": viewer(),
    "POST /api/v1/jobs/<name>/schedules": operator(every_minutes="5"),
    "PATCH /api/v1/schedules/<schedule_id>": operator(enabled="false"),
    "DELETE /api/v1/schedules/<schedule_id>": operator(),
    "GET /api/v1/replays": viewer(job="{job}"),
    "POST /api/v1/jobs/<name>/replays": operator(savepoint="{savepoint}", version="1"),
    "GET /api/v1/replays/<replay_id>": viewer(),
    "POST /api/v1/replays/<replay_id>/abandon": operator(),
    "POST /api/v1/replays/<replay_id>/clone": operator(),
    "GET /api/v1/jobs/<name>/replays/plan": operator(savepoint="{savepoint}", version="1"),
    "GET /api/v1/replays/<replay_id>/comparison": viewer(),
    "POST /api/v1/replays/<replay_id>/differences/<difference_id>/accept": operator(),
    "POST /api/v1/replays/<replay_id>/limit": operator(rows_per_second="100"),
    "POST /api/v1/replays/<replay_id>/tuning": operator(level_for_s="5"),
    "POST /api/v1/replays/<replay_id>/tolerance": operator(output="daily", column="n"),
    "POST /api/v1/replays/<replay_id>/pause": operator(paused="true"),
    "GET /api/v1/replays/<replay_id>/readiness": viewer(),
    "POST /api/v1/replays/<replay_id>/promote": operator(),
    "POST /api/v1/replays/<replay_id>/rollback": operator(),
    "POST /api/v1/jobs/<name>/move": operator(cluster="{cluster}"),
    "POST /api/v1/jobs/<name>/team": admin(team="{team}"),
    "POST /api/v1/jobs/<name>/upkeep": operator(wish="pause"),
    "GET /api/v1/alerts": signed_in(),
    "POST /api/v1/alerts/<alert_id>/acknowledge": operator(),
    "POST /api/v1/alerts/<alert_id>/mute": operator(minutes="5", reason="known"),
    "GET /api/v1/alert-rules": signed_in(),
    "POST /api/v1/alert-rules": operator(team="{team}", measure="restarts", threshold="3"),
    "GET /api/v1/alert-rules/preview": viewer(team="{team}", measure="restarts", threshold="3"),
    "PATCH /api/v1/alert-rules/<rule_id>": operator(enabled="false"),
    "DELETE /api/v1/alert-rules/<rule_id>": operator(),
    "GET /api/v1/alert-routes": signed_in(),
    "POST /api/v1/alert-routes": admin(team="{team}", kind="email", target="ops@example.org"),
    "DELETE /api/v1/alert-routes/<route_id>": admin(),
    "GET /api/v1/clusters": signed_in(),
    "POST /api/v1/clusters": platform_admin(name="lab-2", url="http://127.0.0.1:9"),
    "GET /api/v1/clusters/<cluster>": signed_in(),
    "PATCH /api/v1/clusters/<cluster>": platform_admin(url="http://127.0.0.1:9"),
    "DELETE /api/v1/clusters/<cluster>": platform_admin(),
    "POST /api/v1/clusters/<cluster>/check": platform_admin(),
    "GET /api/v1/clusters/<cluster>/task-managers": signed_in(),
    "POST /api/v1/clusters/<cluster>/task-managers": platform_admin(),
    "DELETE /api/v1/clusters/<cluster>/task-managers/<manager>": platform_admin(),
    "GET /api/v1/teams": signed_in(),
    "POST /api/v1/teams": platform_admin(name="another"),
    "PUT /api/v1/teams/<team>/members/<user>": admin(role="operator"),
    "DELETE /api/v1/teams/<team>/members/<user>": admin(),
    "GET /api/v1/users": platform_admin(),
    "POST /api/v1/users": platform_admin(name="zoe"),
    "PATCH /api/v1/users/<user>": platform_admin(active="false"),
    "POST /api/v1/users/<user>/login-link": platform_admin(),
    "GET /api/v1/tokens": signed_in(),
    "POST /api/v1/tokens": signed_in(name="ci", scope="read", days="30"),
    "DELETE /api/v1/tokens/<token_id>": owner(),
    "GET /api/v1/audit": signed_in(),
    "GET /api/v1/<path:rest>": nothing(),
    "POST /api/v1/<path:rest>": nothing(),
    "PUT /api/v1/<path:rest>": nothing(),
    "PATCH /api/v1/<path:rest>": nothing(),
    "DELETE /api/v1/<path:rest>": nothing(),
    # the series store
    "GET /api/v2/ping": everyone(),
    "POST /api/v2/write": token(),
    "GET /metrics": token(),
}

TOPICS: dict[Family, tuple[str, Rule]] = {
    Family.FLEET: ("fleet", signed_in()),
    Family.ALERTS: ("alerts", signed_in()),
    Family.JOB: ("job.{job_id}", viewer()),
    Family.JOB_OPS: ("job.{job_id}.ops", viewer()),
    Family.JOB_CHECKPOINTS: ("job.{job_id}.ckpt", viewer()),
    Family.JOB_EVENTS: ("job.{job_id}.events", viewer()),
    Family.OPERATION: ("op.{operation_id}", viewer()),
    Family.REPLAY: ("replay.{replay_id}", viewer()),
}
