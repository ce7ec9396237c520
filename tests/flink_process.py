"""A real Apache Flink: a cluster on loopback, a job for it, and its command line.

with flink_cluster(home, folder) as url: …
compiled(home, SUMS, folder) ─▶ a jar
command_line(home, url, folder)("list", "-a") ─▶ what it prints
"""

from __future__ import annotations

import os
import subprocess
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from free_ports import free_ports

SUMS = Path(__file__).parent / "fixtures/flink_job/Sums.java"
START_S = 300.0

LOGGING = """\
rootLogger.level = INFO
rootLogger.appenderRef.out.ref = out
appender.out.name = out
appender.out.type = CONSOLE
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c %x - %m%n
"""

MAINS = (
    "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint",
    "org.apache.flink.runtime.taskexecutor.TaskManagerRunner",
)

OPENED = ("java.lang", "java.net", "java.io", "java.nio", "java.text", "java.time", "java.util")
"""Packages that Flink looks into by reflection; as its own configuration opens them."""


def compiled(home: Path, source: Path, folder: Path) -> Path:
    """The jar of a job that is one class."""
    classes = folder / "classes"
    command = ["javac", "-nowarn", "-cp", f"{home}/lib/*", "-d", classes, source]
    subprocess.run(command, check=True)
    jar = folder / f"{source.stem.lower()}.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", f"Main-Class: {source.stem}\n")
        for one in sorted(classes.glob("*.class")):
            archive.write(one, one.name)
    return jar


@contextmanager
def flink_cluster(home: Path, folder: Path, slots: int = 2) -> Iterator[str]:
    """Its REST address, while it runs; checkpoints and logs are kept in `folder`."""
    port, rpc_port = free_ports(2)
    url = f"http://127.0.0.1:{port}"
    configuration = folder / "conf"
    configuration.mkdir()
    (configuration / "log4j2.properties").write_text(LOGGING)
    (configuration / "config.yaml").write_text(_configuration(folder, port, rpc_port, slots))
    with ExitStack() as ends:
        processes = [ends.enter_context(_running(home, main, folder)) for main in MAINS]
        _await_slots(url, slots, processes)
        yield url


def _configuration(folder: Path, port: int, rpc_port: int, slots: int) -> str:
    values = {
        "jobmanager.rpc.address": "127.0.0.1",
        "jobmanager.rpc.port": rpc_port,
        "jobmanager.bind-host": "127.0.0.1",
        "taskmanager.bind-host": "127.0.0.1",
        "taskmanager.host": "127.0.0.1",
        "taskmanager.numberOfTaskSlots": slots,
        "taskmanager.cpu.cores": slots,
        "taskmanager.memory.framework.heap.size": "128m",
        "taskmanager.memory.framework.off-heap.size": "128m",
        "taskmanager.memory.task.heap.size": "256m",
        "taskmanager.memory.task.off-heap.size": "0m",
        "taskmanager.memory.managed.size": "64m",
        "taskmanager.memory.network.min": "64m",
        "taskmanager.memory.network.max": "64m",
        "taskmanager.memory.jvm-metaspace.size": "256m",
        "taskmanager.memory.jvm-overhead.min": "64m",
        "taskmanager.memory.jvm-overhead.max": "64m",
        "rest.address": "127.0.0.1",
        "rest.bind-address": "127.0.0.1",
        "rest.port": port,
        "execution.checkpointing.dir": (folder / "checkpoints").as_uri(),
        "web.upload.dir": folder / "uploads",
        "io.tmp.dirs": folder / "tmp",
    }
    return "".join(f"{name}: {value}\n" for name, value in values.items())


def command_line(home: Path, url: str, folder: Path) -> Callable[..., str]:
    """Flink's own client, of the engine at `url`: gives what it prints, whether it fails or not."""
    address = urlsplit(url)
    (folder / "log4j2.properties").write_text(LOGGING)
    (folder / "config.yaml").write_text(
        f"rest.address: {address.hostname}\nrest.port: {address.port}\n"
    )
    command = [*_java(home, folder), "org.apache.flink.client.cli.CliFrontend"]
    environment = os.environ | {"FLINK_CONF_DIR": str(folder)}

    def run(*words: str) -> str:
        ended = subprocess.run([*command, *words], env=environment, capture_output=True, text=True)
        return ended.stdout + ended.stderr

    return run


def _java(home: Path, configuration: Path) -> list[str]:
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    logging = f"-Dlog4j.configurationFile={configuration}/log4j2.properties"
    # What runs for a minute gains nothing from the second compiler.
    quick = ["-Xmx512m", "-XX:TieredStopAtLevel=1"]
    return ["java", *quick, *opened, logging, "-cp", f"{home}/lib/*"]


@contextmanager
def _running(home: Path, main: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [*_java(home, folder / "conf"), main]
    with (folder / f"{main.rpartition('.')[2]}.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--configDir", str(folder / "conf")], stdout=log, stderr=log
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _await_slots(url: str, slots: int, processes: Iterable[subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + START_S
    while _slots(url) != slots:
        ended = [process.returncode for process in processes if process.poll() is not None]
        assert not ended, f"Flink ended with {ended}; see its logs in the test's folder"
        assert time.monotonic() < deadline, f"Flink did not start within {START_S:g} s"
        time.sleep(0.2)


def _slots(url: str) -> int:
    try:
        return int(httpx.get(f"{url}/overview").json()["slots-available"])
    except (httpx.TransportError, ValueError, KeyError):
        return -1
