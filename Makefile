# Development tasks; `make` lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CASES ?= 300
BIOME := @biomejs/biome@2.6.8
TYPESCRIPT := typescript@5.9.3

.DEFAULT_GOAL := help
.PHONY: help install run dev test test-all coverage live fuzz bench bench-scale pages script translations lint types format lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  PORT=8001 and BIND=0.0.0.0 set where run and dev listen; .env can hold settings as well."

install: $(VENV)/run ## Install the requirements of the server into .venv

run: $(VENV)/run ## Install, migrate the database, and serve with gunicorn
	@$(BIN)/flask db upgrade
	@exec $(BIN)/python deploy/serve.py

dev: $(VENV)/run ## Serve with the reloader and the debugger, for development
	@$(BIN)/flask db upgrade
	@exec $(BIN)/python deploy/dev.py

test: $(VENV)/dev ## Run the tests that start no server and no browser
	@$(BIN)/pytest -q -n auto --dist worksteal --ignore tests/live

test-all: $(VENV)/dev ## Run all tests; the Postgres server in TEST_DATABASE_URL runs those of databases
	@$(BIN)/pytest -q -n auto --dist worksteal --hypothesis-profile many

coverage: $(VENV)/dev ## Report the lines that no test runs, without tests/live
	@$(BIN)/coverage run -m pytest -q --ignore tests/live --hypothesis-profile many
	@$(BIN)/coverage report --show-missing --skip-covered

live: $(VENV)/dev ## Run the tests with real servers (races, kills, nginx) in full size and print measurements
	@LIVE=full $(BIN)/pytest -q --figures tests/live

fuzz: $(VENV)/dev ## Test with generated input (CASES=300 requests for each operation) and print measurements
	@CASES=$(CASES) $(BIN)/pytest -q -n auto --figures --timeout 3600 --hypothesis-profile fuzz \
		-m fuzz

bench: $(VENV)/dev ## Benchmark against upper bounds and PocketBase; needs wrk, nginx and Postgres
	@$(BIN)/python -m bench

bench-scale: $(VENV)/dev ## Benchmark ten million posts; needs wrk, Postgres, 20 minutes and 20 GB
	@$(BIN)/python -m bench.scale

pages: $(VENV)/dev ## Check the pages with Lighthouse, axe-core, html-validate and vnu; needs npm, Chromium and Java
	@$(BIN)/python -m bench.pages

script: ## Check and test the script and the styles of the pages; needs npm
	@npx --yes $(BIOME) ci --config-path=.ci/biome.json posting/static tests/static
	@npx --yes --package=$(TYPESCRIPT) tsc --project .ci/tsconfig.json
	@node --test tests/static

translations: $(VENV)/dev ## Update the translations, and list the texts that are not translated
	@$(BIN)/python -m tests.helpers.translations

lint: $(VENV)/dev ## Check style and common mistakes
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/dev ## Check types
	@$(BIN)/mypy

format: $(VENV)/dev ## Format the code
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .

lock: $(VENV)/dev ## Update the locked versions in requirements*.txt
	@$(BIN)/uv pip compile $(LOCK) --extra postgres -o requirements.txt setup.cfg
	@$(BIN)/uv pip compile $(LOCK) --extra postgres --extra dev -c requirements.txt \
		-o requirements-dev.txt setup.cfg

LOCK := --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-annotate --custom-compile-command "make lock"

clean: ## Remove the virtual environment and the files of tools
	@rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .schemathesis build *.egg-info

$(VENV)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Posting needs Python 3.11 or newer; choose one with PYTHON=python3.x"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null \
		|| { echo "This Python cannot create virtual environments; on Debian: apt install python3-venv"; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/run: requirements.txt Makefile | $(VENV)/pip
	$(install)
	@touch $@

$(VENV)/dev: requirements-dev.txt Makefile | $(VENV)/pip
	$(install)
	@touch $@ $(VENV)/run

# Before version 1.0.0, a script of our own replaced Flask's: install Flask again where it is found.
define install
	@echo "Installing into $(VENV) ..."
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r $< \
		$$(grep -qs -e '-m posting' $(BIN)/flask && echo --force-reinstall)
endef
