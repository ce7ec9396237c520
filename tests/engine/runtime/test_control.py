"""Lines between the processes of a cluster."""

import pytest

from engine.errors import InternalError
from engine.runtime import control

MESSAGES = [
    control.TaskManagerHello("tm-1", 7, 4, "host"),
    control.Heartbeat(
        control.ProcessUse(7, 1_000, 0.5), {"attempt/0": control.ProcessUse(8, 2_000, 99.0)}
    ),
    control.StartWorker("j", "a", 0, "/g", "/c", 16_384, {"v": 2}, "/l"),
    control.WorkerStarted("a", 0, 9),
    control.WorkerExited("a", 0, 9, -9),
    control.KillWorkers("a"),
    control.WorkerHello("a", 1, 9),
    control.Prepare({"v/0": {"folder": "/s", "key_groups": [0, 64], "operators": []}}),
    control.WorkerReady(),
    control.Run(),
    control.Trigger(7, "savepoint", "stop", 1, "/s/ü", None),
    control.Acknowledged(7, {"operators": []}),
    control.Declined(7, "v", 0, "no room\nleft"),
    control.Completed(7),
    control.Aborted(7),
    control.ReadLimit("v", 2.5, 3),
    control.LookUp(1, "v", 0, "daily", "sums", 7, {"k": "ü=1"}),
    control.Found(1, {"columns": [], "rows": [], "truncated": False}, None),
    control.EndOfInputReached("v", 0),
    control.TaskFinished("v", 0),
    control.Metrics({"v/0": {"numRecordsIn": 3}}, {"v/0": {"s": {"p99": 2}}}, {"v/0": {"17": [1]}}),
    control.Failed("KeyError", "internal", "'x'", "Traceback…", "v", 0, "daily"),
    control.Stop(),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_is_one_line_and_is_read_as_it_was_written(message):
    line = control.to_line(message)
    assert line.count(b"\n") == 1
    assert control.from_line(line) == message


@pytest.mark.parametrize(
    "line", [b'{"type":"Nonsense"}', b'{"type":"Completed"}', b'{"checkpoint_id":7}']
)
def test_what_is_no_message_is_refused(line):
    with pytest.raises(InternalError, match="control message is not understood"):
        control.from_line(line)
