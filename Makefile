# make demo: the main job, from a fresh clone.   make test: all checks.   make venv: only the environment.

BIN := .venv/bin
READY := .venv/.ready
RUN := $(BIN)/pde-solver run docs/gallery/three_bumps.toml --overwrite
ON_TWO := $(BIN)/mpiexec -n 2 $(RUN)
PARTICLES := mesh= discretisation.kind=particles discretisation.count=100000

# one thread for each rank
export OMP_NUM_THREADS ?= 1

.PHONY: venv demo test lint clean

venv: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(BIN)/python -c pass 2>/dev/null || { python=$$(sh .ci/find-python) && "$$python" -m venv --clear .venv; }
	@echo "Installing into .venv with $$($(BIN)/python --version): some minutes on a slow line"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install -qq --editable . --group dev --constraint constraints.txt
	@$(BIN)/pde-solver doctor >/dev/null
	@touch $@

demo: $(READY)
	@echo "1. Finite volumes: 81,920 cells on 2 ranks"
	@$(ON_TWO) --output demo/finite-volume
	@echo
	@echo "2. Discontinuous Galerkin of degree 2: 20,480 cells, 122,880 unknowns on 2 ranks"
	@$(ON_TWO) --output demo/dg2 mesh.level=5 discretisation.kind=discontinuous-galerkin
	@echo
	@echo "3. Particles: 100,000 random tokens, four times with other random numbers, two runs at a time"
	@seq 4 | xargs -P 2 -I SEED $(RUN) --quiet --output demo/particles-SEED $(PARTICLES) discretisation.seed=SEED
	@echo
	@echo "4. Do they agree? Finite volumes and discontinuous Galerkin against the mean of the particles"
	@echo
	@$(BIN)/pde-solver compare demo/particles-1 --replica demo/particles-2 --replica demo/particles-3 \
		--replica demo/particles-4 demo/finite-volume demo/dg2
	@cp demo/finite-volume/summary.png demo/summary.png
	@echo
	@echo "The picture: demo/summary.png (finite volumes). In demo/finite-volume, demo/dg2, demo/particles-1 to -4:"
	@echo "  fields.vtkhdf   density or tokens at several depths, for ParaView"
	@echo "  history.csv     mass, energy and the other quantities against depth"
	@echo "  summary.png     the picture of that run"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy pde_solver

test: lint
	$(BIN)/python -m pytest

clean:
	rm -rf .venv .venv-uv demo .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
