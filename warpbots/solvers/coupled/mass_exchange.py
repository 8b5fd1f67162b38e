"""Exchange of impulses between the masses of a lattice and rigid bodies in one step, and its adjoint."""

import dataclasses

import warp as wp

from warpbots.numerics import launch, real
from warpbots.solvers.articulated.spatial import scalar
from warpbots.solvers.coupled.body_step import BodyStep
from warpbots.solvers.coupled.exchange_arrays import MassArrays
from warpbots.solvers.coupled.mass_points import MassPoints, mass_points
from warpbots.solvers.mass_spring.impulses import StepShares
from warpbots.solvers.mass_spring.model import MassSpringModel, MassSpringState

__all__ = ["MassExchange"]


@dataclasses.dataclass(frozen=True, eq=False)
class MassExchange:
    """The step of the rigid bodies, and the impulses between them and the masses of the matter (`MassImpulses`).

    Attributes:
        bodies: The step of the rigid bodies.
        matter: State of the matter at the start of the step.
    """

    bodies: BodyStep
    matter: MassSpringState

    def place(self, shares: StepShares, X_out: wp.array) -> None:
        """Move bound masses to the places at which the forces of their springs act."""
        if self._later(shares):
            inputs = [len(self._soft.matter), self._bound, real(self._own.start), *self._start]
            launch(self._kernels.place_masses, self._soft.all_masses, inputs, [X_out], self._soft.device)

    def adj_place(self, shares: StepShares, X_adj: wp.array) -> None:
        """Adjoint of `place`, after the adjoint of the stage."""
        if more := self._later(shares):
            inputs, outputs = [len(self._soft.matter), self._bound, real(more), X_adj], self.matter.motion_adj()[1:]
            launch(self._kernels.adj_place_masses, self._soft.all_masses, inputs, outputs, self._soft.device)

    def apply(self, shares: StepShares, free_v: wp.array, ended: list[wp.array | None]) -> None:
        """Find the masses that touch, move the rigid bodies, and subtract their impulses from the masses."""
        work, x = self._work, self._start[0]
        self.bodies.find(x, work.radius, self._start[1] if self._measures else None)
        inputs = [*self._masses, work.weight, *self._times(shares, 0), *self._start, self._row, free_v]
        self._launch(self._kernels.gather_masses, inputs, [self.bodies.exchange.points])
        self.bodies.advance()
        self.apply_again(shares, ended)

    def apply_again(self, shares: StepShares, ended: list[wp.array | None]) -> None:
        """Subtract the impulses of this step from the masses, whose motion without bodies was computed again."""
        exchange = self.bodies.exchange
        inputs = [*self._masses, *self._times(shares, 1), self._row, exchange.points, exchange.impulse]
        self._launch(self._kernels.move_masses, inputs, ended)

    def adjoint(
        self, shares: StepShares, ended_adj: list[wp.array | None], free_v_adj: wp.array, mass_adj: wp.array | None
    ) -> None:
        """Adjoint of `apply`; `ended_adj` is changed in place."""
        work, exchange = self._work, self.bodies.exchange
        inputs = [*self._masses, *self._times(shares, 1), self._row, exchange.points, exchange.impulse]
        self._launch(
            self._kernels.adj_move_masses, inputs, [*ended_adj, mass_adj, work.moved_adj, exchange.impulse_adj]
        )
        work.surface_adj.zero_()
        v_adj = self.matter.motion_adj()[1] if self._measures else None
        self.bodies.adj_advance()
        self.bodies.adj_find(self._start[0], None, work.surface_adj, v_adj)
        inputs = [
            *self._masses[:-1], work.weight, *self._times(shares, 0), self._row, exchange.points,
            exchange.gradients, work.moved_adj,
        ]  # fmt: skip
        outputs = [free_v_adj, mass_adj, *self.matter.motion_adj()]
        self._launch(self._kernels.adj_gather_masses, [*inputs, work.surface_adj], outputs)

    @property
    def _measures(self) -> bool:
        return self.bodies.force is not None

    @property
    def _own(self) -> StepShares:
        """Times with the velocities at the start and at the end of the step, of bound masses [s]."""
        h, last = self.bodies.dt, self.bodies.last_stage
        return StepShares((1.0 - last) * h, last * h)

    def _later(self, shares: StepShares) -> float:
        """Time by which forces on bound masses act later than those on others [s]; 0 without bound masses."""
        return self._own.start - shares.start if len(self.bodies.model.bound) else 0.0

    def _times(self, shares: StepShares, end: int) -> list:
        """The bound masses, and the time with the velocity at the start, or at the end, of others and of these [s]."""
        return [self._bound, scalar(shares[end]), scalar(self._own[end])]

    @property
    def _bound(self) -> wp.array:
        return self.bodies.model.bound.body

    @property
    def _kernels(self) -> MassPoints:
        return mass_points(self.bodies.model.dim)

    @property
    def _soft(self) -> MassSpringModel:
        return self.bodies.model.soft

    @property
    def _work(self) -> MassArrays:
        return self.bodies.model.workspace.matter

    @property
    def _masses(self) -> list:
        """Numbers of bodies, of masses and of threads of a world, and the masses of all worlds."""
        soft = self._soft
        return [self.bodies.model.rigid.tree.bodies, len(soft.matter), self.bodies.lanes, soft.mass.flatten()]

    @property
    def _start(self) -> list[wp.array]:
        return self.matter.motion()

    @property
    def _row(self) -> wp.array:
        return self.bodies.exchange.row

    def _launch(self, kernel: wp.Kernel, inputs: list, outputs: list) -> None:
        launch(kernel, self.bodies.threads, inputs, outputs, self._soft.device)
