"""A formula given as text, parsed into a tree of allowed operations: nothing else can be run."""

import ast
import operator
import sys
from collections.abc import Callable, Mapping

import numpy as np

from pde_solver.errors import InputError, did_you_mean

#: Longest text and deepest nesting that are read, so that no text can exhaust the machine.
LONGEST, DEEPEST = 2000, 200

CONSTANTS: Mapping[str, float] = {"pi": np.pi, "e": np.e}

#: Functions by name, with the number of their arguments.
FUNCTIONS: Mapping[str, tuple[Callable, int]] = {
    "sin": (np.sin, 1),
    "cos": (np.cos, 1),
    "tan": (np.tan, 1),
    "exp": (np.exp, 1),
    "log": (np.log, 1),
    "sqrt": (np.sqrt, 1),
    "abs": (np.abs, 1),
    "sinh": (np.sinh, 1),
    "cosh": (np.cosh, 1),
    "tanh": (np.tanh, 1),
    "atan2": (np.arctan2, 2),
    "minimum": (np.minimum, 2),
    "maximum": (np.maximum, 2),
    "where": (np.where, 3),
}

_BINARY: Mapping[type, Callable] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_UNARY: Mapping[type, Callable] = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: np.logical_not}
_COMPARISONS: Mapping[type, Callable] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


class Formula:
    """A formula of named variables, such as "1 + 0.2*cos(theta)".

    Numbers, + - * / **, comparisons (also chained) with and, or, not, the constants pi and e and the functions sin,
    cos, tan, exp, log, sqrt, abs, sinh, cosh, tanh, atan2, minimum, maximum, where(condition, then, else) are allowed.

    Args:
        text: the formula.
        where: the beginning of the error sentences.

    Raises:
        InputError: if the text is no formula, or holds anything that is not allowed.
    """

    def __init__(self, text: str, where: str) -> None:
        if not isinstance(text, str) or not text.strip():
            raise InputError(f'{where} must be a formula given as text, for example "1 + 0.2*x", found {text!r}.')
        if len(text) > LONGEST:
            raise InputError(f"{where} has {len(text)} characters; at most {LONGEST} are read.")
        shown = text if len(text) <= 80 else f"{text[:77]}..."
        self._where = f'{where} "{shown}"'
        try:
            self._root = ast.parse(text.strip(), mode="eval").body
        except SyntaxError as error:
            place = f" at character {error.offset}" if error.offset else ""
            raise InputError(f"{self._where} is not a formula: {error.msg}{place}.") from None
        except (RecursionError, MemoryError):
            raise self._too_deep() from None
        self._check(self._root, DEEPEST)

    @property
    def names(self) -> set[str]:
        """The names of variables that occur."""
        nodes = ast.walk(self._root)
        called = {id(node.func) for node in ast.walk(self._root) if isinstance(node, ast.Call)}
        return {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in called} - set(CONSTANTS)

    def require_names(self, allowed: set[str], place: str = "") -> None:
        """Refuse variables that are not among the allowed ones.

        Raises:
            InputError: the name, and the nearest allowed one.
        """
        for name in sorted(self.names - allowed):
            if name in FUNCTIONS:
                raise InputError(f"{self._where}: {name} is a function; give its argument, {name}(...).")
            hint = did_you_mean(name, allowed | set(CONSTANTS))
            raise InputError(f"{self._where}: {name} is not defined{place}; {hint}")

    def __call__(self, variables: Mapping[str, np.ndarray], count: int) -> np.ndarray:
        """Its values, (count,); NaN or inf where it is not defined.

        Args:
            variables: arrays (count,) by name.
            count: how many values.
        """
        with np.errstate(all="ignore"):
            return np.array(np.broadcast_to(self._evaluate(self._root, variables), (count,)), dtype=float)

    def _check(self, node: ast.expr, levels: int) -> None:
        if levels == 0:
            raise self._too_deep()
        match node:
            case ast.Constant(value=bool()) | ast.Name():
                allowed = isinstance(node, ast.Name)
            case ast.Constant(value=int() | float() as number):
                allowed = abs(number) <= sys.float_info.max
            case ast.BinOp(op=ast.BitXor()):
                raise InputError(f"{self._where}: ^ is not a power here; write x**2 for the square of x.")
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                allowed = self._check_all(levels, left, right)
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
                allowed = self._check_all(levels, operand)
            case ast.BoolOp(values=values):
                allowed = self._check_all(levels, *values)
            case ast.Compare(left=left, ops=ops, comparators=comparators) if all(
                type(op) in _COMPARISONS for op in ops
            ):
                allowed = self._check_all(levels, left, *comparators)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                self._check_call(name, len(arguments))
                allowed = self._check_all(levels, *arguments)
            case _:
                allowed = False
        if not allowed:
            raise InputError(
                f"{self._where}: {ast.unparse(node)!r} is not allowed; a formula has numbers, names, + - * / **, "
                f"comparisons and the functions {', '.join(FUNCTIONS)}."
            )

    def _check_all(self, levels: int, *nodes: ast.expr) -> bool:
        for node in nodes:
            self._check(node, levels - 1)
        return True

    def _too_deep(self) -> InputError:
        return InputError(f"{self._where} is nested more than {DEEPEST} levels deep; write it more simply.")

    def _check_call(self, name: str, count: int) -> None:
        if name not in FUNCTIONS:
            raise InputError(f"{self._where}: there is no function {name}; {did_you_mean(name, FUNCTIONS)}")
        if count != FUNCTIONS[name][1]:
            raise InputError(f"{self._where}: {name} takes {FUNCTIONS[name][1]} argument(s), found {count}.")

    def _evaluate(self, node: ast.expr, variables: Mapping[str, np.ndarray]):
        match node:
            case ast.Constant(value=int() | float() as number):
                return np.float64(number)  # not Python's numbers: 9**9**9 must be inf at once, not an hour's work
            case ast.Name(id=name):
                return np.float64(CONSTANTS[name]) if name in CONSTANTS else variables[name]
            case ast.BinOp(left=left, op=op, right=right):
                return _BINARY[type(op)](
                    _as_number(self._evaluate(left, variables)), _as_number(self._evaluate(right, variables))
                )
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return np.logical_not(self._evaluate(operand, variables))
            case ast.UnaryOp(op=op, operand=operand):
                return _UNARY[type(op)](_as_number(self._evaluate(operand, variables)))
            case ast.BoolOp(op=op, values=values):
                combine = np.logical_and if isinstance(op, ast.And) else np.logical_or
                return combine.reduce(np.broadcast_arrays(*[self._evaluate(part, variables) for part in values]))
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                terms = [self._evaluate(part, variables) for part in (left, *comparators)]
                holds = [_COMPARISONS[type(op)](a, b) for op, a, b in zip(ops, terms, terms[1:], strict=False)]
                return np.logical_and.reduce(np.broadcast_arrays(*holds))
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return FUNCTIONS[name][0](*[self._evaluate(part, variables) for part in arguments])
            case _:
                raise AssertionError(f"{ast.dump(node)} has passed the check")


def _as_number(value):
    """A truth value counts as 0 or 1 in arithmetic."""
    return np.asarray(value, dtype=float)
