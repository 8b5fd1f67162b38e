"""Impulses on masses from outside the solver, such as those of rigid bodies that a lattice touches."""

from typing import NamedTuple, Protocol

import warp as wp

__all__ = ["StepShares", "MassImpulses"]


class StepShares(NamedTuple):
    """Times for which a mass in contact moves with its velocities v at the start and v' at the end of a step.

    Attributes:
        start: Time with the velocity at the start [s].
        end: Time with the velocity at the end [s].
    """

    start: float
    end: float


class MassImpulses(Protocol):
    """Impulses on masses from outside the solver in one step; they act before contact with obstacles."""

    def place(self, shares: StepShares, X_out: wp.array) -> None:
        """Change the places of masses at the only stage of a step, at which their forces act [m].

        Args:
            shares: Times with the velocities at the start and at the end of the step, of masses that touch.
            X_out: Positions at the stage [m], padded with a zero, shape (worlds * n_masses,).
        """

    def adj_place(self, shares: StepShares, X_adj: wp.array) -> None:
        """Adjoint of `place`: correct the gradients by the motion at the start after the adjoint of the stage."""

    def apply(self, shares: StepShares, free_v: wp.array, ended: list[wp.array | None]) -> None:
        """Change the motion of masses at the end of a step.

        Args:
            shares: Times with the velocities at the start and at the end of the step.
            free_v: Velocities at the end of the step without these impulses [m/s], shape (worlds * n_masses,).
            ended: Positions [m] or None, and velocities [m/s], of the same shape. The changes of velocities are added;
                the positions of masses that change follow from their velocities.
        """

    def apply_again(self, shares: StepShares, ended: list[wp.array | None]) -> None:
        """Make the same changes as `apply` in this step, after the motion was computed again for the adjoint."""

    def adjoint(
        self, shares: StepShares, ended_adj: list[wp.array | None], free_v_adj: wp.array, mass_adj: wp.array | None
    ) -> None:
        """Replace the gradients by the motion after the impulses by the gradients before them.

        Args:
            shares: As for `apply`.
            ended_adj: Gradients with respect to positions, or None, and velocities.
            free_v_adj: Gradient with respect to the velocities without impulses, which is added; it may be the array of
                the gradient with respect to the velocities.
            mass_adj: Gradient with respect to the masses, which is added, shape (worlds * n_masses,); None to leave it
                out.
        """
