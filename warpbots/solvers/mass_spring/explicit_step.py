"""One explicit step of a lattice, and its adjoint."""

import dataclasses
import functools

import warp as wp

from warpbots.contact.moving_frames import MovingPoses
from warpbots.contact.solid import Solids
from warpbots.numerics import NODE, copy, launch, launch_adjoint, launch_slices, real
from warpbots.scene import HalfSpace
from warpbots.solvers.mass_spring.constraints import adj_project_end_kernel, project_end_kernel
from warpbots.solvers.mass_spring.explicit_integrators import Scheme
from warpbots.solvers.mass_spring.impulses import MassImpulses, StepShares
from warpbots.solvers.mass_spring.model import MassSpringModel, MassSpringState
from warpbots.solvers.mass_spring.moving_constraints import carry_kernel
from warpbots.solvers.mass_spring.obstacle_contact import contact_kernel, stop_kernel
from warpbots.solvers.mass_spring.rest_lengths import (
    add_plastic_strain,
    adj_add_plastic_strain,
    adj_drive,
    adj_yield_and_break,
    drive,
    yield_and_break,
)
from warpbots.solvers.mass_spring.stage_forces import add_forces, adj_add_forces, project_forces
from warpbots.solvers.mass_spring.stages import adj_end_kernel, adj_stage_kernel, end_kernel, stage_kernel
from warpbots.solvers.moving_frames import FrameState

__all__ = ["ExplicitStep"]


