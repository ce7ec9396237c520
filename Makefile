# Every target sets up what it needs. `make` alone prints this list.
SHELL := /bin/bash
PYTHON_IN := .venv/bin/python
# As in workers: frames of a few rows gain nothing from threads, and processes share the cores.
ONE_THREAD := POLARS_MAX_THREADS=1
.DEFAULT_GOAL := help

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: ## make .venv with the pinned packages
	@scripts/setup

demo: setup ## the whole platform with two demo jobs; prints an address and a one-time login; Ctrl-C ends it
	@exec $(PYTHON_IN) manage.py up --demo

up: setup ## the whole platform without demo jobs
	@exec $(PYTHON_IN) manage.py up

test: check test-unit test-postgres test-integration test-flink test-browser ## everything that CI runs

check: setup bundle check-grafana ## format, lint, types, import rules, the bundle, and Grafana's dashboards
	@.venv/bin/ruff format --check .
	@.venv/bin/ruff check .
	@.venv/bin/mypy engine platform dashboard benchmarks
	@.venv/bin/lint-imports

test-unit: setup ## fast tests and doctests
	@$(ONE_THREAD) $(PYTHON_IN) -m pytest -q -n 2 --dist worksteal --doctest-modules -m "not integration and not browser and not flink and not timed" tests engine

test-integration: setup influxd ## tests with real processes
	@$(PYTHON_IN) -m pytest -q -n 2 --dist loadfile -m integration $$(grep -rlE "mark\.integration" tests --include="test_*.py")

test-flink: setup ## the control plane on a real Apache Flink
	@export FLINK_HOME="$$(scripts/flink)" && [ -n "$$FLINK_HOME" ] && $(PYTHON_IN) -m pytest -q -m flink tests/controlplane/integration tests/engine/rest

bundle: ## rebuild the dashboard's bundle and compare it with what is committed
	@scripts/frontend && cd dashboard/frontend && node build.mjs --check >/dev/null

test-postgres: setup ## what touches the database, again on a Postgres and a Redis of its own
	@$(ONE_THREAD) scripts/with-servers $(PYTHON_IN) -m pytest -q -n 2 --dist worksteal --reuse-db -m "not integration and not browser and not flink and not timed" tests/controlplane tests/dashboard

test-browser: setup ## the story in real Chromium
	@scripts/frontend && export CHROMIUM="$$(scripts/chromium)" && [ -n "$$CHROMIUM" ] && $(PYTHON_IN) -m pytest -q -m "browser and not timed" tests/browser

bench: setup ## rows/s and peak memory of windows, joins, functions, JSON lines and large snapshots; recovery time
	@$(PYTHON_IN) -m benchmarks
	@$(PYTHON_IN) -m benchmarks.recovery

bench-pages: setup ## how long pages take: of large jobs in real Chromium, of 500 jobs on the server
	@scripts/frontend && export CHROMIUM="$$(scripts/chromium)" && [ -n "$$CHROMIUM" ] && $(PYTHON_IN) -m pytest -q -s -m timed tests/browser tests/dashboard

bench-service: setup ## how fast REST answers with 50 jobs, and what 10,000 ended ones leave behind: make bench-service PARALLELISM=4
	@$(PYTHON_IN) -m benchmarks.service --parallelism $(or $(PARALLELISM),1)
	@$(PYTHON_IN) -m benchmarks.many_jobs

bench-collector: setup ## what watching 200 jobs every second costs: make bench-collector JOBS=500
	@PYTHONPATH=platform $(PYTHON_IN) -m benchmarks.collector --jobs $(or $(JOBS),200)

bench-series: setup ## the embedded series store: cost of writing, size of a week of a fleet, speed of charts
	@$(PYTHON_IN) -m benchmarks.series

bench-replay: setup ## months of readings replayed from a savepoint, also with workers killed: make bench-replay DAYS=90 KILLS=5
	@$(PYTHON_IN) -m benchmarks.replay --days $(or $(DAYS),90) --kills $(or $(KILLS),5)

grafana: setup ## write the dashboards of Grafana from where they are described
	@PYTHONPATH=platform $(PYTHON_IN) -m controlplane.metrics.grafana

check-grafana: ## check the dashboards by Grafana's types, and their queries by the Flux language server
	@scripts/frontend deploy/grafana/check && node deploy/grafana/check/check.mjs

influxd: ## build a real InfluxDB for the tests, with Go, into .cache/influxd
	@scripts/influxd

bench-peers: setup ## the same work on peers, beside ours: make bench-peers PEERS=csp,bytewax WORKS=tumbling SCALE=0.5
	@$(PYTHON_IN) -m benchmarks.peers --peers "$(PEERS)" --works "$(WORKS)" --scale $(or $(SCALE),1)

flat: setup ## memory of workers behind a slow sink: make flat MINUTES=10
	@$(PYTHON_IN) -m benchmarks.slow_sink --minutes $(or $(MINUTES),10)

sim: setup ## seeded whole-job simulation: make sim JOB=sums SEED=42 N=1000
	@$(ONE_THREAD) $(PYTHON_IN) -m engine.testing.histories --job $(or $(JOB),all) --seed $(or $(SEED),0) --histories $(or $(N),100)

golden: setup ## keep snapshots of the present format for ever, in tests/fixtures/snapshots
	@PYTHONPATH=tests $(PYTHON_IN) -m golden_snapshots

chaos: setup ## a real cluster hurt at random, again and again: make chaos SEEDS=0-99 MINUTES=30, or SEEDS=7
	@$(PYTHON_IN) -m engine.testing.chaos --seeds $(or $(SEEDS),0-999) --minutes $(or $(MINUTES),10)

explain: setup ## logical and physical plan of a job file: make explain JOB=examples/words.py
	@.venv/bin/headwater plan $(or $(JOB),examples/words.py)

format: setup ## format the code
	@.venv/bin/ruff format . && .venv/bin/ruff check --fix .

lock: setup ## pin the newest versions that pyproject.toml allows
	@.venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-emit-find-links --no-annotate --extra dev --custom-compile-command "make lock" pyproject.toml -o requirements.lock

.PHONY: help setup demo up test check bundle test-unit test-integration test-flink test-browser bench bench-pages bench-service bench-collector bench-series bench-replay grafana check-grafana influxd bench-peers flat sim chaos golden explain format lock test-postgres
