"""The global step: a solve with the matrix and the stiffness of gas, plus rotations of unconstrained bodies."""

import warp as wp

from warpbots.numerics import launch, launch_lanes
from warpbots.solvers.projective import initial_guess
from warpbots.solvers.projective.contact import free_rotation
from warpbots.solvers.projective.elements import free_normals
from warpbots.solvers.projective.elements.element import Point
from warpbots.solvers.projective.gas_step import Gas
from warpbots.solvers.projective.global_matrix import GlobalMatrix
from warpbots.solvers.projective.iterate.anderson_arrays import LANES
from warpbots.solvers.projective.iterate.sparse_cholesky import solve
from warpbots.solvers.projective.model import ProjectiveModel

__all__ = ["GlobalStep"]


class GlobalStep:
    """Global steps of all worlds in a step from `x`."""

    def __init__(self, model: ProjectiveModel, matrix: GlobalMatrix, x: wp.array):
        """Collect the arrays; nothing runs yet.

        Args:
            model: The model.
            matrix: The matrix of the model for the length of the step.
            x: Nodes at the start of the step [m], shape (worlds * n_nodes,).
        """
        self._model, self._factor, self._rotation, self._x = model, matrix.factor, matrix.rotation, x
        self._guides, self._normals, self.iteration = matrix.guides, matrix.normals, matrix.iteration
        self.gas = Gas(model, self._held)
        self._workspace, self._sizes, self._device = model.workspace, model.topology.sizes, model.device
        self._bodies = model.worlds, matrix.rotation.count

    def measure(self, v: wp.array, point: Point) -> None:
        """Write gains of the rotations of unconstrained bodies, their angles in free flight, and the stiffness of gas.

        Args:
            v: Velocities of nodes at the start of the step [m/s], shape (worlds * n_nodes,).
            point: The point at which the stiffness of gas is evaluated.
        """
        self.gas.measure(point)
        if self._rotation.count:
            self.place(self._workspace.everywhere, self._workspace.zero)
            inputs = [self._model.nodes, point.h, v, self._workspace.scaling]
            launch_lanes(free_rotation.gain_kernel, self._bodies, LANES, inputs, [self._rotation], self._device)

    def shorten_flight(self, z: wp.array) -> None:
        """Shorten the free flight `z` so that it tears no element, and rotate unconstrained bodies in it."""
        worlds, sizes, flight = self._model.worlds, self._sizes, self._workspace.flight
        islands = self._model.matrices.islands
        for kind, elements in self._model.elements:
            if kind.matter is not None:
                kernel = initial_guess.flight_kernel(kind.matter)
                inputs = [elements, kind.points, islands, self._rotation, self._x, z]
                launch(kernel, (worlds, elements.place.count), inputs, [flight], self._device)
        inputs = [sizes.stride, sizes.nodes, self._model.nodes.held, islands, flight]
        launch(initial_guess.shorten_kernel, (worlds, sizes.first_contact), inputs, [z], self._device)
        if self._rotation.count:
            launch(
                free_rotation.spin_kernel, (worlds, sizes.nodes), [islands, self._rotation, flight], [z], self._device
            )

    def guide(self, f: wp.array) -> None:
        """Project displacements, or forces, of guided nodes onto their lines and planes."""
        if self._guides is not None:
            self._guides.project(f)

    def place(self, active: wp.array, z: wp.array) -> None:
        """Write the centres of mass of unconstrained bodies, and the arms of their nodes, at the point `z`."""
        if self._rotation.count:
            inputs = [self._model.nodes.mass, active, self._x, z]
            launch_lanes(free_rotation.place_kernel, self._bodies, LANES, inputs, [self._rotation], self._device)

    def free_normals(self, point: Point) -> None:
        """Write normals of sheets at a point, and the displacement of nodes along these normals per force."""
        if self._normals.count:
            model, each = self._model, (self._model.worlds, self._normals.count)
            inputs = [point.active, point.x, point.u]
            launch(free_normals.place_kernel, each, inputs, [self._normals], self._device)
            for kind, elements in model.elements:
                if kind.normal_bounds is not None:
                    for kernel, dim, inputs in kind.normal_bounds(elements, model, point, self._normals):
                        launch(kernel, dim, inputs, [], self._device)
            inputs = [model.nodes, point.h, point.active, self._workspace.normal_bound]
            launch(free_normals.gain_kernel, each, inputs, [self._normals], self._device)

    def solve(self, active: wp.array, r: wp.array, f: wp.array, linear: bool) -> None:
        """Write f = B^-1 r for nodes, to first order in rotations for a `linear` problem."""
        self._held(active, r, f)
        self.gas.correct(active, r, f)
        if self._rotation.count:
            inputs, each = [self._rotation, int(linear), active], (self._model.worlds, self._sizes.nodes)
            launch_lanes(free_rotation.torque_kernel, self._bodies, LANES, [active, r], [self._rotation], self._device)
            launch(free_rotation.follow_kernel, each, inputs, [f], self._device)
        if self._normals.count:
            each, inputs = (self._model.worlds, self._normals.count), [self._normals, active, r]
            launch(free_normals.follow_kernel, each, inputs, [f], self._device)

    def _held(self, active: wp.array, r: wp.array, f: wp.array) -> None:
        """Write f = A^-1 r, under the constraints of nodes on lines or planes."""
        solve(self._factor, self._workspace.scaling, active, r, f, self._device)
        if self._guides is not None:
            self._guides.hold(active, self._workspace.scaling, f, self._sizes.nodes)
