# Two commands do everything on a fresh machine: `make demo` and `make test`. `make help` lists the rest.
PYTHON ?= python3
JOBS ?= 2
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help demo test lint types layers generate generated page check bench clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

demo: .venv/installed ## install into .venv and report on a bundled pair of H200 traces
	$(BIN)/gapless demo

test: .venv/tested ## install what tests need and run the whole suite
	$(BIN)/pytest -n $(JOBS)

lint: .venv/tested ## style: ruff's lint and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: .venv/tested ## types: mypy, strict, on src
	$(BIN)/mypy

layers: .venv/tested ## import directions between the layers
	$(BIN)/lint-imports

generated: .venv/tested ## completion files and generated documentation are up to date
	$(BIN)/python tools/generate.py --check

generate: .venv/tested ## write completion files and generated documentation
	$(BIN)/python tools/generate.py

page: ## the report page: types, tests, and that the committed bundle is what its source gives
	test -d web/node_modules || npm --prefix web ci --no-audit --no-fund
	npm --prefix web run check
	npm --prefix web test

check: lint types layers generated page test ## everything that continuous integration runs

bench: .venv/tested ## speed and memory on large traces, as ratios (minutes)
	$(BIN)/pip install --quiet -e ".[bench]"
	$(BIN)/python benchmarks/report_speed.py

clean: ## remove .venv and caches
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

.venv/installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet -e .
	touch $@

.venv/tested: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet -e ".[test]"
	touch $@ .venv/installed
