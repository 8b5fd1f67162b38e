"""Bones in the iteration of a step and in its adjoint; without bones nothing runs."""

import warp as wp

from warpbots.numerics import clear_gradients, launch, launch_all, launch_own_adjoint, record
from warpbots.solvers.articulated.implicit_integrators import BDF1, Past
from warpbots.solvers.articulated.measurements import ArticulatedReadings, sense
from warpbots.solvers.articulated.robot_arrays import RobotArrays
from warpbots.solvers.articulated.step_arrays import ImplicitStage
from warpbots.solvers.articulated.step_of_obstacles import StepOfObstacles
from warpbots.solvers.articulated.tree_passes import power_adjoint, sweeps
from warpbots.solvers.articulated.virtual_power import finish_kernel, recall_kernel
from warpbots.solvers.projective.bones import handles, handles_adjoint
from warpbots.solvers.projective.bones.joint_coupling import joint_coupling_kernel
from warpbots.solvers.projective.contact.contact_arrays import ContactArrays, ContactTopology, JointCoupling
from warpbots.solvers.projective.contact_points import ContactPoints
from warpbots.solvers.projective.islands import Islands
from warpbots.solvers.projective.model import ProjectiveModel
from warpbots.solvers.projective.states import ProjectiveState, SkeletalState

__all__ = ["Skeleton", "sense_bones"]

_NUMBER = 1
"""Number of the only stage of implicit Euler."""


