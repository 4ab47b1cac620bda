PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: demo test check bench clean

demo: $(INSTALLED)  ## show what Reprieve does, on the embedded fakeapi
	$(BIN)/reprieve demo

test: $(INSTALLED)  ## run all tests
	$(BIN)/pytest -n auto

check: $(INSTALLED)  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(INSTALLED)  ## measure, and write the table to bench-results/
	$(BIN)/python -m tests.bench

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test,dev]'
	touch $@

clean:
	rm -rf .venv build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache bench-results
