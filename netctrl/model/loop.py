"""Open loops with one exact delay, as data: in continuous time, and under a law that acts once an epoch."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from netctrl.core.errors import InvalidValue, checked_number, checked_whole
from netctrl.model.io.display import Plotted, Rows

MAX_EPOCHS_PER_DELAY = 1000
"""The lifted matrix holds one state per epoch of delay; with more epochs its eigenvalues take too long."""


class DelayLoop(Plotted, msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An open loop with real poles and zeros and one exact delay, closed by negative unit feedback.

        L(s) = gain · Π(1 + z s) / (sᵐ Π(1 + T s)) · e^(−s·delay)

    Parameters
    ----------
    gain : float
        Above 0; unit 1/sᵐ where the loop has m integrators.
    integrators : int
        m, from 0 to 2.
    leads : tuple of float
        Time constants z of the zeros [s], not 0; a negative one is a zero in the right half plane.
    lags : tuple of float
        Time constants T of the poles [s], above 0: apart from its integrators the open loop is stable.
    delay : float
        Delay [s], at least 0.

    Raises
    ------
    InvalidValue
        A value outside these bounds, or a loop that doesn't fall off at high frequency (as many zeros as poles).

    Examples
    --------
    An integrator with a gain of 1/s and a delay of half a second:

    >>> import netctrl
    >>> loop = netctrl.DelayLoop(gain=1.0, delay=0.5, integrators=1, leads=(), lags=())
    >>> round(netctrl.margins(loop).phase_margin_deg, 2)
    61.35
    """

    gain: float
    delay: float
    integrators: int
    leads: tuple[float, ...]
    lags: tuple[float, ...]

    def __post_init__(self) -> None:
        checked_number("gain", self.gain, "a loop gain above 0 (negative feedback is implied)", above=0.0)
        checked_number("delay", self.delay, "a delay of at least 0 seconds", at_least=0.0)
        checked_whole("integrators", self.integrators, "0, 1 or 2", at_most=2)
        for name in ("leads", "lags"):
            if not isinstance(getattr(self, name), (tuple, list)):
                raise InvalidValue(name, getattr(self, name), "a tuple of time constants in seconds")
        for T in self.lags:
            checked_number("lags", T, "time constants above 0 in seconds (a stable open loop)", above=0.0)
        for z in self.leads:
            if checked_number("leads", z, "finite time constants in seconds, not 0") == 0.0:
                raise InvalidValue("leads", z, "finite time constants in seconds, not 0")
        if len(self.leads) >= len(self.lags) + self.integrators:
            raise InvalidValue("leads", self.leads, "fewer zeros than poles: the loop gain must fall off")

    def scaled(self, factor: float) -> DelayLoop:
        """The same loop with its gain multiplied.

        Parameters
        ----------
        factor : float
            Above 0.

        Returns
        -------
        DelayLoop
        """
        return msgspec.structs.replace(self, gain=self.gain * factor)

    def _shown(self) -> Rows:
        return "DelayLoop", [(name, str(getattr(self, name))) for name in self.__struct_fields__]


@dataclass(frozen=True, slots=True, eq=False)
class SampledLoop:
    """Sampled loop: x' = A x + B u(t − delay), with u held at p between epochs.

    At each epoch's end p₊ = p + gain · c·x; then each state is kept or cleared.

    Parameters
    ----------
    A : ndarray, shape (n, n)
        Stable except for states that are cleared.
    B : ndarray, shape (n,)
    read : ndarray, shape (n,)
        c, the combination of states that the law reads at the epoch's end.
    keep : ndarray of bool, shape (n,)
        False for a state that the law sets to 0 after reading it.
    delay : float
        tau [s].
    epoch : float
        d [s].
    """

    A: np.ndarray
    B: np.ndarray
    read: np.ndarray
    keep: np.ndarray
    delay: float
    epoch: float

    def __post_init__(self) -> None:
        checked_number("epoch", self.epoch, "an epoch above 0 in seconds", above=0.0)
        if self.delay / self.epoch > MAX_EPOCHS_PER_DELAY:
            takes = (
                f"at least {self.delay / MAX_EPOCHS_PER_DELAY:.3g} s: an epoch of at least delay/{MAX_EPOCHS_PER_DELAY}"
            )
            raise InvalidValue("epoch", self.epoch, takes)
