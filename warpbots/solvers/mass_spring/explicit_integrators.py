"""Explicit time integration as tables: semi-implicit Euler, Verlet, and the Runge-Kutta scheme of order 4.

A scheme evaluates accelerations a_s at stages s = 1, 2, ... and combines them (Nystrom's form, with velocities):

    X_s = x + c_s h v + h^2 sum_{j<s} A_sj a_j,     V_s = v + h sum_{j<s} B_sj a_j,   at time t + c_s h,
    x'  = x + h v + h^2 sum_s p_s a_s,              v'  = v + h sum_s q_s a_s.

Equations 8 to 10 of Cronos print the Runge-Kutta scheme without factors of h; here they are as in the textbook (Hairer,
Norsett & Wanner, Solving Ordinary Differential Equations I, II.1 and II.14). The "Euler" scheme of Cronos conserves
energy, so it must be the semi-implicit Euler scheme.
"""

import dataclasses
import functools

import numpy as np

__all__ = ["SCHEMES", "Scheme"]


@dataclasses.dataclass(frozen=True)
class Scheme:
    """An explicit scheme of at most four stages; the module docstring defines the symbols.

    Attributes:
        c: Time from the start of the step to each stage, divided by the length of the step [1], shape (n,).
        A: Weights A_sj of the accelerations of earlier stages j in the positions of stage s, shape (n, n).
        B: Weights B_sj of the accelerations of earlier stages j in the velocities of stage s, shape (n, n).
        p: Weights of the accelerations of all stages in the positions at the end of the step, shape (n,).
        q: Weights of the accelerations of all stages in the velocities at the end of the step, shape (n,).
    """

    c: tuple[float, ...]
    A: tuple[tuple[float, ...], ...]
    B: tuple[tuple[float, ...], ...]
    p: tuple[float, ...]
    q: tuple[float, ...]

    @property
    def stages(self) -> int:
        """Number of stages of a step; each stage evaluates the acceleration once."""
        return len(self.c)

    @functools.lru_cache(maxsize=256)  # noqa: B019 (schemes are constants)
    def stable_step(self, damping: float = 0.0) -> float:
        """Largest w h for which steps h of a'' = -w^2 a - 2 `damping` w a' are stable (with a spectral radius of 1)."""
        lower, upper = 0.0, 4.0
        for _ in range(60):
            h = 0.5 * (lower + upper)
            steps = self._step(h * np.linspace(0.02, 1.0, 50), damping)  # all shorter steps must be stable, too
            stable = np.abs(np.linalg.eigvals(steps)).max() <= 1.0 + 1e-9
            lower, upper = (h, upper) if stable else (lower, h)
        return lower

    def _step(self, h: np.ndarray, damping: float) -> np.ndarray:
        """Matrices that advance (x, v) of the oscillator with w = 1 by the steps `h`, shape (n,); shape (n, 2, 2)."""
        h = h[:, None]
        x, v = np.eye(2)
        a: list[np.ndarray] = []
        for c, A, B in zip(self.c, self.A, self.B, strict=True):
            X = x + c * h * v + h * h * sum((w * a_j for w, a_j in zip(A, a, strict=False)), np.zeros(2))
            V = v + h * sum((w * a_j for w, a_j in zip(B, a, strict=False)), np.zeros(2))
            a.append(-X - 2.0 * damping * V)
        p, q = (sum(w * a_j for w, a_j in zip(weights, a, strict=True)) for weights in (self.p, self.q))
        return np.stack([x + h * v + h * h * p, v + h * q], axis=1)


SCHEMES = {
    "euler": Scheme(c=(0.0,), A=((0.0,),), B=((0.0,),), p=(1.0,), q=(1.0,)),
    "verlet": Scheme(c=(0.5,), A=((0.0,),), B=((0.0,),), p=(0.5,), q=(1.0,)),
    "rk4": Scheme(
        c=(0.0, 0.5, 0.5, 1.0),
        A=((0.0,) * 4, (0.0,) * 4, (0.25, 0.0, 0.0, 0.0), (0.0, 0.5, 0.0, 0.0)),
        B=((0.0,) * 4, (0.5, 0.0, 0.0, 0.0), (0.0, 0.5, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)),
        p=(1 / 6, 1 / 6, 1 / 6, 0.0),
        q=(1 / 6, 1 / 3, 1 / 3, 1 / 6),
    ),
}
"""Schemes by name. Verlet is the drift-kick-drift form, whose midpoints follow equation 6 of Cronos."""
