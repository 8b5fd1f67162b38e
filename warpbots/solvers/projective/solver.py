"""The solver of projective dynamics: one step of implicit Euler, and its adjoint by the implicit function theorem."""

import dataclasses
import math
from typing import ClassVar

import numpy as np
import warp as wp

from warpbots.numerics import (
    clear_gradients,
    copy,
    launch,
    launch_lanes,
    launch_own_adjoint,
    precision,
    real,
    record,
    vector,
    while_loop,
)
from warpbots.scene import Scene
from warpbots.scene.field_types import conform
from warpbots.solvers.articulated import Articulated
from warpbots.solvers.articulated.measurements import Readings
from warpbots.solvers.checks import refuse_states_without_gradient, refuse_worlds
from warpbots.solvers.device_arrays import tiled
from warpbots.solvers.projective import initial_guess
from warpbots.solvers.projective.bones_step import Skeleton, sense_bones
from warpbots.solvers.projective.build import build
from warpbots.solvers.projective.contact import free_rotation
from warpbots.solvers.projective.contact_points import Points
from warpbots.solvers.projective.contact_step import Contact
from warpbots.solvers.projective.elements import nodes
from warpbots.solvers.projective.elements.element import Point
from warpbots.solvers.projective.iterate.anderson import LANES, accelerate, begin
from warpbots.solvers.projective.iterate.cholesky import solve
from warpbots.solvers.projective.iterate.minres import hand_over, minres
from warpbots.solvers.projective.model import ProjectiveModel, ProjectiveState, SkeletalState
from warpbots.solvers.projective.nonconvergence import diagnosis
from warpbots.solvers.projective.report import StepReport, report_of
from warpbots.solvers.projective.workspace import Global

__all__ = ["ProjectiveDynamics"]

_TOLERANCE = {"float32": 1e-5, "float64": 1e-8}


