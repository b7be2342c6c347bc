"""One stage of finite volumes of order 2 on the icosphere: cells per second, against memory and an assembled form.

    python benchmarks/stage.py [--level 8] [--beta 4 64] [--tolerance 1e-6] [--quick]

One core. Each figure is the best of several repetitions, because other work on the machine only ever slows one down.

"frozen" is the stage with a velocity that is given at the facets: limited linear reconstruction, upwind fluxes, rate.
The bytes of a triangle that must move through memory in it, everything counted once:

    neighbours 12 · 4, least-squares weights 12 · 2 · 4, offsets of two facets 2 · 2 · 4      160
    facets 3 · 4, sides 3 · 1, places behind the facets 3 · 4                                  27
    velocity 1.5 · 8, volume 8, density 8, rate 8                                              36
    in all                                                                                    223

(the facet values, 3 · 8, stay in the cache). "of triad" is the bandwidth that this amounts to, divided by that of the
triad a = b + s c measured in the same run on arrays of 160 MB, 24 bytes an element.

"assembled" is DOLFINx's `assemble_vector` of the upwind form in DG0, with a continuous linear velocity that is frozen
too and coefficients packed in each call, as new densities need.

"full" is `rate` with attention at β, at another depth in each call so that nothing is remembered.
"""

import argparse
import itertools

from measuring import best_time, processor  # isort: skip  it sets the environment that NumPy reads

import pde_solver as ps  # isort: skip  before DOLFINx, whose libraries it finds

import numpy as np
import ufl
from dolfinx import fem

from pde_solver.compiled import compiled

#: Compulsory traffic, counted above.
BYTES_PER_CELL = 223
#: Numbers in each of the triad's arrays: several times what the last cache holds.
TRIAD_LENGTH = 20_000_000


class Frozen(ps.FiniteVolume):
    """Finite volumes whose velocity at the facets is given: a rotation with a flow towards a pole."""

    def __init__(self, mesh: ps.Mesh) -> None:
        super().__init__(ps.Model(mesh.manifold, ps.Attention(4.0)), mesh)
        self._frozen = np.einsum("fd,fd->f", wind(self._midpoints), self._velocity_normals)[None]

    def _normal_velocity(self, t: float, state: np.ndarray) -> np.ndarray:
        return self._frozen


def wind(points: np.ndarray) -> np.ndarray:
    """ω × x + 0.3 P_x e₁ at points (n, 3)."""
    return np.cross([0.3, -0.5, 0.8], points) + 0.3 * (np.eye(3)[0] - points[:, :1] * points)


@compiled
def _triad(a, b, c, s):
    for i in range(len(a)):
        a[i] = b[i] + s * c[i]


def triad_bandwidth(budget: float) -> float:
    """Bytes per second of a = b + s c."""
    a, b, c = (np.full(TRIAD_LENGTH, value) for value in (0.0, 1.0, 2.0))
    return 24 * TRIAD_LENGTH / best_time(lambda: _triad(a, b, c, 0.5), budget)


def assembled_time(mesh: ps.Mesh, budget: float) -> float:
    """Seconds of one `assemble_vector` of the upwind form in DG0."""
    domain = mesh.domain
    space = fem.functionspace(domain, ("DG", 0))
    f, v, w = (
        fem.Function(space),
        fem.Function(fem.functionspace(domain, ("Lagrange", 1, (3,)))),
        ufl.TestFunction(space),
    )
    f.interpolate(lambda x: np.exp(2 * x[0]))
    v.interpolate(lambda x: wind(x.T).T)
    n = ufl.FacetNormal(domain)
    u = (ufl.dot(v("+"), n("+")) - ufl.dot(v("-"), n("-"))) / 2
    flux = (u + abs(u)) / 2 * f("+") + (u - abs(u)) / 2 * f("-")
    form = fem.form(-flux * (w("+") - w("-")) * ufl.dS(metadata={"quadrature_degree": 1}))
    residual = np.zeros(mesh.owned_cells)
    return best_time(lambda: fem.assemble_vector(residual, form), budget)


def frozen_row(level: int, budget: float) -> tuple[int, float, float, float]:
    """Cells, and seconds of the frozen stage of order 2, of the step limit, and of the assembled form."""
    mesh = ps.icosphere(level)
    frozen = Frozen(mesh)
    state = frozen.initial(ps.VonMisesFisher((1, 2, 3), 2.0))
    rate = np.empty_like(state)
    stage = best_time(lambda: frozen.rate(0.0, state, rate), budget)
    limit = best_time(lambda: frozen.step_limit(0.0, state), budget / 2)
    return mesh.cell_count, stage, limit, assembled_time(mesh, budget)


def full_row(level: int, beta: float, tolerance: float, budget: float) -> tuple[int, float, float]:
    """Cells, and seconds of the full stage and of the frozen one on the same mesh."""
    mesh = ps.icosphere(level)
    model = ps.Model(mesh.manifold, ps.Attention(beta))
    full, frozen = ps.FiniteVolume(model, mesh, evaluation=ps.Evaluation(tolerance)), Frozen(mesh)
    state = full.initial(ps.VonMisesFisher((1, 2, 3), 2.0))
    rate, depths = np.empty_like(state), itertools.count()
    stage = best_time(lambda: full.rate(float(next(depths)), state, rate), budget)
    return mesh.cell_count, stage, best_time(lambda: frozen.rate(0.0, state, rate), budget)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--level", type=int, default=8, help="finest icosphere of the frozen stage (8: 1.3 million cells)"
    )
    parser.add_argument("--tolerance", type=float, default=1e-6, help="of the velocity")
    parser.add_argument(
        "--beta", type=float, nargs="*", default=[4.0, 64.0], help="inverse temperatures of the full stage"
    )
    parser.add_argument("--quick", action="store_true", help="small meshes, some seconds in all")
    arguments = parser.parse_args()
    budget = 0.3 if arguments.quick else 2.0
    finest = 5 if arguments.quick else arguments.level
    bandwidth = triad_bandwidth(budget)
    print(f"{processor()}, one core; triad {bandwidth / 1e9:.1f} GB/s; {BYTES_PER_CELL} bytes a cell")
    print(f"{'cells':>9} {'frozen':>9} {'Mcell/s':>8} {'of triad':>9} {'step limit':>11} {'assembled':>10}   ratio")
    for level in sorted({min(6, finest), finest}):
        cells, stage, limit, assembled = frozen_row(level, budget)
        bandwidth = triad_bandwidth(budget / 2)  # as it is now, should others use the memory
        print(
            f"{cells:9d} {1e3 * stage:6.2f} ms {cells / stage / 1e6:8.1f} {BYTES_PER_CELL * cells / stage / bandwidth:9.2f} "
            f"{1e3 * limit:8.2f} ms {1e3 * assembled:7.1f} ms {assembled / stage:7.1f}",
            flush=True,
        )
    print(f"{'cells':>9} {'β':>6} {'full':>10} {'Mcell/s':>8}   full / frozen")
    for beta in arguments.beta:
        cells, stage, frozen = full_row(finest, beta, arguments.tolerance, budget)
        print(
            f"{cells:9d} {beta:6g} {1e3 * stage:7.2f} ms {cells / stage / 1e6:8.2f} {stage / frozen:10.1f}", flush=True
        )


if __name__ == "__main__":
    main()
