"""Functions compiled to machine code at their first call, and kept on disk where that is possible."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba
from numba.core.caching import FunctionCache


def compiled(function: Callable | None = None, *, fastmath: frozenset[str] = frozenset(), inline: bool = False) -> Any:
    """Compile a numerical function at its first call, for this processor: `@compiled` or `@compiled(fastmath=...)`.

    One thread only: there is one rank for each core. Division by zero gives inf or nan, as in NumPy. The machine code
    is kept beside the source or in the user's cache; where neither can be written it lives as long as the process.
    What is kept is renewed when the function's own file changes, so a compiled function calls only compiled functions
    of its own file.

    Args:
        function: a function of numbers and arrays.
        fastmath: liberties that the compiler may take with floating point, in LLVM's words; none by default.
        inline: whether to copy the function into those that call it before they are compiled.
    """
    if function is None:
        return lambda later: compiled(later, fastmath=fastmath, inline=inline)
    dispatcher: Any = numba.njit(
        function, fastmath=set(fastmath), error_model="numpy", inline="always" if inline else "never"
    )
    with suppress(RuntimeError):  # there may be nowhere to write
        dispatcher._cache = _LenientCache(function)
    return dispatcher


class _LenientCache(FunctionCache):
    """A cache on disk whose failures cost a compilation, never a run: a full disk, a quota, a damaged file."""

    def load_overload(self, sig, target_context):
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged file can raise anything
            return None

    def save_overload(self, sig, data):
        with suppress(Exception):  # so can the index, which is read before it is extended
            super().save_overload(sig, data)