@dataclasses.dataclass(frozen=True, eq=False)
class ExplicitStep:
    """An explicit step from one state to the next, with its adjoint.

    Attributes:
        model: The model.
        state: State at the start of the step; not changed.
        control: Control signals in [-1, 1], shape (worlds, channels).
        state_out: State at the end of the step.
        h: Length of the step [s].
        scheme: The integrator.
        contact_damping: Damping of contact with obstacles, as in `MassSpring` [s/m].
        thinnest: Smallest thickness of all obstacles [m]; a mass that passes through an obstacle of this thickness is
            still detected.
        impulses: Impulses from outside; None if there are none.
    """

    model: MassSpringModel
    state: MassSpringState
    control: wp.array
    state_out: MassSpringState
    h: float
    scheme: Scheme
    contact_damping: float
    thinnest: float
    impulses: MassImpulses | None = None

    def run(self) -> None:
        """Advance by one step."""
        model, end = self.model, self.model.workspace.end
        force = model.workspace.stage.force(self.state_out)
        if model.scaled:
            model.scaled.fill()
        for stage in range(self.scheme.stages):
            self._begin_stage(stage, force, force)
            if model.inelastic:
                if stage == 0:
                    yield_and_break(model, self.state, self.state_out)
                add_plastic_strain(model, self.state_out)
            add_forces(model, self.control, self.state_out, self._at(stage, force))
            project_forces(model, self._at(stage, force))
        ended = self.state_out.motion()
        free = end.free if model.scene.obstacles else ended
        self._end([*free, self.state_out.time], force)
        if self.impulses is not None:
            self.impulses.apply(self._shares, free[1], free)
        if model.scene.obstacles:
            self._contact(ended)
        if model.held.size:
            self._constrain(ended)
        if model.carries:
            for own, array in zip(end.uncarried, ended, strict=True):
                copy(own, array)
            self._carry(ended)
        if model.frames.drives:
            model.frames.place(self._frame_state, self.h, 0.0)
            model.frames.advance(self._frame_state, self.h, self.state_out.travel)
        model.frames.end_runs(self.h, self.state_out.time)

    def adjoint(self) -> None:
        """Adjoint of `run`: propagate the gradients of `state_out` to the state, the control and the model.

        The adjoint of the end of the step comes first, then the adjoints of the stages, the last stage first.
        """
        model, state, work = self.model, self.state, self.model.workspace
        force, force_adj = work.stage.force(self.state_out), work.stage.force_adj
        motion_adj = state.motion_adj()
        if model.scaled:
            model.scaled.fill()
            model.scaled.clear_gradients()
        mass_adj, drag_adj, load_adj = (
            None if a.grad is None else a.grad.flatten() for a in (model.mass, model.drag, model.load)
        )
        gravity_adj = work.copies.gradient("gravity", model.gravity)
        ended_adj = self.state_out.motion_adj()
        model.frames.clear_gradients()
        if model.frames.drives:
            model.frames.adj_advance(self._frame_state, self.h, self.state_out.travel)
        if model.carries:
            ended_adj = self._adj_carry(ended_adj, force, motion_adj[0])
        if model.held.size:
            ended_adj = self._adj_constrain(ended_adj, motion_adj[0])
        if model.scene.obstacles:
            ended_adj = self._adj_contact(ended_adj, force, mass_adj, motion_adj)
        if self.impulses is not None:
            ended_adj = self._adj_impulses(ended_adj, mass_adj)
        launch_slices(
            adj_end_kernel(model.dim, self.scheme.stages), model.all_masses,
            [*self._end_weights(), force, *ended_adj, self.state_out.time.grad],
            [mass_adj, *motion_adj, state.time.grad, force_adj], model.device,
        )  # fmt: skip
        if model.inelastic:
            copy(work.rest_length.strain_adj, self.state_out.plastic.grad)
            copy(work.rest_length.broken_adj, self.state_out.broken.grad)
        for stage in reversed(range(self.scheme.stages)):
            self._adj_stage(stage, force, force_adj)
            launch_slices(
                adj_stage_kernel(model.dim, stage), model.all_masses,
                [
                    *_flat([model.mass, model.drag, model.gravity]), len(model.lattice), work.copies.count,
                    *self._stage_weights(stage), work.stage.v, force, work.stage.x_adj, work.stage.v_adj,
                ],
                [mass_adj, drag_adj, load_adj, gravity_adj, *motion_adj, force_adj], model.device,
                alone=gravity_adj is not None,
            )  # fmt: skip
            if self.impulses is not None:
                self.impulses.adj_place(self._shares, work.stage.x_adj)
        work.copies.collect("gravity", model.gravity)
        if model.scaled:
            model.scaled.adjoint()

    def _begin_stage(self, stage: int, force: wp.array, force_out: wp.array) -> None:
        """Compute positions, velocities, body forces and actuated rest lengths of a stage.

        `force` holds the forces of all earlier stages; the weight, load and drag of this stage are written to
        `force_out`.
        """
        model, work = self.model, self.model.workspace.stage
        masses = _flat([model.mass, model.drag, model.load, model.gravity])
        inputs = [*masses, len(model.lattice), *self._stage_weights(stage), *self.state.motion(), force]
        outputs = [work.x, work.v, force_out]
        launch_slices(stage_kernel(model.dim, stage), model.all_masses, inputs, outputs, model.device)
        if self.impulses is not None:
            self.impulses.place(self._shares, work.x)
        if model.driven:
            drive(model, self.state, self.control, self.scheme.c[stage] * self.h)

    def _adj_stage(self, stage: int, force: wp.array, force_adj: wp.array) -> None:
        """Compute the gradients with respect to positions, velocities and rest lengths of a stage from `force_adj`.

        The method also adds to the gradients with respect to the state, the control and the model.
        """
        model, work, rest_length = self.model, self.model.workspace.stage, self.model.workspace.rest_length
        self._begin_stage(stage, force, work.scratch)
        work.x_adj.zero_()
        work.v_adj.zero_()
        if model.driven:
            rest_length.driven.grad.zero_()
        if model.inelastic:
            add_plastic_strain(model, self.state_out)
            rest_length.plastic.grad.zero_()
        project_forces(model, self._at(stage, force_adj))
        adj_add_forces(model, self.control, self.state_out, self._at(stage, force_adj))
        if model.inelastic:
            adj_add_plastic_strain(model, self.state_out)
            if stage == 0:
                adj_yield_and_break(model, self.state, self.state_out)
        if model.driven:
            adj_drive(model, self.state, self.control, self.scheme.c[stage] * self.h)

    def _at(self, stage: int, force: wp.array) -> wp.array:
        """The slice of the array `force` that holds the forces of this stage."""
        n = self.model.all_masses
        return force[stage * n : (stage + 1) * n]

    def _end(self, ended: list[wp.array], force: wp.array) -> None:
        """Write the position, velocity and time at the end of a step without contact and constraints to `ended`."""
        model = self.model
        passed = model.frames.time_step(self.h)
        inputs = [*self._end_weights(), passed, *self.state.motion(), self.state.time, force]
        launch_slices(end_kernel(model.dim, self.scheme.stages), model.all_masses, inputs, ended, model.device)

    def _end_again(self, ended: list[wp.array], force: wp.array) -> None:
        """Write the motion at the end of the step before contact with obstacles to `ended`, for the adjoint."""
        self._end([*ended, self.model.workspace.end.free_time], force)
        if self.impulses is not None:
            self.impulses.apply_again(self._shares, ended)

    @property
    def _shares(self) -> StepShares:
        """Times for which a mass in contact moves with its velocities at the start and at the end of the step [s]."""
        follow = self.h * sum(self.scheme.p)
        return StepShares(self.h - follow, follow)

    def _adj_impulses(self, ended_adj: list[wp.array], mass_adj: wp.array | None) -> list[wp.array]:
        """Gradients with respect to positions and velocities at the end of the step before the impulses, from after."""
        before = self.model.workspace.end.free_adj
        for own, array in zip(before, ended_adj, strict=True):
            if own is not array:
                copy(own, array)
        self.impulses.adjoint(self._shares, before, before[1], mass_adj)
        return before

    @functools.cached_property
    def _frame_state(self) -> FrameState:
        return self.model.frame_state(self.state, self.control)

    def _place_obstacles(self) -> None:
        """Compute the poses of obstacles at the first stage."""
        self.model.frames.place(self._frame_state, self.h, self.scheme.c[0] * self.h)

    def _contact(self, ended: list[wp.array]) -> None:
        """Apply contact with obstacles to the positions and velocities `ended`.

        A mass that passes through an obstacle gets the position NaN.
        """
        self._place_obstacles()
        model = self.model
        inputs = self._contact_inputs(model.friction, 1)
        launch(self._contact_kernel(), model.all_masses, inputs, ended, model.device)
        if len(model.frames) or not all(isinstance(o.shape, HalfSpace) for o in model.scene.obstacles):
            inputs = [
                model.obstacles, model.frames.solids, int(len(model.frames) > 0), real(0.5 * self.thinnest),
                len(model.lattice), wp.float64(self.h), self.state.position.flatten(),
            ]  # fmt: skip
            launch(stop_kernel(model.dim), model.all_masses, inputs, ended[:1], model.device)

    def _adj_contact(
        self, ended_adj: list[wp.array], force: wp.array, mass_adj: wp.array | None, motion_adj: list[wp.array]
    ) -> list[wp.array]:
        """Gradients with respect to the positions and velocities at the end of the step before contact.

        `ended_adj` holds the gradients with respect to the positions and velocities after contact.
        """
        model, end, copies = self.model, self.model.workspace.end, self.model.workspace.copies
        self._end_again(end.free, force)
        for array in end.free_adj:
            array.zero_()
        copies = copies.wanted(model.friction)
        self._place_obstacles()
        launch_adjoint(
            self._contact_kernel(), model.all_masses,
            self._contact_inputs(copies.values("friction", model.friction), copies.count), self.state_out.motion(),
            [
                mass_adj, None, None, Solids(), MovingPoses(), None, None,
                copies.gradient("friction", model.friction), *[None] * 5, *motion_adj, *end.free_adj,
            ],
            ended_adj, model.device,
        )  # fmt: skip
        copies.collect("friction", model.friction)
        model.frames.adj_place(self._frame_state, self.h, self.scheme.c[0] * self.h)
        return end.free_adj

    def _contact_kernel(self) -> wp.Kernel:
        return contact_kernel(self.model.dim, len(self.model.scene.obstacles), self.scheme.stages)

    def _contact_inputs(self, friction: wp.array, copies: int) -> list:
        model, scheme = self.model, self.scheme
        return [
            model.mass.flatten(), model.contact, real(self.contact_damping), *model.surfaces, friction,
            len(model.lattice), copies, real(scheme.c[0] * self.h), real(self._shares.end), real(self.h),
            *self.state.motion(), *model.workspace.end.free,
        ]  # fmt: skip

    def _constrain(self, ended: list[wp.array]) -> None:
        """Project displacements and velocities at the end of the step onto the directions that constraints allow."""
        model = self.model
        inputs = [*model.constraints, self.state.position.flatten()]
        launch(project_end_kernel(model.dim), (model.worlds, model.held.size), inputs, ended, model.device)

    def _adj_constrain(self, ended_adj: list[wp.array], x_adj: wp.array) -> list[wp.array]:
        """Gradients with respect to the positions and velocities before the constraints are applied.

        `ended_adj` holds the gradients with respect to the positions and velocities after that.
        """
        model, before = self.model, self.model.workspace.end.before_constraints_adj
        for own, array in zip(before, ended_adj, strict=True):
            copy(own, array)
        held = (model.worlds, model.held.size)
        launch(adj_project_end_kernel(model.dim), held, model.constraints, [x_adj, *before], model.device)
        return before

    def _carry(self, ended: list[wp.array]) -> None:
        """Apply constraints that move to the motion in `end.uncarried`, and write the result to `ended`."""
        model = self.model
        model.frames.place(self._frame_state, self.h, 0.0)
        shape = self.state.position.shape
        launch(carry_kernel(model.dim), shape, self._carry_inputs(), [a.reshape(shape) for a in ended], model.device)

    def _carry_inputs(self) -> list:
        model, shape = self.model, self.state.position.shape
        constants = [model.carried, model.freedom, model.direction, model.rest, real(self.h)]
        free = [a.reshape(shape) for a in model.workspace.end.uncarried]
        return [*constants, self.state.position, model.frames.frames, *free]

    def _adj_carry(self, ended_adj: list[wp.array], force: wp.array, x_adj: wp.array) -> list[wp.array]:
        """Gradients with respect to the positions and velocities before `_carry`, from those after it."""
        model, end, shape = self.model, self.model.workspace.end, self.state.position.shape
        self._end_again(end.free if model.scene.obstacles else end.uncarried, force)
        if model.scene.obstacles:
            self._contact(end.uncarried)
        if model.held.size:
            self._constrain(end.uncarried)
        model.frames.place(self._frame_state, self.h, 0.0)
        for array in end.uncarried_adj:
            array.zero_()
        launch_adjoint(
            carry_kernel(model.dim), shape, self._carry_inputs(),
            [a.reshape(shape) for a in self.state_out.motion()],
            [*[None] * 5, x_adj.reshape(shape), MovingPoses(), *(a.reshape(shape) for a in end.uncarried_adj)],
            [a.reshape(shape) for a in ended_adj], model.device,
        )  # fmt: skip
        model.frames.adj_place(self._frame_state, self.h, 0.0)
        model.frames.clear_gradients()
        return end.uncarried_adj

    def _stage_weights(self, stage: int) -> list:
        scheme, h = self.scheme, self.h
        return [real(scheme.c[stage] * h), _weights(h * h, scheme.A[stage]), _weights(h, scheme.B[stage])]

    def _end_weights(self) -> list:
        weights = [_weights(self.h * self.h, self.scheme.p), _weights(self.h, self.scheme.q)]
        return [self.model.mass.flatten(), len(self.model.lattice), real(self.h), *weights]


def _weights(factor: float, row: tuple[float, ...]) -> NODE:
    """Multiply a row of at most four weights of a scheme by `factor`, and pad the row with zeros."""
    return NODE(*(factor * w for w in row), *(0.0,) * (4 - len(row)))


def _flat(arrays: list[wp.array]) -> list[wp.array]:
    """Flatten each array, so that all worlds are in one row."""
    return [a.flatten() for a in arrays]
