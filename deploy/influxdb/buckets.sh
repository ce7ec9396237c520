#!/bin/sh
# Run once by the image of InfluxDB 2, from /docker-entrypoint-initdb.d, after it has set itself up:
# the bucket `engine` is there by then (DOCKER_INFLUXDB_INIT_BUCKET); these are the others.
set -eu
for bucket in outputs metrics platform; do
  influx bucket create --name "$bucket" --org "$DOCKER_INFLUXDB_INIT_ORG" \
    --token "$DOCKER_INFLUXDB_INIT_ADMIN_TOKEN"
done
