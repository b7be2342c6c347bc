"""The model: what is solved, without a word of how."""

from dataclasses import dataclass, field

from pde_solver.errors import InputError
from pde_solver.labels import Labels
from pde_solver.manifolds import Manifold
from pde_solver.models.attention import Attention
from pde_solver.models.terms import Term


@dataclass(frozen=True, eq=False)
class Model:
    """A mean-field transformer: ∂ₜμ_z + div(μ_z X_z[μ]) = 0 for every label z, X = P_x (sum of the velocity's terms).

    Args:
        manifold: where tokens live, `Sphere(d)` or `Euclidean(d)`.
        velocity: an attention head, a drift, or a sum of them.
        labels: frozen marks of the tokens and who attends to whom; one label by default.

    Raises:
        InputError: if a term cannot act on the manifold's tokens.
    """

    manifold: Manifold
    velocity: Term
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        if not isinstance(self.manifold, Manifold):
            raise InputError(f"Model: manifold must be Sphere(d) or Euclidean(d), found {self.manifold!r}.")
        if not isinstance(self.velocity, Term):
            raise InputError(
                f"Model: velocity must be Attention, Linear, Layers or a sum of them, found {self.velocity!r}."
            )
        self.velocity.check(self.manifold.ambient_dimension)
        self._check_heads()

    def _check_heads(self) -> None:
        """Where each head has a mixing of its own, every layer must have as many heads."""
        if self.labels.heads is None:
            return
        breaks = list(self.velocity.breakpoints)
        for t in [breaks[0] - 1.0, *breaks] if breaks else [0.0]:
            heads = sum(isinstance(part, Attention) for part in self.velocity.at(t).summands())
            if heads != self.labels.heads:
                raise InputError(
                    f"Model: labels.mixing has a matrix for each of {self.labels.heads} heads, and the velocity {heads} heads; "
                    "give one for each, or one matrix for all."
                )

    def __str__(self) -> str:
        terms = " + ".join(str(term) for term in self.velocity.summands())
        labels = f", {self.labels.count} labels" if self.labels.count > 1 else ""
        return f"{terms} on {self.manifold}{labels}"
