"""Time stepping by PETSc TS: which scheme, how large a step."""

import weakref
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from petsc4py import PETSc

from pde_solver.discretisations.base import Discretisation
from pde_solver.errors import InputError, RunStopped

#: Options of the solver live in PETSc's database behind this prefix.
OPTIONS_PREFIX = "pde_solver_"


#: Longest step of a scheme without error control, in units of the depth in which the velocity changes.
LONGEST_STEP = 0.1


@dataclass(frozen=True)
class SSP:
    """Strong-stability-preserving Runge–Kutta: convex combinations of forward Euler steps, so what a step of Euler keeps, it keeps.

    A step is cfl · c · (the discretisation's forward Euler limit), c the scheme's SSP coefficient: order 2 with 5 stages
    has c = 4, order 3 with 9 stages c = 6, order 4 with 10 stages c = 6. Where hardly anything moves, as near the uniform
    law, that limit is no measure of accuracy; so a step is at most 0.1 / (the rate at which the velocity may change).

    Args:
        order: 2, 3 or 4.
        cfl: fraction of the limit, in (0, 1].
        step: a fixed step instead; it must not exceed the limit.

    Raises:
        InputError: for another order, or a cfl or step out of range.

    Source: Ketcheson, SIAM J. Sci. Comput. 30 (2008) 2113; PETSc's TSSSP (rks2, rks3, rk104).
    """

    order: int = 3
    cfl: float = 0.9
    step: float | None = None

    def __post_init__(self) -> None:
        if self.order not in _SSP_TYPES:
            raise InputError(f"SSP: order must be 2, 3 or 4, found {self.order!r}.")
        _check_between("SSP: cfl", self.cfl, 0, 1)
        if self.step is not None:
            _check_between("SSP: step", self.step, 0, np.inf)

    @property
    def coefficient(self) -> float:
        """How many forward Euler limits one step may span."""
        return 4.0 if self.order == 2 else 6.0

    @property
    def stages(self) -> int:
        """Evaluations of the rate in a step."""
        return {2: 5, 3: 9, 4: 10}[self.order]

    @property
    def adaptive(self) -> bool:
        """Whether the step follows an error estimate."""
        return False

    def petsc_options(self) -> dict[str, str]:
        """How PETSc calls it."""
        return {"ts_type": "ssp", "ts_ssp_type": _SSP_TYPES[self.order], "ts_adapt_type": "none"}


@dataclass(frozen=True)
class EmbeddedRK:
    """Embedded Runge–Kutta with error control: for tokens, and for densities that stay smooth.

    On a mesh the step never exceeds cfl · c · (the forward Euler limit) either, c = 1.25 for order 3, 1.65 for order 5.

    Args:
        order: 3 (Bogacki–Shampine) or 5 (Dormand–Prince).
        tolerance: local error allowed per step, relative and absolute, for every unknown.
        cfl: fraction of the limit, in (0, 1].
        step: first step to try; also the largest.

    Raises:
        InputError: for another order, or a tolerance, cfl or step out of range.

    Source: PETSc's TSRK (3bs, 5dp).
    """

    order: int = 5
    tolerance: float = 1e-8
    cfl: float = 0.9
    step: float | None = None

    def __post_init__(self) -> None:
        if self.order not in _RK_TYPES:
            raise InputError(f"EmbeddedRK: order must be 3 or 5, found {self.order!r}.")
        _check_between("EmbeddedRK: tolerance", self.tolerance, 0, 1)
        _check_between("EmbeddedRK: cfl", self.cfl, 0, 1)
        if self.step is not None:
            _check_between("EmbeddedRK: step", self.step, 0, np.inf)

    @property
    def coefficient(self) -> float:
        """How many forward Euler limits one step may span."""
        return 1.25 if self.order == 3 else 1.65

    @property
    def stages(self) -> int:
        """Evaluations of the rate in a step."""
        return {3: 4, 5: 7}[self.order]

    @property
    def adaptive(self) -> bool:
        """Whether the step follows an error estimate."""
        return True

    def petsc_options(self) -> dict[str, str]:
        """How PETSc calls it."""
        return {"ts_type": "rk", "ts_rk_type": _RK_TYPES[self.order], "ts_adapt_type": "basic"}


