# make demo: the main job, from a fresh clone.   make test: all checks.   make venv: only the environment.

BIN := .venv/bin
READY := .venv/.ready
RUN := $(BIN)/pde-solver run
ON_TWO := $(BIN)/mpiexec -n 2 $(RUN)
CASE := docs/gallery/three_bumps.toml
PARTICLES := mesh= discretisation.kind=particles discretisation.count=5000

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
	@echo "== Finite volumes, 5,120 cells, 2 ranks"
	@$(ON_TWO) $(CASE) --output demo/finite-volume --overwrite
	@echo "== Discontinuous Galerkin of degree 2, 1,280 cells, 2 ranks"
	@$(ON_TWO) $(CASE) --output demo/dg2 --overwrite mesh.level=3 discretisation.kind=discontinuous-galerkin
	@echo "== 5,000 particles, twice: the second set of tokens shows the sampling error"
	@$(ON_TWO) $(CASE) --output demo/particles --overwrite $(PARTICLES) discretisation.seed=1
	@$(ON_TWO) $(CASE) --output demo/particles-again --overwrite $(PARTICLES) discretisation.seed=2
	@echo "== Each against the first set of particles"
	@$(BIN)/pde-solver compare demo/particles demo/particles-again demo/finite-volume demo/dg2
	@echo
	@echo "The column particles-again is the sampling error of 5,000 tokens."
	@echo "Picture                demo/dg2/summary.png (and in the other directories)"
	@echo "Fields for ParaView    demo/dg2/fields.vtkhdf"
	@echo "Diagnostics            demo/dg2/history.csv"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy pde_solver

test: lint
	$(BIN)/python -m pytest

clean:
	rm -rf .venv .venv-uv demo .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
