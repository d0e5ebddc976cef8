# Everything happens in .venv, made from PYTHON. `make test` is what CI calls.
PYTHON ?= python3
VENV ?= .venv
RUN := $(VENV)/bin/python
MAXTEXT_PYTHON ?= python3.12
# Further options for pytest.
PYTEST ?=

.PHONY: help setup test lint types unit e2e demo demo-gpt test-jax test-maxtext test-ray bench torture torture-train protos clean

help:
	@echo "make setup      install Everstep with everything for development into $(VENV)"
	@echo "make demo       train on three slices, of which two are killed, and lose no step"
	@echo "make demo-gpt   train a small GPT on two slices, in plain JAX"
	@echo "make test       lint, types, unit and end-to-end tests"
	@echo "make test-jax   JAX's own tests, on Everstep beside plain CPU JAX"
	@echo "make test-maxtext  MaxText on Everstep, with workers that die (MAXTEXT_PYTHON=python3.12 or newer)"
	@echo "make test-ray   failures on a Ray cluster of several simulated nodes"
	@echo "make bench      benchmarks, each with a table and a result file"
	@echo "make torture    kill workers at random, 200 times, while a program trains"
	@echo "make torture-train  kill workers and the trainer at random, 200 times, and check its history"
	@echo "make protos     regenerate the protobuf code"
	@echo "PYTHON=python3.12 VENV=.venv312 make test   with another interpreter"

setup: $(VENV)/ready

$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --upgrade pip
	$(RUN) -m pip install --quiet --editable '.[dev]'
	touch $@

test: lint types unit e2e

lint: setup
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

types: setup
	$(RUN) -m mypy

unit: setup
	$(RUN) -m pytest -q $(PYTEST) --ignore tests/e2e

e2e: setup
	$(RUN) -m pytest -q $(PYTEST) tests/e2e

demo: setup
	$(RUN) examples/elastic_demo.py

demo-gpt: setup
	$(VENV)/bin/everstep run --slices 2 --devices-per-worker 1 -- $(RUN) examples/gpt.py

test-jax: setup
	$(RUN) tools/jax_tests/run.py

# The tests of failures are the same for every launcher; these are the ones that tell most.
test-ray: $(VENV)-ray/ready
	$(VENV)-ray/bin/python -m pytest -q $(PYTEST) --launcher ray tests/e2e/test_ray.py tests/e2e/test_failures.py \
		-k "ray or stopped or several_workers or spare_takes or (killed and serve)"

$(VENV)-ray/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)-ray
	$(VENV)-ray/bin/python -m pip install --quiet --upgrade pip
	$(VENV)-ray/bin/python -m pip install --quiet --editable '.[dev,ray]'
	touch $@

test-maxtext: .venv-maxtext/ready
	.venv-maxtext/bin/python tools/maxtext/run.py

# MaxText's own dependencies are meant for TPU machines; the ones it needs here are listed.
.venv-maxtext/ready: pyproject.toml tools/maxtext/requirements.txt tools/maxtext/unmodified.txt
	$(MAXTEXT_PYTHON) -m venv .venv-maxtext
	.venv-maxtext/bin/python -m pip install --quiet --upgrade pip
	.venv-maxtext/bin/python -m pip install --quiet --no-deps -r tools/maxtext/unmodified.txt
	.venv-maxtext/bin/python -m pip install --quiet -r tools/maxtext/requirements.txt --editable .
	touch $@

bench: setup
	$(RUN) benchmarks/run.py

torture: setup
	$(RUN) tools/torture.py

torture-train: setup
	$(RUN) tools/torture_train.py

# In an environment of its own: the pinned generator wants an older protobuf than the tests run on.
protos: .venv-protos/ready
	.venv-protos/bin/python tools/regenerate_protos.py

.venv-protos/ready: pyproject.toml
	$(PYTHON) -m venv .venv-protos
	.venv-protos/bin/python -m pip install --quiet 'grpcio-tools==1.73.1'
	touch $@

clean:
	rm -rf .venv .venv-ray .venv-protos .venv-maxtext .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
