# The front door. `make help` lists the targets; every tool runs from .venv, which `make setup` makes from nothing.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

BIN := .venv/bin
RELEASE_TOOLS := .venv/release
SBOM := dist/pulsar-rebalance-advisor.cdx.json
INSTALLED := .venv/.installed
DEMO_ARCHIVE := tests/data/recorded/modular-4.0.8.tar
DEMO_ARCHIVES_5 := $(addprefix tests/data/recorded/scalable-5.0.0-M1-,before.tar after.tar)
DEMO_SERIES := tests/data/recorded/history-4.0.8.tar.xz
DEMO_HISTORY := data/demo-history
LOCK := $(BIN)/uv pip compile -q $(if $(UPGRADE),--upgrade) --universal --python-version 3.11 --generate-hashes --no-emit-index-url
PAGES := $(filter-out docs/checks.md docs/lint.md docs/tables.md,$(wildcard *.md docs/*.md docs/*/*.md))
HARNESS := PYTHONPATH=tests $(BIN)/python -m harness

.PHONY: help setup demo demo-history test test-slow test-full fuzz docs docs-site lint format lock wheel sbom audit bench bench-simulate bench-grid bench-engine bench-capture bench-tables bench-checks bench-ledger bench-pages bench-scheduler bench-run up pin secrets spark-server cluster-up cluster-down cluster-load parity record-demo record-decisions record-permissions replay-decisions simulate-decisions clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  \033[1m%-18s\033[0m %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: $(INSTALLED) ## Make .venv from the lock files (checks Python and Java first)
	@:

$(INSTALLED): requirements.txt requirements-dev.txt pyproject.toml
	@python=; \
	for candidate in $${PYTHON:-python3 python3.12 python3.11 python3.13}; do \
	  if "$$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then \
	    python=$$candidate; break; \
	  fi; \
	done; \
	[ -n "$$python" ] || { echo "setup: no Python 3.11, 3.12 or 3.13 on PATH: install one, or name it: make setup PYTHON=/path/to/python3.12" >&2; exit 1; }; \
	java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; \
	major=$$("$$java" -version 2>&1 | sed -nE 's/.* version "([0-9]+).*/\1/p' | head -n 1) || true; \
	[ "$${major:-0}" -ge 17 ] || { echo "setup: Spark needs Java 17 or newer, '$$java' is $${major:-missing}: install a JDK 17 or set JAVA_HOME" >&2; exit 1; }; \
	"$$python" -c 'import ensurepip' 2>/dev/null || { echo "setup: $$python cannot make virtual environments: install its venv module (Debian: python3-venv)" >&2; exit 1; }; \
	echo "setup: 1 of 4, an environment in .venv ($$("$$python" --version), Java $$major)"; \
	$(BIN)/python -m pip --version >/dev/null 2>&1 || "$$python" -m venv --clear .venv; \
	echo "setup: 2 of 4, uv, from the locked list"; \
	awk '/^uv==/ {found = 1} found {print} found && !/\\$$/ {exit}' requirements-dev.txt >.venv/uv.txt; \
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r .venv/uv.txt; \
	index=$${UV_DEFAULT_INDEX:-$${PIP_INDEX_URL:-$$($(BIN)/python -m pip config get global.index-url 2>/dev/null || true)}}; \
	[ -z "$$index" ] || export UV_DEFAULT_INDEX="$$index"; \
	echo "setup: 3 of 4, $$(cat requirements.txt requirements-dev.txt | grep -c '^[a-z0-9].*==') locked packages: half a minute, or some minutes if they have to be downloaded first"; \
	began=$$SECONDS; \
	install=($(BIN)/uv pip install -q --python $(BIN)/python); \
	"$${install[@]}" --compile-bytecode --require-hashes -r requirements.txt -r requirements-dev.txt; \
	took=$$((SECONDS - began)); \
	"$${install[@]}" --no-deps --no-build-isolation -e .; \
	$(BIN)/python -m compileall -q dags jobs plugins; \
	echo "setup: 4 of 4, an archive of the classes that Spark loads, so that every run starts quicker"; \
	$(BIN)/python jobs/archive_classes.py $(DEMO_ARCHIVE) >/dev/null 2>&1 || echo "setup: no archive of Java's classes: runs start slower"; \
	touch $@; \
	echo "setup: done in $$SECONDS s, $$took s of them for the packages"

demo: setup ## Recommend on a recorded cluster: capture to report, no cluster needed (RELEASE=5: scalable topics)
ifeq ($(RELEASE),5)
	@for archive in $(DEMO_ARCHIVES_5); do $(BIN)/pulsar-advisor run --root data/demo-5 --cluster demo \
	  --from-archive $$archive --shedder all --placement all --splits || exit; done
else
	@$(BIN)/pulsar-advisor run --root data/demo --cluster demo --from-archive $(DEMO_ARCHIVE) \
	  --shedder all --placement all --splits
endif

demo-history: setup ## Fold recorded snapshots of three clusters, and show their trend, what moved, and all on one page
	@$(BIN)/python -W ignore -m tarfile -e $(DEMO_SERIES) $(DEMO_HISTORY)
	@show() { printf '\n$$ pulsar-advisor %s\n' "$$*"; $(BIN)/pulsar-advisor "$$@"; }; \
	for cluster in avg-quiet threshold-crowded uniform-crowded; do \
	  show history fold --all --root $(DEMO_HISTORY) --cluster $$cluster; \
	done; \
	show trend --root $(DEMO_HISTORY) --cluster avg-quiet; \
	show diff 20261123T024415Z latest --root $(DEMO_HISTORY) --cluster avg-quiet; \
	show index --root $(DEMO_HISTORY) --cluster avg-quiet

test: setup ## Run the tests, sampled: in minutes on two quiet cores
	@$(BIN)/python tests/run_levels.py

test-slow: setup ## Run the slower tests that CI runs after those of make test
	@$(BIN)/python tests/run_levels.py --slow

test-full: setup ## Run every test of every level, and fuzz for a minute
	@$(BIN)/python tests/run_levels.py --full
	@$(MAKE) fuzz

fuzz: setup ## Break every kind of foreign document for a while (FUZZ_SECONDS=60)
	@PYTHONPATH=tests $(BIN)/python -m fuzz --seconds $(or $(FUZZ_SECONDS),60)

parity: setup ## Compare every strategy with Pulsar's own Java classes
	@$(BIN)/python tests/run_levels.py --full parity

docs: setup ## Write the pages and tables of docs/ that are made from the code
	@$(BIN)/python docs/generate.py

docs-site: setup ## Build the documentation as a site in build/site; a broken link is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict  # not --quiet, which silences the warnings that --strict counts

lint: setup ## Check style, types, the dependency rule, YAML, Markdown, spelling, prose, Dockerfiles and links
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/yamllint --strict .
	$(BIN)/python docs/generate.py --check
	$(BIN)/mdformat --check $(PAGES)
	$(BIN)/codespell
	$(BIN)/proselint check $(PAGES)
	$(BIN)/blocklint $(PAGES) docs/checks.md docs/lint.md docs/tables.md
	$(BIN)/hadolint Dockerfile tests/stack/*/Dockerfile
	@$(MAKE) docs-site

format: setup ## Format code and Markdown, and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/mdformat $(PAGES)

lock: setup ## Resolve the requirements*.in files again into hashed lock files
	$(LOCK) requirements.in -o requirements.txt
	$(LOCK) requirements-build.in -o requirements-build.txt
	$(LOCK) requirements-dev.in -o requirements-dev.txt
	$(LOCK) requirements-executor.in -o requirements-executor.txt
	$(LOCK) requirements-image.in -o requirements-image.txt
	$(LOCK) requirements-release.in -o requirements-release.txt

$(RELEASE_TOOLS)/.installed: requirements-release.txt $(INSTALLED)
	@$(BIN)/uv venv -q --clear $(RELEASE_TOOLS)
	@$(BIN)/uv pip install -q --python $(RELEASE_TOOLS)/bin/python --require-hashes -r requirements-release.txt
	@touch $@

wheel: setup ## Build the wheel in dist/
	@rm -rf build/lib  # whose files setuptools would pack, too, such as a migration of another branch
	@$(BIN)/python -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w dist .

sbom: $(RELEASE_TOOLS)/.installed ## Write the bill of materials of a release, the locked packages with their hashes (CycloneDX), to dist/
	@mkdir -p $(dir $(SBOM))
	@$(RELEASE_TOOLS)/bin/python -W ignore $(RELEASE_TOOLS)/bin/cyclonedx-py requirements --pyproject pyproject.toml --mc-type library \
	  --output-reproducible --output-file $(SBOM) requirements.txt
	@echo "sbom: $(SBOM)"

audit: $(RELEASE_TOOLS)/.installed ## Look for known vulnerabilities of every locked package; fails where PyPI's advisories can't be had
	@for lock in requirements.txt requirements-image.txt requirements-build.txt requirements-dev.txt requirements-release.txt; do \
	  echo "audit: $$lock"; \
	  $(RELEASE_TOOLS)/bin/pip-audit --strict --disable-pip --require-hashes --progress-spinner off -r $$lock \
	    || { echo "audit: $$lock has a known vulnerability, or PyPI's advisories can't be had from here: see above" >&2; exit 1; }; \
	done

bench: setup ## Measure the engine: preparation, decision, memory; prints a table
	@$(BIN)/python bench/bench_engine.py

bench-simulate: setup ## Time simulations of ten cycles, every shedder with every placement strategy
	@PYTHONPATH=tests $(BIN)/python bench/bench_simulate.py

bench-grid: setup ## Measure `simulate`: all strategies, and a grid of a thousand what-ifs on two kinds of Spark cluster
	@PYTHONPATH=tests $(BIN)/python bench/bench_grid.py

bench-ledger: setup ## Measure `audit` and `plans` on a ledger of a million events and of 10,000 open plans
	@PYTHONPATH=tests $(BIN)/python bench/bench_ledger.py

bench-engine: setup ## Time the engine beside Pulsar's own Java classes
	@$(BIN)/python bench/engine_java.py

bench-run: setup ## Measure what an operator waits for (SIZES="demo small medium large growth"), and where the time goes
	@PYTHONPATH=tests $(BIN)/python bench/bench_run.py $(SIZES)

bench-capture: setup ## Measure a capture against a made-up cluster: time, processors, memory
	@PYTHONPATH=tests $(BIN)/python bench/bench_capture.py

bench-tables: setup ## Measure normalize at a million topics and at ten million
	@PYTHONPATH=tests $(BIN)/python bench/bench_tables.py

bench-checks: setup ## Time the checks on 100,000 bundles and a million topics
	@$(BIN)/python bench/bench_checks.py

bench-scheduler: setup ## Simulate Airflow's scheduler with 500 clusters (CLUSTERS=, QUARTERS= of an hour): does an operator's run wait?
	@PYTHONPATH=tests $(BIN)/python bench/bench_scheduler.py $(or $(CLUSTERS),500) $(or $(QUARTERS),96)

bench-pages: setup ## Measure the Airflow pages: 100 clusters of 3,000 snapshots and 1,000 plans, 16 viewers
	@PYTHONPATH=tests $(BIN)/python bench/bench_pages.py $(SIZE)

up: setup ## Start Airflow on loopback with the connections of the local cluster
	@PYTHONPATH=tests $(BIN)/python -m harness.standalone

pin: ## Pull the images of docker-compose.yaml and write their digests into .env, which Compose reads
	@touch .env; for variable in BASE_IMAGE POSTGRES_IMAGE PULSAR_IMAGE; do \
	  tag=$$(sed -n "s/^$$variable=//p" .env.example) && docker pull --quiet "$$tag" >/dev/null \
	    && digest=$$(docker image inspect --format '{{index .RepoDigests 0}}' "$$tag") \
	    && sed -i "/^$$variable=/d" .env && echo "$$variable=$$tag@$${digest#*@}" | tee -a .env || exit 1; \
	done

secrets: ## Make the secrets of docker-compose.yaml that are missing, in secrets/
	@mkdir -p secrets && chmod 700 secrets && cd secrets && umask 022; \
	hex() { head -c "$$1" /dev/urandom | od -An -v -tx1 | tr -d ' \n'; }; \
	missing() { [ ! -s "$$1" ]; }; \
	for name in airflow_admin_password airflow_operator_password; do [ -e $$name ] || hex 12 >$$name; done; \
	for name in airflow_api_secret_key airflow_jwt_secret; do ! missing $$name || hex 64 >$$name; done; \
	! missing airflow_fernet_key || head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '\n' >airflow_fernet_key; \
	for name in airflow_database ledger_database ledger_owner database_admin; do ! missing $${name}_password || hex 24 >$${name}_password; done; \
	! missing spark_secret || hex 32 >spark_secret; \
	! missing airflow_database_url || printf 'postgresql+psycopg2://airflow:%s@airflow-database/airflow' "$$(cat airflow_database_password)" >airflow_database_url; \
	! missing ledger_owner_url || printf 'postgresql+psycopg2://ledger_owner:%s@ledger-database/ledger' "$$(cat ledger_owner_password)" >ledger_owner_url; \
	! missing ledger_url || printf 'postgresql+psycopg2://ledger:%s@ledger-database/ledger' "$$(cat ledger_database_password)" >ledger_url; \
	! missing airflow_tls_key || { openssl genrsa -out airflow_tls_key 2048; rm -f airflow_tls_certificate; }; \
	! missing airflow_tls_certificate || openssl req -x509 -key airflow_tls_key -days 365 -subj /CN=localhost \
	  -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -out airflow_tls_certificate; \
	chmod 644 ./*; \
	echo "secrets: passwords of the users admin and operator are in secrets/airflow_admin_password and secrets/airflow_operator_password"

spark-server: setup ## Keep Spark warm on loopback, so that runs with `--remote sc://127.0.0.1:15002` take seconds
	@$(BIN)/python jobs/connect_server.py

cluster-up: setup ## Start a real Pulsar on loopback (RELEASE=4.0.8 MANAGER=modular BROKERS=3 AUTH=token)
	@$(HARNESS) up $(if $(RELEASE),--release $(RELEASE)) $(if $(MANAGER),--manager $(MANAGER)) \
	  $(if $(BROKERS),--brokers $(BROKERS)) $(if $(AUTH),--auth $(AUTH))

cluster-down: setup ## Stop that cluster
	@$(HARNESS) down

cluster-load: setup ## Put a skewed, seeded load on it
	@$(HARNESS) load

record-demo: setup ## Record the capture that `make demo` shows again, from a real cluster
	@$(HARNESS) record $(DEMO_ARCHIVE)

record-decisions: setup ## Record what live brokers decide by themselves (NAMES="…"; all: two and a half hours)
	@$(HARNESS) record-decisions $(NAMES)

record-permissions: setup ## Record which role may make which call, by Pulsar release (5 clusters of one broker)
	@$(HARNESS) record-permissions

replay-decisions: setup ## Predict the recorded decisions, and print a table of what was right
	@PYTHONPATH=tests $(BIN)/python -m decisions.replay $(NAMES)

simulate-decisions: setup ## Simulate from every recorded decision on, and print a table of what was right
	@PYTHONPATH=tests $(BIN)/python -m decisions.simulated $(NAMES)

clean: ## Remove what the tools left behind; keeps .venv and data/
	rm -rf build dist *.egg-info spark-warehouse metastore_db derby.log \
	  .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
