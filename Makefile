# Two commands do everything on a fresh clone with Python and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
STUDY := multirun/copy_repeat

.PHONY: demo test check format lint types tests wheel clean

demo: $(VENV)/demo.stamp  ## install, train rope and roper with ten seeds each, write the report
	$(RUN) -m ablate.run -m attention=rope,roper 'seed=range(10)'
	$(RUN) -m analysis.report $(STUDY)
	@echo "The report: $(STUDY)/report/report.html"

test: $(VENV)/test.stamp  ## install with the development tools, run every check
	$(MAKE) check

check: lint types tests

format:
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

lint:
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .

types:
	$(VENV)/bin/mypy

tests:
	$(RUN) -m pytest -n auto --dist loadgroup

wheel: $(VENV)/test.stamp
	$(RUN) -m build --wheel

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo.stamp: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(RUN) -m pip install --quiet -c constraints.txt -e .
	@touch $@

$(VENV)/test.stamp: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(RUN) -m pip install --quiet -c constraints.txt -e '.[dev,peers]'
	@touch $@ $(VENV)/demo.stamp

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
