"""Which method sums the kernel: the cheapest that promises the tolerance."""

from pde_solver.errors import InputError
from pde_solver.kernel_sums import circle, dense, rotated, sphere, tensor
from pde_solver.kernel_sums.method import Problem, Proposal

_ROOMS = {"dense": dense, "circle": circle, "sphere": sphere, "tensor": tensor, "rotated": rotated}

#: A direct sum that takes no longer than this is taken without asking the others (seconds).
_NEGLIGIBLE = 3e-4

#: What a user can ask for.
METHODS = ("automatic", *_ROOMS)


def choose(problem: Problem, method: str = "automatic") -> Proposal:
    """The cheapest proposal whose expected error is within the tolerance. The same on all ranks; collective.

    Args:
        problem: what is to be summed.
        method: one of `METHODS`; "automatic" considers all.

    Raises:
        InputError: if the method that was asked for cannot do it.
    """
    (direct,) = dense.proposals(problem)
    if method == "dense" or (method == "automatic" and direct.seconds <= _NEGLIGIBLE):
        return direct
    rooms = _ROOMS.values() if method == "automatic" else [_ROOMS[method]]
    found = [proposal for room in rooms for proposal in room.proposals(problem)]
    suitable = [proposal for proposal in found if proposal.error <= problem.tolerance]
    if not suitable:
        raise InputError(
            f'evaluation: method "{method}" cannot sum {" + ".join(map(str, problem.heads))} on {problem.manifold} with '
            f'these points to {problem.tolerance:.1g}; "automatic" and "dense" always can.'
        )
    return min(suitable, key=lambda proposal: proposal.seconds)
