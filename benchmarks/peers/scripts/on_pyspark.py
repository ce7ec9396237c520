"""Spark Structured Streaming: its own windows and state (RocksDB), on one thread.

    Parquet files, two a micro-batch --> window by event time --> Parquet files

Counts   the second run of the query in one JVM: the first one warms it up.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from benchmarks.peers.answer import Order, order, say
from benchmarks.peers.totals import Totals, of_columns
from benchmarks.peers.work import BOUND, FAR, SIZE

PER_FILE = 250_000
STATE = "spark.sql.streaming.stateStore."
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
OPTIONS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "3g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "UTC",
    f"{STATE}providerClass": ROCKSDB,
    f"{STATE}rocksdb.changelogCheckpointing.enabled": "true",
}


def write(asked: Order, folder: Path) -> None:
    """Write the events, and one at the end that closes the windows."""
    folder.mkdir()
    cuts = [*range(0, asked.rows, PER_FILE), asked.rows]
    pieces: list[tuple[Any, ...]] = [asked.work.events(lo, hi) for lo, hi in pairwise(cuts)]
    pieces.append((np.array([0]), np.array([FAR]), np.array([0.0])))
    for number, (key, due, value) in enumerate(pieces):
        file = folder / f"{number:05}.parquet"
        times = pa.array(due).cast(pa.timestamp("ms", tz="UTC"))
        pq.write_table(pa.table({"key": key, "time": times, "value": value}), file)
        os.utime(file, (number, number))  # Spark reads the oldest first


def sums(events: DataFrame) -> DataFrame:
    window = fn.window("time", f"{SIZE} milliseconds")
    in_time = events.withWatermark("time", f"{BOUND} milliseconds")
    result = in_time.groupBy(window.alias("w"), "key").agg(
        fn.count("*").alias("n"), fn.sum("value").alias("sum")
    )
    return result.select("key", fn.unix_millis(fn.col("w.start")).alias("start"), "n", "sum")


def run(spark: SparkSession, asked: Order, name: str) -> Path:
    """Run the query on all events; gives the folder of its output."""
    source = spark.readStream.schema("key long, time timestamp, value double")
    events = source.option("maxFilesPerTrigger", 2).parquet(str(asked.folder / "events"))
    output = asked.folder / name
    writer = sums(events).writeStream.outputMode("append").format("parquet")
    writer = writer.option("checkpointLocation", str(asked.folder / f"{name}.checkpoints"))
    writer.option("path", str(output)).trigger(availableNow=True).start().awaitTermination()
    return output


def output(folder: Path) -> Totals:
    found = pa.concat_tables([pq.read_table(file) for file in folder.glob("*.parquet")])
    columns = (found[name].to_numpy() for name in ("key", "start", "n", "sum"))
    return of_columns(*columns)


def main() -> None:
    asked = order()
    write(asked, asked.folder / "events")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[1]")
    for name, value in OPTIONS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    shutil.rmtree(run(spark, asked, "cold"))
    start = time.perf_counter()
    folder = run(spark, asked, "warm")
    seconds = time.perf_counter() - start
    say(seconds, None, output(folder))
    spark.stop()


if __name__ == "__main__":
    main()
