"""Strains at rest by actuators, which together must leave matter a length."""

import dataclasses

import numpy as np

from warpbots.scene import Actuator, Oscillation

__all__ = ["RestStrains"]

_ROUNDING = 1e-9


@dataclasses.dataclass(frozen=True)
class RestStrains:
    """Largest strains at rest of the elements of a model, which are linear in the amplitudes of oscillations.

    Attributes:
        element: An element in words, such as ``"a spring"``.
        actuators: Actuators that strain elements at rest.
        share: Strain of each element by each actuator at |u| = 1, for an `Oscillation` divided by its amplitude [1],
            shape (n, n_actuators).
    """

    element: str
    actuators: tuple[Actuator, ...]
    share: np.ndarray

    @classmethod
    def of(cls, element: str, shares: list[tuple[Actuator, np.ndarray]]) -> "RestStrains":
        """Strains from a column for each actuator; an `Oscillation` has twice its amplitude at u = 1."""
        actuators = tuple(actuator for actuator, _ in shares)
        columns = [(2.0 if isinstance(a, Oscillation) else 1.0) * column for a, column in shares]
        rows = np.stack(columns, axis=1) if columns else np.zeros((0, 0))
        return cls(element, actuators, rows)

    def distinct(self) -> "RestStrains":
        """The same strains without elements that are strained like others; sorting a million takes seconds."""
        return dataclasses.replace(self, share=np.unique(self.share, axis=0))

    def fault(self, amplitude: np.ndarray | None = None) -> str | None:
        """Message about the element that could lose its length; None if there is none.

        Args:
            amplitude: Amplitudes of all oscillations of the scene [1], shape (worlds, n_oscillations); None for the
                amplitudes in the scene.
        """
        if not self.share.size:
            return None
        waves = [k for k, a in enumerate(self.actuators) if isinstance(a, Oscillation)]
        if amplitude is None:
            amplitude = np.array([[self.actuators[k].amplitude for k in waves]])
        size = np.ones((len(amplitude), len(self.actuators)))
        size[:, waves] = np.abs(amplitude)
        total = size @ self.share.T
        if total.max(initial=0.0) < 1.0 - _ROUNDING:
            return None
        world, row = np.unravel_index(int(total.argmax()), total.shape)
        names = ", ".join(repr(a.name) for a, strain in zip(self.actuators, self.share[row], strict=True) if strain)
        where = f" in world {world}" if len(amplitude) > 1 else ""
        return (
            f"actuators {names}: together they strain {self.element} by up to {total[world, row]:.3g}{where}, which "
            f"leaves no length; keep the sum of max_strain, and of 2 amplitude of oscillations, where their regions "
            f"overlap below 1"
        )