@dataclasses.dataclass(frozen=True)
class ProjectiveDynamics:
    """Finite elements with bones in them and implicit Euler, in space (Bouaziz et al. 2014; Qiao et al. 2021).

    A step ends where Phi(x) = 1/(2 h^2) |x - s|_M^2 + E(x) is least (eq. 2): local steps find the stress of every
    element, global steps solve with a constant matrix that is factored once (eq. 5), and Anderson's acceleration makes
    a few dozen of them enough. For other laws than the corotated one that is a quasi-Newton method (Liu et al. 2017).

    Elements are tetrahedra of solids, triangles and hinges of a `Sheet`, and bars of a `Truss`. Whatever the law of
    their material, sheets and bars follow Hooke's law in a frame that turns with them; bending has its own rigidity,
    which does not change with Young's modulus. A sheet or a joint touches an obstacle in its middle: half its thickness
    does not count. Sheets of one `Union` are sewn to each other and to its solids where vertices are at one place, and
    turn freely there. Cables are tied to nodes, the other actuators act on solids alone. Thin cloth that buckles in a
    step has many ends to choose from, and may need shorter steps to find one.

    Rigid bodies of the scene are bones: they take the place of the flesh inside their shapes, and nodes of it that are
    inside or on their surface are bound to them. Their joints, springs, limits and motors are those of `Articulated`
    with implicit Euler. What of a bone is outside of the flesh touches obstacles, soft bodies that hold no part of it,
    and bones that no joint connects it with; with edges of about `cell_size`, and the friction of `RigidBody`. Where
    several contacts hold the same matter, between soft surfaces, at bones and in corners of obstacles, a contact gives
    way by up to a hundredth of what a node, or the bone by its mass, would.

    Coulomb's law holds to a relative 1e-7 of the coefficient in single precision and 1e-10 in double, so that nothing
    creeps below the angle of friction. On a slope of exactly the coefficient nothing holds what already moves, and
    what loads give to a body as they set in, it keeps: a block of 1 MPa that gravity is applied to at once is pressed
    together, swings, and slides on at 2 to 4 mm/s, which a coefficient larger by 0.001 ends within half a second.

    A step has to end with every tetrahedron the right side out, whatever the law. Most laws have a finite energy
    inside out, and ends there, but no motion leads to them, and the way of the search would choose among them.

    A gradient through a contact that is held at the plane where it met, as corners on edges may be, is refused.

    Nodes touch obstacles, and so do spots of faces and bars where an obstacle is less than two edges wide across. A
    step that would end with an edge in the face of another surface, or with an obstacle deep inside of a face, fails,
    and says where.

    Attributes:
        margin: Part of the stability bound that is safe [1]; there is no bound.
        cell_size: Length of the edges of shapes that are no meshes yet [m]; sheets and trusses stay as they are.
        tolerance: A step has converged when a correction moves no node further [mean edges]; None for 1e-5 in single
            and 1e-8 in double precision. The adjoint is solved to the same share of its first correction, or of its
            first residual where nothing touches.
        max_iterations: Number of corrections after which a step has failed.
        memory: Number of corrections that the acceleration remembers.
        collisions: Whether surfaces of soft bodies and bones touch one another, and soft bodies themselves; without,
            they pass through.
        splitting: Whether global steps solve with a diagonal (eq. 21 of Qiao et al. 2021, made to converge on every
            mesh) in the place of a factored matrix: nothing to factor, and all nodes in parallel, for many times as
            many corrections.

    Raises:
        ValueError: A value is outside its range.
    """

    margin: ClassVar[float] = 1.0

    cell_size: float
    tolerance: float | None = None
    max_iterations: int = 2000
    memory: int = 10
    collisions: bool = True
    splitting: bool = False

    def __post_init__(self):
        conform(self)
        if self.cell_size <= 0.0:
            raise ValueError(f"ProjectiveDynamics: cell_size must be positive [m], got {self.cell_size:g}")
        tolerance = _TOLERANCE[precision] if self.tolerance is None else self.tolerance
        if tolerance <= 0.0:
            raise ValueError(f"ProjectiveDynamics: tolerance must be positive [mean edges], got {tolerance:g}")
        object.__setattr__(self, "tolerance", tolerance)
        if self.max_iterations < 1 or self.memory < 1:
            raise ValueError(
                f"ProjectiveDynamics: max_iterations and memory must be at least 1, got {self.max_iterations} and "
                f"{self.memory}"
            )

    @property
    def lost_gradient(self) -> str:
        """How gradients can stop being finite within a step, and what helps."""
        return (
            f"the adjoint of a step did not converge in {self.max_iterations} corrections: use a shorter step, a "
            f"larger tolerance (now {self.tolerance:g}) or WARPBOTS_PRECISION=float64; or soft surfaces met at a "
            f"corner or along edges, held at a plane that no gradient sees turn: use a shorter step or smaller cells"
        )

    def build(self, scene: Scene, worlds: int = 1, device: wp.DeviceLike = None) -> ProjectiveModel:
        """Mesh the bodies of `scene`.

        Raises:
            SceneError: The scene cannot be simulated by projective dynamics; the message says why.
            ValueError: `worlds` is below 1.
        """
        refuse_worlds("ProjectiveDynamics", worlds)
        return build(scene, self.cell_size, self.memory, self.collisions, self.splitting, worlds, wp.get_device(device))

    def state(self, model: ProjectiveModel, requires_grad: bool = False) -> ProjectiveState:
        """Fresh arrays: every node at its rest position with the initial velocity of its body."""

        def copies(values: np.ndarray) -> wp.array:
            return tiled(values, model.worlds, model.device, vector(3), requires_grad)

        nodes = copies(model.matter.position), copies(model.matter.velocity)
        if model.skeleton is None:
            return ProjectiveState(*nodes)
        bones = Articulated().state(model.skeleton, requires_grad)
        return SkeletalState(*nodes, bones.q, bones.qd)

    def max_time_step(self, model: ProjectiveModel, enough: float = math.inf) -> float:
        """Infinity: implicit Euler is stable for every step."""
        return math.inf

    def diagnose(self, model: ProjectiveModel, before: dict, after: dict, dt: float) -> str:
        """Say in one sentence why `after`, one step on from `before`, is not finite.

        Args:
            model: From `build`.
            before: Fields of the last state as NumPy arrays.
            after: Fields of the bad state.
            dt: Length of the step [s].
        """
        tolerance = self.tolerance * model.matter.edge
        return diagnosis(model, before, after, dt, tolerance, self.max_iterations, self.memory)

    def step(
        self, model: ProjectiveModel, state: ProjectiveState, control: wp.array, state_out: ProjectiveState, dt: float
    ) -> None:
        """Advance by `dt` [s]; records its adjoint on the active tape.

        What does not converge is not a number, which `warpbots.Simulation` reports with its step and residual.

        Args:
            model: From `build`.
            state: Where to start; not changed.
            control: Control signals in [-1, 1], shape (worlds, channels).
            state_out: Where to write; different arrays from `state`.
            dt: Time step [s].

        Raises:
            RuntimeError: A gradient is wanted but the states have no room for it.
        """
        scratch, device, h = model.scratch, model.device, real(dt)
        matrix, (x, v) = scratch.matrix(dt), _flat(state)
        it, each = matrix.iteration, (model.worlds, scratch.count)
        z, f, active = it.history.z, it.history.f, it.progress.active
        self._rest(model, control)
        z.zero_()
        launch(nodes.start_kernel, each, [model.nodes, h, x, v], [z], device)
        points = Points(model, state, dt)
        skeleton = Skeleton(model, state, points, control, dt)
        skeleton.begin(z)
        contact = Contact(model, skeleton, points, dt)
        contact.begin()
        self._gain(model, matrix, x, v, h)
        self._shorten(model, matrix, skeleton, x, z)
        begin(it)

        def move(where: wp.array) -> None:
            self._global(model, matrix, where, scratch.lacking, f, linear=False)
            skeleton.correct(where, f)

        def correct() -> None:
            skeleton.pose(active, z)
            skeleton.join(active)
            contact.search(z, self.tolerance)
            self._place(model, matrix, active, x, z)
            self._imbalance(model, Point(active, control, x, z, h), v, scratch.lacking)
            contact.push(active, z)
            move(active)
            contact.sweep(active, z, f)
            contact.follow(f, move)
            accelerate(it, self.tolerance * model.matter.edge, False, self.max_iterations)
            contact.ask(z)

        while_loop(it.progress.any, correct)
        skeleton.pose(scratch.everywhere, z)
        for kind, elements in model.elements:
            if kind.forbid is not None:
                launch(kind.forbid, (model.worlds, elements.place.count), [elements, x, z], [it.progress], device)
        contact.forbid_sinking(z)
        contact.forbid_shortage()
        end = scratch.end(state_out)
        if end is not None:
            contact.keep(end, z)
        launch(nodes.end_kernel, each, [model.nodes, h, it.progress.found, x, z], _flat(state_out), device)
        skeleton.finish(it.progress.found, state_out, dt)
        scratch.stepped.fill_(1)
        reads = [*state.fields(), control, *model.parameter_arrays()]
        record(lambda: self._step_adjoint(model, state, control, state_out, dt), reads, state_out.fields())

    def report(self, model: ProjectiveModel, dt: float) -> StepReport:
        """How the last step ended: its corrections, what they left of the imbalance, and the forces of contacts.

        Args:
            model: Where it ran.
            dt: Its length [s].

        Raises:
            RuntimeError: No step of this length is the last thing that ran.
        """
        return report_of(model, dt, self.tolerance)

    def readings(self, model: ProjectiveModel, requires_grad: bool = False) -> Readings:
        """Fresh arrays for `sense`.

        Raises:
            TypeError: The scene has no bones.
        """
        _refuse_boneless(model)
        return Articulated().readings(model.skeleton, requires_grad)

    def sense(self, model: ProjectiveModel, state: SkeletalState, control: wp.array, readings_out: Readings) -> None:
        """Measure bones: poses, velocities, energies and torques; records its adjoint on the active tape.

        Args:
            model: From `build`.
            state: What to measure.
            control: Control signals, on which the torques depend, shape (worlds, channels).
            readings_out: Where to write, from `readings`.

        Raises:
            TypeError: The scene has no bones.
            RuntimeError: A gradient is wanted but the arrays have no room for it.
        """
        _refuse_boneless(model)
        sense_bones(model, state, control, readings_out)

    def _rest(self, model: ProjectiveModel, control: wp.array) -> None:
        """What comes before all displacements: shapes at rest, masses, and the scale of the global matrix."""
        scratch, device = model.scratch, model.device
        for kernel, dim, inputs in self._rest_launches(model, control):
            launch(kernel, dim, inputs, [], device)
        ratios = scratch.ratios
        ratios.zero_()
        for kind, elements in model.elements:
            if kind.scaling is not None:
                launch(kind.scaling, (model.worlds, elements.place.count), [elements], [ratios], device)
        inputs = [model.nodes, scratch.nominal_mass]
        launch(nodes.scaling_kernel, (model.worlds, scratch.count), inputs, [ratios], device)
        if ratios.shape[1] > 1:
            launch_lanes(nodes.largest_kernel, model.worlds, LANES, [ratios], [scratch.scaling], device)

    def _gain(self, model: ProjectiveModel, matrix: Global, x: wp.array, v: wp.array, h: float) -> None:
        """How freely bodies turn that start at `x`, and how far with velocities `v`."""
        if matrix.turning.count:
            scratch, each = model.scratch, (model.worlds, matrix.turning.count)
            self._place(model, matrix, scratch.everywhere, x, scratch.nowhere)
            inputs = [h, model.nodes, scratch.scaling, v]
            launch_lanes(free_rotation.gain_kernel, each, LANES, inputs, [matrix.turning], model.device)

    def _shorten(self, model: ProjectiveModel, matrix: Global, skeleton: Skeleton, x: wp.array, z: wp.array) -> None:
        """Leave of free flight `z` what tears nothing, and let bodies turn in it."""
        scratch, device, worlds = model.scratch, model.device, model.worlds
        scratch.flight.fill_(1.0)
        skeleton.pose(scratch.everywhere, z)
        for kind, elements in model.elements:
            if kind.flight is not None:
                inputs = [elements.place, elements.node, matrix.turning, x, z]
                launch(kind.flight, (worlds, elements.place.count), inputs, [scratch.flight], device)
        inputs = [scratch.stride, scratch.count, model.nodes.held, scratch.flight]
        launch(initial_guess.shorten_kernel, (worlds, scratch.points + scratch.freedom), inputs, [z], device)
        if matrix.turning.count:
            launch(free_rotation.spin_kernel, (worlds, scratch.count), [matrix.turning, scratch.flight], [z], device)

    def _place(self, model: ProjectiveModel, matrix: Global, active: wp.array, x: wp.array, z: wp.array) -> None:
        """Where bodies that turn freely are at the point `z`."""
        if matrix.turning.count:
            each = model.worlds, matrix.turning.count
            inputs = [model.nodes.mass, active, x, z]
            launch_lanes(free_rotation.place_kernel, each, LANES, inputs, [matrix.turning], model.device)

    def _global(
        self, model: ProjectiveModel, matrix: Global, active: wp.array, r: wp.array, f: wp.array, linear: bool
    ) -> None:
        """The global step f = B^-1 r of nodes, to first order in rotations for a `linear` problem."""
        worlds, bodies = model.worlds, matrix.turning
        solve(matrix.factor, model.scratch.scaling, active, r, f, model.device)
        if bodies.count:
            launch_lanes(
                free_rotation.torque_kernel, (worlds, bodies.count), LANES, [active, r], [bodies], model.device
            )
            launch(
                free_rotation.follow_kernel,
                (worlds, model.scratch.count),
                [bodies, int(linear), active],
                [f],
                model.device,
            )

    def _rest_launches(self, model: ProjectiveModel, control: wp.array) -> list[tuple]:
        scratch = model.scratch
        return [
            *(
                step
                for kind, elements in model.elements
                if kind.rest is not None
                for step in kind.rest(elements, model, control)
            ),
            (nodes.mass_kernel, (model.worlds, scratch.count), [model.nodes, scratch.corner_mass, model.nodes]),
        ]

    def _imbalance(self, model: ProjectiveModel, point: Point, v: wp.array, lacking: wp.array) -> None:
        """Write the imbalance of forces at a point."""
        for kernel, dim, inputs in self._imbalance_launches(model, point, v, lacking):
            launch(kernel, dim, inputs, [], model.device)

    def _imbalance_launches(self, model: ProjectiveModel, point: Point, v: wp.array, lacking: wp.array) -> list[tuple]:
        forces = [step for kind, elements in model.elements for step in kind.forces(elements, model, point)]
        inputs = [model.nodes, point.h, point.active, v, point.u, model.scratch.force, lacking]
        return [*forces, (nodes.imbalance_kernel, (model.worlds, model.scratch.count), inputs)]

    def _step_adjoint(
        self, model: ProjectiveModel, state: ProjectiveState, control: wp.array, state_out: ProjectiveState, dt: float
    ) -> None:
        """Gradients of `step` from those of `state_out`.

        With the imbalance b(u, theta) = 0 at its end, the gradient g to u and H = -db/du, a step gives
        theta* += (db/dtheta)^T H^-1 g.
        """
        refuse_states_without_gradient("ProjectiveDynamics", state=state.fields(), state_out=state_out.fields())
        scratch, device, h = model.scratch, model.device, real(dt)
        matrix, (x, v) = scratch.matrix(dt), _flat(state)
        it, each = matrix.iteration, (model.worlds, scratch.count)
        u, seed, everywhere = scratch.displacement, scratch.seed, scratch.everywhere
        ended = [state_out.velocity.flatten(), state_out.position.grad.flatten(), state_out.velocity.grad.flatten()]
        scratch.stepped.zero_()
        self._rest(model, control)
        launch(nodes.seed_kernel, each, [model.nodes, h, *ended], [u, seed], device)
        end = scratch.end(state_out)
        if end is not None:
            copy(u, end.z)
        points = Points(model, state, dt)
        skeleton = Skeleton(model, state, points, control, dt)
        skeleton.recall(u, state_out, dt)
        contact = Contact(model, skeleton, points, dt)
        contact.recall(end, u)
        self._gain(model, matrix, x, v, h)
        self._place(model, matrix, everywhere, x, u)
        point = Point(everywhere, control, x, u, h)
        it.history.z.zero_()
        if model.skeleton is not None:
            self._imbalance(model, point, v, scratch.lacking)
            contact.push(everywhere, u)
            skeleton.differentiate(it.history.z)
        contact.differentiate(u)
        self._solve_adjoint(model, point, skeleton, contact, matrix, h)
        contact.refuse_loose(u)
        contact.forbid_shortage()
        inputs = [scratch.stride, it.progress.found]
        launch(nodes.spoil_kernel, (model.worlds, scratch.stride), inputs, [it.history.z], device)
        launch(nodes.weigh_kernel, each, [model.nodes, it.history.z], [scratch.lacking.grad], device)
        clear_gradients([u, scratch.force, scratch.corner_mass, *scratch.rested])
        balance = self._imbalance_launches(model, point, v, scratch.lacking)
        for kernel, dim, inputs in reversed(self._rest_launches(model, control) + balance):
            launch_own_adjoint(kernel, dim, inputs, device)
        contact.adjoint(u, it.history.z)
        skeleton.adjoint(it.history.z)
        points.adjoint()
        inputs = [model.nodes, seed, u.grad, ended[1]]
        launch(nodes.settle_kernel, each, inputs, [x.grad, model.nodes.anchor.grad], device)

    def _solve_adjoint(
        self, model: ProjectiveModel, point: Point, skeleton: Skeleton, contact: Contact, matrix: Global, h: float
    ) -> None:
        """Solve H a = u*: by minimal residuals where H is symmetric, else by the iteration of the step.

        For a linear problem the iteration of the step is linear. H is symmetric without contact, a fluid and bones.
        What is left of u* at nodes that are bound to bones stays in `lacking`.
        """
        scratch, device, it = model.scratch, model.device, matrix.iteration
        scratch.column.zero_()
        for kind, elements in model.elements:
            for kernel, dim, inputs in kind.stiffness(elements, model, point):
                launch(kernel, dim, inputs, [], device)
        a, f = it.history.z, it.history.f
        a.zero_()

        def residual(active: wp.array, g: wp.array, a: wp.array, out: wp.array) -> None:
            inputs = [model.nodes, h, active, scratch.row, scratch.neighbour, scratch.column, g, a]
            launch(nodes.product_kernel, (model.worlds, scratch.count), inputs, [out], device)

        def precondition(active: wp.array, r: wp.array, out: wp.array) -> None:
            self._global(model, matrix, active, r, out, linear=True)

        def left(active: wp.array) -> None:
            skeleton.residual(active, a)
            residual(active, scratch.seed, a, scratch.lacking)
            contact.pull(active, point.u, a)

        limit = self.max_iterations
        if model.skeleton is None and model.scene.fluid is None:
            krylov = scratch.krylov
            minres(krylov, scratch.meeting, scratch.seed, a, residual, precondition, self.tolerance, limit)
            begin(it)
            hand_over(krylov, it.progress)
        else:
            begin(it)

        def move(where: wp.array) -> None:
            precondition(where, scratch.lacking, f)
            skeleton.correct(where, f, transposed=True)

        def correct() -> None:
            active = it.progress.active
            left(active)
            move(active)
            contact.sweep_adjoint(active, a, f)
            contact.follow_adjoint(point.u, f, move)
            accelerate(it, self.tolerance, True, limit)

        while_loop(it.progress.any, correct)
        if model.skeleton is not None:
            left(scratch.everywhere)


def _refuse_boneless(model: ProjectiveModel) -> None:
    if model.skeleton is None:
        raise TypeError("ProjectiveDynamics measures bones alone, and the scene has none; its states hold all there is")


def _flat(state: ProjectiveState) -> list[wp.array]:
    return [state.position.flatten(), state.velocity.flatten()]
