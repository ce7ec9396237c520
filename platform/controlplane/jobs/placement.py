"""Where a job file can run: a jar is a program for Apache Flink, all others for Headwater.

    .jar               Apache Flink
    .py .zip .whl      Headwater

Errors   Refused (400, 409) with one sentence that names the file and the cluster.
"""

from __future__ import annotations

from controlplane.access.errors import conflict, invalid
from controlplane.backends.models import Cluster

JAR = ".jar"


def engine_of(filename: str) -> Cluster.Kind:
    """The kind of engine that runs such files.

    >>> engine_of("sums.jar").label, engine_of("sums.py").label
    ('Apache Flink', 'Headwater')
    """
    return Cluster.Kind.FLINK if filename.endswith(JAR) else Cluster.Kind.HEADWATER


def check_place(filename: str, cluster: Cluster) -> None:
    """Refuse a cluster that cannot run the file."""
    if cluster.kind != (wanted := engine_of(filename)):
        msg = (
            f"{filename} cannot run on {cluster.name}: it is a program for {wanted.label}, and "
            f"{cluster.name} is {cluster.get_kind_display()}; choose a cluster of {wanted.label}"
        )
        raise invalid(msg, "cluster")


def place_for(filename: str) -> Cluster:
    """The oldest cluster that can run the file."""
    wanted = engine_of(filename)
    cluster = Cluster.present.filter(kind=wanted).order_by("pk").first()
    if cluster is None:
        msg = f"{filename} cannot run yet: no cluster of {wanted.label} is registered; register one"
        raise conflict(msg)
    return cluster
