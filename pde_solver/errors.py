"""What goes wrong, as sentences: where, what was found, what is allowed, what to try."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """The user's input cannot be used; the message is the sentence that the user reads (exit status 2)."""


class RunStopped(RuntimeError):
    """A guard ended a run; the message says which quantity failed, where and when (exit status 1)."""


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """The tail of an error sentence for an unknown word: the nearest allowed word, or all of them.

    Args:
        word: what was found.
        allowed: what could have stood there.
    """
    allowed = sorted(allowed)
    near = difflib.get_close_matches(word, allowed, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else f"allowed: {', '.join(allowed)}"