Scheme = SSP | EmbeddedRK

#: PETSc's options for what the solver itself decides.
_SET_ELSEWHERE = {
    "ts_type": "the time scheme",
    "ts_ssp_type": "the time scheme",
    "ts_ssp_num_stages": "the time scheme",
    "ts_rk_type": "the time scheme",
    "ts_dt": "the scheme's step",
    "ts_time_step": "the scheme's step",
    "ts_rtol": "the scheme's tolerance",
    "ts_atol": "the scheme's tolerance",
    "ts_max_steps": "the guards' most_steps (max_steps in a case file)",
    "ts_max_time": "stop",
    "ts_final_time": "stop",
    "ts_exact_final_time": "stop",
}

_SSP_TYPES = {2: "rks2", 3: "rks3", 4: "rk104"}
_RK_TYPES = {3: "3bs", 5: "5dp"}


def default_scheme(discretisation: Discretisation) -> Scheme:
    """SSP of the order that the discretisation asks for; Dormand–Prince for tokens."""
    return SSP(discretisation.time_order) if discretisation.has_density else EmbeddedRK(5)


class Stepper:
    """One PETSc TS for one discretisation; it takes one step at a time and knows nothing of output.

    Args:
        discretisation: gives the rate du/dt and the step limit.
        scheme: which Runge–Kutta method.
        petsc_options: PETSc's options of the error control by name, without dash ("ts_adapt_safety": "0.8").

    Raises:
        InputError: if an option is not one of the error control's, or PETSc does not know or does not use it.
    """

    def __init__(
        self, discretisation: Discretisation, scheme: Scheme, petsc_options: Mapping[str, object] | None = None
    ) -> None:
        if scheme.order == 2 and discretisation.order > 2:
            raise InputError(f"time: SSP of order 2 is unstable for {discretisation.name}; use order 3 or 4.")
        self.discretisation = discretisation
        self.scheme = scheme
        self._user_options = {name.lstrip("-"): value for name, value in (petsc_options or {}).items()}
        self._prepare()

    def _prepare(self) -> None:
        discretisation, scheme = self.discretisation, self.scheme
        self._vector = PETSc.Vec().createMPI((discretisation.local_size, PETSc.DETERMINE), comm=discretisation.comm)
        self._ts = PETSc.TS().create(comm=discretisation.comm)
        self._ts.setOptionsPrefix(OPTIONS_PREFIX)
        # PETSc holds its callback where Python's garbage collector cannot see it: a strong reference to this stepper would
        # keep mesh and communicators alive for ever, and MPI has only some 2,000 communicators
        stepper = weakref.proxy(self)
        self._ts.setRHSFunction(lambda *arguments: stepper._evaluate(*arguments), self._vector.duplicate())
        self._ts.setSolution(self._vector)
        self._ts.setExactFinalTime(PETSc.TS.ExactFinalTime.MATCHSTEP)
        self._ts.setMaxSteps(np.iinfo(np.int32).max)
        if isinstance(scheme, EmbeddedRK):
            self._ts.setTolerances(rtol=scheme.tolerance, atol=scheme.tolerance)
        self._set_options(self._user_options)
        self._ts.setUp()
        self._failed = False

    def largest_step(self, t: float, state: np.ndarray) -> float:
        """The step that the scheme's rule allows at this state (inf if only the error control binds). Collective.

        Raises:
            InputError: if a fixed step exceeds the stability limit.
        """
        limit = self.scheme.coefficient * self.discretisation.step_limit(t, state)
        if self.scheme.step is None:
            if self.scheme.adaptive:
                return self.scheme.cfl * limit
            rate = self.discretisation.velocity_rate(t, state)
            return min(self.scheme.cfl * limit, LONGEST_STEP / rate if rate > 0 else np.inf)
        if not self.scheme.adaptive and self.scheme.step > limit:
            raise InputError(
                f"time: step = {self.scheme.step:g} exceeds the stability limit {limit:.3g} at t = {t:g}; "
                f"use a step ≤ {0.9 * limit:.2g}, or leave step out and let cfl choose."
            )
        return min(self.scheme.step, limit)

    def step(self, t: float, dt: float, until: float, state: np.ndarray) -> tuple[float, float]:
        """Take one step from t, in place, not beyond `until`.

        Args:
            t: depth at the start.
            dt: the step to take (or, with error control, to try first).
            until: depth that must not be passed.
            state: this rank's unknowns, overwritten.

        Returns:
            The depth reached, and the step that the error control would try next (dt itself without it).

        Raises:
            RunStopped: if the error control cannot find a step, with PETSc's reason.
        """
        if self._failed:  # PETSc leaves its vectors locked; setting up again is collective, so it waits until now
            self._prepare()
        ts = self._ts
        # What PETSc combines is the change since the step began: convex combinations of the state itself, whose
        # coefficients do not quite add up to one in floating point, would change its mass by 1e-16 in every step.
        # The error control needs the state, to compare with; its schemes only ever add to it.
        self._origin = np.zeros_like(state) if self.scheme.adaptive else state.copy()
        self._vector.array[:] = state - self._origin
        ts.setTime(t)
        ts.setMaxTime(until)
        ts.setTimeStep(min(dt, until - t))
        ts.restartStep()
        self._failure: BaseException | None = None
        self._failed = True
        try:
            ts.step()
        except PETSc.Error as error:
            if self._failure is not None:
                raise self._failure from None
            said = str(error).splitlines()[-1].removeprefix("[0] ")
            raise RunStopped(f"time stepping failed at t = {t:g} with dt = {dt:.3g}; PETSc says: {said}.") from None
        self._failed = False
        state[:] = self._origin + self._vector.array_r
        reached = ts.getTime()
        # PETSc adds steps up in floating point; a depth within rounding of the target is the target
        if abs(until - reached) <= 1e-12 * max(abs(until), dt):
            reached = until
        return reached, ts.getTimeStep()

    def _evaluate(self, ts: PETSc.TS, t: float, vector: PETSc.Vec, out: PETSc.Vec) -> None:
        try:
            self.discretisation.rate(t, self._origin + vector.array_r, out.array)
        except BaseException as failure:
            # PETSc turns whatever is raised here into a number; keep it
            self._failure = failure
            raise

    def _set_options(self, user: dict[str, object]) -> None:
        for name in user:
            self._check_option(name)
        database = PETSc.Options(OPTIONS_PREFIX)
        options = {**self.scheme.petsc_options(), **{name: str(value) for name, value in user.items()}}
        for name, value in options.items():
            database.setValue(name, value)
        try:
            self._ts.setFromOptions()
            # `used` knows no prefix
            unused = [name for name in user if not PETSc.Options().used(OPTIONS_PREFIX + name)]
        except PETSc.Error as error:
            raise InputError(
                f"petsc: PETSc does not accept {user} (error {error.ierr}); see its manual pages on TS."
            ) from None
        finally:
            for name in options:
                database.delValue(name)
        if unused:
            raise InputError(
                f"petsc: {', '.join(unused)} {'is' if len(unused) == 1 else 'are'} not used by the time stepper; "
                "see PETSc's manual pages on TSAdapt."
            )

    def _check_option(self, name: str) -> None:
        """Refuse what would change the scheme behind the step rule's back, and what an explicit scheme never reads."""
        if name in _SET_ELSEWHERE:
            raise InputError(f"petsc: {name} is set by {_SET_ELSEWHERE[name]}; set it there.")
        if not name.startswith("ts_adapt_") or name == "ts_adapt_type":
            raise InputError(
                f"petsc: {name} does nothing here, as explicit time stepping solves no equations; allowed are PETSc's "
                "options of the error control, without the dash, such as ts_adapt_safety."
            )
        if not self.scheme.adaptive:
            raise InputError(
                f"petsc: {name} applies to a scheme with error control (EmbeddedRK; rk-3 or rk-5 in a case file), "
                "found an SSP scheme."
            )


def _check_between(where: str, value: object, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low < value <= high or value == np.inf:
        raise InputError(f"{where} must be a number in ({low:g}, {high:g}], found {value!r}.")