class Skeleton:
    """Bones of all worlds in a step from `state`."""

    def __init__(
        self, model: ProjectiveModel, state: ProjectiveState, points: ContactPoints, control: wp.array, dt: float
    ):
        """Collect the arrays; nothing runs yet.

        Args:
            model: The model.
            state: The state at the start of the step.
            points: Nodes and vertices of bone surfaces at the start of the step.
            control: Control signals, shape (worlds, channels).
            dt: Length of the step [s].
        """
        self._model, self._control, self._device = model, control, model.device
        self._there = model.skeleton is not None
        if not self._there:
            return
        self._x = points.position
        self._bones, self._articulated = model.workspace.bones, model.skeleton.workspace
        self._scaling, self._residual = model.workspace.scaling, model.workspace.residual
        self._tree, self._handles = model.skeleton.tree, model.matrices.of(dt).handles
        self._past, self._stage = self._past_of(state, dt), self._stage_from(state)
        self._signal = [
            self._bones.motor, control, model.gravity, self._bones.control, self._bones.gravity
        ]  # fmt: skip

    def _past_of(self, state: ProjectiveState, dt: float) -> Past:
        past = Past()
        past.method, past.h = BDF1, dt
        past.q, past.qd = state.q.flatten(), state.qd.flatten()
        return past

    def _stage_from(self, state: ProjectiveState) -> ImplicitStage:
        """The stage of the workspace, with the joint coordinates of `state`."""
        stage = ImplicitStage()
        for name in ImplicitStage.vars:
            if name != "position":
                setattr(stage, name, getattr(self._articulated.stages[_NUMBER], name))
        stage.q = state.q.flatten()
        return stage

    @property
    def _robot(self) -> RobotArrays:
        return self._model.bones.robot_arrays

    def _launch(self, kernel: wp.Kernel, count: int | None, inputs: list, outputs: list) -> None:
        worlds = self._model.worlds
        launch(kernel, worlds if count is None else (worlds, count), inputs, outputs, self._device)

    def begin(self, z: wp.array) -> None:
        """Write the initial guess of the displacements of the joints."""
        if self._there:
            self._launch(handles.signal_kernel, None, self._signal, [])
            inputs = [self._handles, self._tree, self._past]
            self._launch(handles.begin_joints_kernel, None, inputs, [self._stage, z])

    def pose(self, active: wp.array, z: wp.array) -> None:
        """Move bones, and nodes that are bound to them, to the displacements of joints in the point `z`."""
        if self._there:
            work, plain = self._articulated.work, self._bones.work[0]
            inputs = [self._handles, self._robot, active, self._bones.control, z]
            self._launch(handles.pose_kernel, None, inputs, [self._stage, work, plain])
            inputs = [self._handles, self._tree, work.links, active, self._x]
            self._launch(handles.place_kernel, self._handles.bound, inputs, [z])

    def join(self, active: wp.array) -> None:
        """Write the matrix of the joints with soft bodies at the present poses of bones."""
        if self._there:
            self._launch(handles.join_kernel, None, [self._handles, active, self._scaling], [self._bones.work[0]])

    def correct(self, active: wp.array, f: wp.array, transposed: bool = False) -> None:
        """Write the correction of the joints, and add the corrections of nodes that follow the bones."""
        if self._there:
            work = self._bones.work[int(transposed)]
            inputs = [self._handles, active, self._residual]
            self._launch(handles.handle_force_kernel, self._handles.handles, inputs, [work])
            self._launch(handles.joint_step_kernel, None, [self._handles, active], [work, f])
            self._launch(handles.follow_kernel, self._handles.nodes, [self._handles, active, work], [f])

    def finish(self, islands: Islands, state_out: ProjectiveState, dt: float) -> None:
        """Write coordinates and velocities of the joints at the end of the step."""
        if self._there:
            after = self._past_of(state_out, dt)
            inputs = [self._tree, self._past, self._stage]
            self._launch(finish_kernel, self._tree.elements, inputs, [after])
            of_joints = self._model.topology.state_components[1:]
            for component, name in zip(of_joints, ("q", "qd"), strict=True):
                inputs, outputs = [islands, component, getattr(self._past, name)], [getattr(after, name)]
                self._launch(handles.stay_kernel, component.size, inputs, outputs)

    def recall(self, u: wp.array, state_out: ProjectiveState, dt: float) -> None:
        """Evaluate bones at the end `u` of a step, and write the gradient with respect to the joint displacements."""
        if not self._there:
            return
        stage, tree, everywhere = self._stage, self._tree, self._model.workspace.everywhere
        self._launch(handles.signal_kernel, None, self._signal, [])
        stage.c.fill_(1.0 / dt)
        self._launch(recall_kernel, tree.elements, [tree, self._past, stage, _NUMBER], [stage])
        self.pose(everywhere, u)
        clear_gradients([stage.x, stage.rate, stage.accel, self._bones.control, self._bones.gravity])
        inputs = [tree, self._past, stage, self._past_of(state_out, dt)]
        launch_own_adjoint(finish_kernel, (self._model.worlds, tree.elements), inputs, self._device)

    def differentiate(self, a: wp.array) -> None:
        """Write the Jacobian of the joints and the inverse of their matrix, with the residual in `Workspace.residual`.

        Args:
            a: The adjoint variables, which are still zero.
        """
        if not self._there:
            return
        everywhere, residual = self._model.workspace.everywhere, self._residual
        plain, exchanged = self._bones.work
        self._launch(handles_adjoint.hold_kernel, self._handles.bound, [self._handles, residual], [self._bones.pushed])
        self._launch(handles_adjoint.gather_kernel, self._handles.handles, [self._handles, residual], [plain])
        n = self._tree.freedom
        inputs, outputs = [self._handles, self._tree, self._articulated.work], [plain, self._bones.tangent]
        launch(handles_adjoint.tangent_kernel, (self._model.worlds, n, n), inputs, outputs, self._device)
        self.residual(everywhere, a)
        self._launch(handles.join_kernel, None, [self._handles, everywhere, self._scaling], [exchanged])

    def residual(self, active: wp.array, z: wp.array) -> None:
        """Write the adjoint residual of `z` at the joints, and the displacements of bound nodes to `z`."""
        if self._there:
            plain, exchanged = self._bones.work
            inputs = [self._handles, active, self._bones.tangent, self._stage.x.grad, z]
            self._launch(handles_adjoint.adjoint_residual_kernel, self._tree.freedom, inputs, [exchanged])
            inputs = [self._handles, active, plain, z]
            self._launch(handles_adjoint.velocity_kernel, self._handles.bound, inputs, [z])

    def adjoint(self, z: wp.array) -> None:
        """Add the gradients with respect to the start state, the parameters and the motor signals of the bones.

        `Workspace.residual` has the gradients with respect to the displacements of bound nodes.
        """
        if not self._there:
            return
        tree, bones, articulated = self._tree, self._bones, self._articulated
        bound, residual = self._handles.bound, self._residual
        self._launch(handles_adjoint.hold_kernel, bound, [self._handles, residual], [bones.moved])
        self._launch(handles_adjoint.release_kernel, bound, [self._handles, bones.moved], [self._x.grad])
        self._launch(handles_adjoint.weigh_joints_kernel, tree.freedom, [self._handles, z], [articulated.weight])
        clear_gradients(articulated.gradients())
        launch_all(sweeps(self._model.bones, self._stage), self._device)
        soft = [
            self._handles, tree, articulated.links, articulated.sweep, bones.pushed, bones.moved, bones.power
        ]  # fmt: skip
        bones.power.grad.fill_(1.0)
        launch_own_adjoint(handles_adjoint.soft_body_power_kernel, (self._model.worlds, bound), soft, self._device)
        power_adjoint(self._model.bones, self._stage, bones.control)
        inputs = [tree, self._past, self._stage, _NUMBER, self._stage]
        launch_own_adjoint(recall_kernel, (self._model.worlds, tree.elements), inputs, self._device)
        launch_own_adjoint(handles.signal_kernel, self._model.worlds, self._signal, self._device)

    def couple(
        self,
        active: wp.array,
        topology: ContactTopology,
        contacts: ContactArrays,
        coupling: JointCoupling,
        transposed: bool,
    ) -> None:
        """Write the coupling of contacts with joints."""
        if self._there:
            inputs = [topology, self._handles, self._bones.work[int(transposed)], contacts, active]
            self._launch(joint_coupling_kernel, topology.contacts, inputs, [coupling])


def sense_bones(
    model: ProjectiveModel, state: SkeletalState, control: wp.array, readings_out: ArticulatedReadings
) -> None:
    """Measure bones as `Articulated.sense` measures bodies; records the adjoint on the active tape.

    Args:
        model: The model.
        state: The state to measure.
        control: Control signals, shape (worlds, channels).
        readings_out: The readings to write.
    """
    bones, device = model.workspace.bones, model.device
    signal = [bones.motor, control, model.gravity, bones.control, bones.gravity]
    reads, shared = [control, model.gravity], [bones.control, bones.gravity]

    def fill() -> None:
        launch(handles.signal_kernel, model.worlds, signal, [], device)

    def fill_again() -> None:  # other readings have filled them since
        fill()
        clear_gradients(shared)

    fill()
    record(lambda: launch_own_adjoint(handles.signal_kernel, model.worlds, signal, device), reads, [])
    still = model.bones.still_state(state.q, state.qd, state.lost)
    sense(StepOfObstacles(model.bones, BDF1, still, bones.control), readings_out)
    record(fill_again, [*reads, *shared], [])
