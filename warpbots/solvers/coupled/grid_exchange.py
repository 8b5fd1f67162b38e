"""Exchange of impulses between the particles of MPM and rigid bodies in one step, and its adjoint."""

import dataclasses

import warp as wp

from warpbots.numerics import launch, launch_lanes, parallel, real
from warpbots.solvers.articulated.spatial import scalar
from warpbots.solvers.coupled.body_step import BodyStep
from warpbots.solvers.coupled.exchange_arrays import GridArrays
from warpbots.solvers.coupled.grid_gradients import GridGradients, grid_gradients
from warpbots.solvers.coupled.grid_points import GridPoints, grid_points
from warpbots.solvers.mpm.explicit_step import clear, grid_threads
from warpbots.solvers.mpm.model import MPMModel, MPMState
from warpbots.solvers.mpm.workspace import Gathered

__all__ = ["GridExchange"]

_LANES = 64


@dataclasses.dataclass(frozen=True, eq=False)
class GridExchange:
    """The step of the rigid bodies, and the impulses between them and the particles of the matter (`NodeImpulses`).

    Attributes:
        bodies: The step of the rigid bodies.
        matter: State of the matter at the start of the step.
    """

    bodies: BodyStep
    matter: MPMState

    def apply(self, gathered: Gathered) -> None:
        """Find the particles that touch, move the rigid bodies, and subtract their impulses from the grid."""
        exchange, work = self.bodies.exchange, self._work
        self._find_radii()
        self.bodies.find(self.matter.motion.x, work.radius)
        self._find_free_nodes(gathered)
        inputs = [*self._grid, work.weight, self.matter.motion, scalar(self.bodies.dt), exchange.row, exchange.distance]
        self._launch(self._kernels.gather_points, [*inputs, work.nodes], [exchange.points, exchange.share])
        self.bodies.advance()
        self._add_impulses(gathered, -1.0)

    def apply_again(self, gathered: Gathered) -> None:
        """Subtract the impulses of this step from the grid, which was filled again."""
        self._add_impulses(gathered, -1.0)

    def adjoint(self, gathered: Gathered, momentum_adj: wp.array) -> None:
        """Adjoint of `apply`; `momentum_adj` is changed in place."""
        exchange, work, soft = self.bodies.exchange, self._work, self._soft
        motion_adj, gradients, h = self.matter.motion_adj, exchange.gradients, scalar(self.bodies.dt)
        self._launch(
            self._adjoints.adj_scatter_impulses, [soft.geometry, *self._points, momentum_adj], [exchange.impulse_adj]
        )
        self.bodies.adj_advance()
        self._add_impulses(gathered, 1.0)  # the velocities without bodies are needed again
        self._find_free_nodes(gathered)
        self._add_impulses(gathered, -1.0)
        clear(soft, gathered.active, work.nodes_adj)
        inputs = [*self._grid, work.weight, *self._points, exchange.share, exchange.impulse, work.nodes, momentum_adj]
        outputs = [motion_adj, soft.material_adj, work.nodes_adj, gradients.place]
        self._launch(self._adjoints.adj_gather_points, [*inputs, gradients], outputs)
        inputs = [*self._free, gathered.active, gathered.momentum, work.nodes]
        launch(self._adjoints.adj_free_nodes, grid_threads(soft), inputs, [work.nodes_adj, momentum_adj], soft.device)
        outputs = [motion_adj, soft.material_adj, gradients.place]
        self._launch(self._adjoints.adj_scatter_mass, [*self._grid, *self._points, work.nodes_adj], outputs)
        inputs = [soft.material, h, exchange.row, exchange.points, exchange.distance, gradients]
        self._launch(self._adjoints.adj_surface, inputs, [work.distance_adj, gradients.normal, soft.material_adj])
        self.bodies.adj_find(self.matter.motion.x, work.distance_adj, gradients.place)
        self._launch(self._adjoints.move_place_gradients, [exchange.row, gradients.place], [motion_adj])
        self._add_gravity_gradient(gathered)

    def _add_gravity_gradient(self, gathered: Gathered) -> None:
        soft, lanes = self._soft, _LANES if parallel(self._soft.device) else 1
        if soft.gravity.grad is not None:
            inputs = [soft.grid.resolution[-1], soft.grid.pencils, gathered.active, self._work.nodes_adj]
            launch_lanes(
                self._adjoints.add_gravity_gradient, soft.worlds, lanes, inputs, [soft.gravity.grad], soft.device
            )  # fmt: skip

    def _find_radii(self) -> None:
        inputs, outputs = [*self._grid, self.matter.motion], [self._work.radius]
        launch(self._kernels.radius, self._work.radius.size, inputs, outputs, self._soft.device)

    def _find_free_nodes(self, gathered: Gathered) -> None:
        """Write the velocity without bodies, and the share of matter that touches, of the nodes near bodies."""
        soft, nodes = self._soft, self._work.nodes
        clear(soft, gathered.active, nodes)
        self._launch(self._kernels.scatter_mass, [*self._grid, *self._points], [nodes])
        inputs = [*self._free, gathered.active, gathered.momentum]
        launch(self._kernels.free_nodes, grid_threads(soft), inputs, [nodes], soft.device)

    def _add_impulses(self, gathered: Gathered, factor: float) -> None:
        inputs = [self._soft.geometry, *self._points, self.bodies.exchange.impulse, scalar(factor)]
        self._launch(self._kernels.scatter_impulses, inputs, [gathered.momentum])

    @property
    def _kernels(self) -> GridPoints:
        return grid_points(self.bodies.model.dim)

    @property
    def _adjoints(self) -> GridGradients:
        return grid_gradients(self.bodies.model.dim)

    @property
    def _soft(self) -> MPMModel:
        return self.bodies.model.soft

    @property
    def _work(self) -> GridArrays:
        return self.bodies.model.workspace.matter

    @property
    def _grid(self) -> list:
        return [self._soft.material, self._soft.geometry]

    @property
    def _points(self) -> list:
        return [self.matter.motion, self.bodies.exchange.row, self.bodies.exchange.points]

    @property
    def _free(self) -> list:
        soft = self._soft
        return [soft.gravity, soft.grid.resolution[-1], soft.grid.pencils, grid_threads(soft)[1], real(self.bodies.dt)]

    def _launch(self, kernel: wp.Kernel, inputs: list, outputs: list) -> None:
        launch(kernel, self.bodies.exchange.row.size, inputs, outputs, self._soft.device)
