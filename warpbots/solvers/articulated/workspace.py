"""Workspace of a model: arrays that every step fills anew, and data that a state keeps for the adjoint of a step."""

import dataclasses
import functools

import warp as wp

from warpbots.contact.moving_frames import MovingPoses
from warpbots.solvers.adjoint_cache import AdjointCache
from warpbots.solvers.articulated.contact_list import ContactList
from warpbots.solvers.articulated.exchange_arrays import Exchange
from warpbots.solvers.articulated.impacts import CONTACTS, Impact
from warpbots.solvers.articulated.impulses import ROWS, ImpulseArrays
from warpbots.solvers.articulated.newton import Factors, Report
from warpbots.solvers.articulated.spatial import Twist, mat33, scalar, vec3
from warpbots.solvers.articulated.step_arrays import Change, ImplicitStage, Links, Pairs, StepArrays, Subtree, Subtrees
from warpbots.solvers.articulated.thread_team import lanes_of
from warpbots.solvers.moving_frames import MovingFrames

__all__ = ["StoredStep", "EquationArrays", "ArticulatedSizes", "ArticulatedWorkspace"]


@dataclasses.dataclass(frozen=True)
class ArticulatedSizes:
    """Number of worlds, and the sizes that determine the shapes of the arrays of one world.

    Attributes:
        worlds: Number of worlds.
        elements: Number of elementary joints.
        bodies: Number of bodies.
        freedom: Number of joint velocities.
        groups: Number of groups of contact points.
        pairs: Number of pairs that may be in contact (`ContactLaws`).
        motors: Number of motors.
        coordinates: Number of joint coordinates.
        impacts: Whether steps are taken in parts (`impacts`), so that the lengths of parts have gradients.
    """

    worlds: int
    elements: int
    bodies: int
    freedom: int
    groups: int
    pairs: int
    motors: int
    coordinates: int
    impacts: bool


@dataclasses.dataclass(frozen=True)
class StoredStep:
    """Data that a state keeps for the adjoint of the step that ended in this state.

    With n joint velocities, the data of each world are 2 (n^2 + 3 n + 1) numbers and 2 n integers. Half of these data
    belong to the first of two stages.

    Attributes:
        stages: The two stages; an integrator with one stage uses only the second.
        factors: LU factors of the Jacobian of each stage.
    """

    stages: tuple[ImplicitStage, ImplicitStage]
    factors: tuple[Factors, Factors]


@dataclasses.dataclass(frozen=True)
class StoredPart:
    """Data that a state keeps for the adjoint of a part of the step that ended in this state; see `impacts`.

    Attributes:
        q: Joint coordinates at the start of the part [rad, m, or quaternions], shape (worlds * n_coordinates,); not
            used for the first part.
        qd: Joint velocities at the start of the part [rad/s or m/s], shape (worlds * n_velocities,); not used for the
            first part.
        impact: The impact at the end of the part.
        end: Data for the adjoint of the integrator's step within the part.
    """

    q: wp.array
    qd: wp.array
    impact: Impact
    end: StoredStep


@dataclasses.dataclass(frozen=True)
class EquationArrays:
    """Intermediate results for the equations of motion, flattened over all worlds.

    All arrays except `factors` and `weight` have gradients.

    Attributes:
        axis: Twist of a unit value of each joint velocity [1, m], shape (worlds * n_velocities,).
        need: Wrench that each body needs for its motion at constant joint velocities [N m, N], shape (worlds *
            n_bodies,).
        contact: Wrench of each contact on the body of the contact point [N m, N], shape (worlds * n_candidates,).
        push: Wrench of all contacts on each body [N m, N], shape (worlds * n_bodies,).
        transmitted: Wrench that the joint of each body transmits to the body, about the origin of the world [N m, N],
            shape (worlds * n_bodies,).
        subtrees: Sums over the bodies that each element carries.
        factors: LU factors of the mass matrix M.
        weight: The vector M^-T a*, with the gradient a* with respect to the accelerations, shape (worlds *
            n_velocities,).
    """

    axis: wp.array
    need: wp.array
    contact: wp.array
    push: wp.array
    transmitted: wp.array
    subtrees: Subtrees
    factors: Factors
    weight: wp.array

    def gradients(self) -> list[wp.array]:
        """Arrays to whose gradients the adjoints of several kernels add, so that they must be set to zero before."""
        sums = [getattr(self.subtrees, name) for name in Subtrees.vars]
        return [self.axis, self.need, self.contact, self.push, self.transmitted, *sums]


class ArticulatedWorkspace:
    """Arrays of one model that every step fills anew.

    Attributes:
        work: Residual and Jacobian of a stage, with all intermediate results.
        links: Poses and motion of elements and bodies, with gradients, for adjoints and measurements.
        report: Convergence of Newton's method in the last step.
        still: A stage with zero displacement; kernels do not read its `rate`.
        stages: Copies, with gradients, of the stages of the step whose adjoint is computed.
        between: Candidates of a body between two obstacles that have met, -1 for none, shape (worlds, 2), int.
        weight: Virtual joint velocities [rad/s or m/s], shape (worlds * n_velocities,).
        sweep: Virtual twist of each element [rad/s, m/s], shape (worlds * n_elements,).
        power: Virtual power of each element [W], shape (worlds, n_elements).
        motor_power: Virtual power of each motor [W], shape (worlds, n_motors).
        contact_power: Virtual power of each contact [W], shape (worlds * n_candidates,).
        contact_list: The contacts of a configuration.
        contact_wrench: Wrench of each contact on the body of the contact point [N m, N], shape (worlds *
            n_candidates,).
        whole: Length of the step in which obstacles move [s], shape (worlds,).
        moment: Time after the start of this step at which obstacles are placed [s], shape (worlds,).
        nothing: Array without entries, with a gradient, shape (worlds, 0).
        nothing_left: Time left after the last part of a step, which is zero [s], shape (worlds,).
        gap: Gap that vanishes at the time of the impact [m], shape (worlds,).
        changed: Change of the twist of each element in an impact [rad/s, m/s], shape (worlds * n_elements,).
        hit_power: Weighted equation y . r - l . J^T p of each contact of an impact, shape (worlds * CONTACTS,).
        contacts_at_start: Effective masses and depths that `contact_time_step` computed last, and the arrays on which
            they depend; None before the first computation.
    """

    def __init__(self, sizes: ArticulatedSizes, contact_list: ContactList, frames: MovingFrames, device: wp.Device):
        self._sizes, self._device = sizes, device
        poses = {name: getattr(frames.frames, name) if frames else None for name in MovingPoses.vars}
        self._frames = {f"frame_{name}": array for name, array in poses.items()}
        self._ends: AdjointCache = AdjointCache()
        self._parts: AdjointCache = AdjointCache()
        w, n = sizes.worlds, sizes.freedom
        elements, pairs, groups = w * sizes.elements, w * sizes.pairs, w * sizes.groups
        threads = w * lanes_of(device) if pairs else 0
        self.links = self._links(elements, w * sizes.bodies, requires_grad=True)
        self.work = self._struct(
            StepArrays,
            [
                *2 * [(w * sizes.bodies, mat33)], (elements, Subtree), (w * n, Twist), (w * n, Change),
                *4 * [(w * n, scalar)], (w * n * n, scalar),
            ],
            links=self._links(elements, w * sizes.bodies),
            exchange=Exchange(),
            pairs=self._struct(
                Pairs,
                [
                    (pairs, int), (pairs, int), (pairs, Twist), (12 * pairs, mat33), (groups, vec3), (groups, scalar),
                    (w, scalar), (threads, int), (threads, scalar), (threads, Twist), (12 * threads, mat33),
                ],
                free=contact_list.free,
            ),
        )  # fmt: skip
        self.work.pairs.hardness.fill_(1.0)
        self.report = self._struct(Report, [(w, int), (w, int), (w, scalar)])
        self.stages = self._stage(requires_grad=True), self._stage(requires_grad=True)
        self.still = self._stage(requires_grad=True)
        self.contact_list = contact_list
        self.between = self._zeros((w, 2), int)
        self.contacts_at_start: tuple | None = None
        self.weight = self._zeros(w * n, scalar)
        self.sweep = self._zeros(elements, Twist, requires_grad=True)
        self.power = self._zeros((w, sizes.elements), scalar, requires_grad=True)
        self.motor_power = self._zeros((w, sizes.motors), scalar, requires_grad=True)
        self.contact_power = self._zeros(contact_list.candidate.size, scalar, requires_grad=True)
        self.contact_wrench = self._zeros(contact_list.candidate.size, Twist, requires_grad=True)
        self.whole = self._zeros(w, scalar)
        self.moment = self._zeros(w, scalar, requires_grad=True)
        self.nothing = self._zeros((w, 0), scalar, requires_grad=True)
        self.nothing_left = self._zeros(w, scalar)
        self.gap = self._zeros(w, scalar, requires_grad=True)
        self.changed = self._zeros(elements, Twist, requires_grad=True)
        self.hit_power = self._zeros(w * CONTACTS, scalar, requires_grad=True)

    def end(self, state: object) -> StoredStep:
        """Data that `state` keeps for the adjoint of the step that ends in `state`."""
        return self._ends.of(state, self._end)

    def parts(self, state: object, count: int) -> list[StoredPart]:
        """Data that `state` keeps for the adjoint of the `count` parts of the step that ends in `state`."""
        return self._parts.of(state, lambda: [self._part() for _ in range(count)])

    def _end(self) -> StoredStep:
        return StoredStep((self._stage(), self._stage()), (self._factors(), self._factors()))

    def _part(self) -> StoredPart:
        w, hits = self._sizes.worlds, self._sizes.worlds * CONTACTS
        moving = (w * self._sizes.coordinates, scalar), (w * self._sizes.freedom, scalar)
        impact, start = Impact(), [self._zeros(*size, requires_grad=True) for size in moving]
        names = {"left": (w, scalar), "length": (w, scalar), "time": (w, scalar), "rate": (w, scalar),
                 "event": (w, int), "count": (w, int), "candidate": (hits, int), "impulse": (hits, vec3),
                 "mode": (hits, int), "q": moving[0], "qd": moving[1]}  # fmt: skip
        for name, size in names.items():
            setattr(impact, name, self._zeros(*size, requires_grad=name in ("left", "length", "time", "q", "qd")))
        return StoredPart(*start, impact, self._end())

    @functools.cached_property
    def impulses(self) -> ImpulseArrays:
        """Arrays with the quantities of an impact."""
        w, n = self._sizes.worlds, self._sizes.freedom
        system = self._struct(Factors, [(w * ROWS * ROWS, scalar), (w * ROWS, int)])
        vectors = [(w * CONTACTS, vec3)]
        sizes = [
            *2 * [(w * ROWS * n, scalar)], (w * CONTACTS**2, mat33), *3 * vectors, (w * n, scalar), *vectors,
            (w * ROWS, scalar),
        ]  # fmt: skip
        return self._struct(ImpulseArrays, sizes, mass=self._factors(), system=system)

    @functools.cached_property
    def equations(self) -> EquationArrays:
        """Arrays for the intermediate results of the equations of motion."""
        w, n = self._sizes.worlds, self._sizes.freedom
        elements, bodies = w * self._sizes.elements, w * self._sizes.bodies
        sums = [(elements, dtype) for dtype in (scalar, vec3, mat33, Twist, Twist)]
        wrenches = (bodies, self.contact_list.candidate.size, bodies, bodies)
        return EquationArrays(
            self._zeros(w * n, Twist, requires_grad=True),
            *(self._zeros(size, Twist, requires_grad=True) for size in wrenches),
            self._struct(Subtrees, sums, requires_grad=True),
            self._factors(),
            self._zeros(w * n, scalar),
        )

    def at_rest(self, state: object) -> ImplicitStage:
        """A stage with zero displacement and with the coordinates and velocities of `state`."""
        return self.resting(state.q.flatten(), state.qd.flatten())

    def resting(self, q: wp.array, qd: wp.array) -> ImplicitStage:
        """A stage with zero displacement, the coordinates `q` and the velocities `qd`, flattened over all worlds."""
        stage = ImplicitStage()
        stage.x, stage.accel, stage.c = self.still.x, self.still.accel, self.still.c
        stage.q, stage.rate = q, qd
        return stage

    def gradients(self) -> list[wp.array]:
        """Arrays to whose gradients several adjoints of a stage add, so that they must be set to zero before.

        The gradients of obstacles that move are not among them (`StepOfObstacles`).
        """
        return [*(getattr(self.links, name) for name in Links.vars if name not in self._frames), self.sweep]

    def _factors(self) -> Factors:
        w, n = self._sizes.worlds, self._sizes.freedom
        return self._struct(Factors, [(w * n * n, scalar), (w * n, int)])

    def _stage(self, requires_grad: bool = False) -> ImplicitStage:
        """A stage with new arrays for all fields except `q`, which belongs to a state."""
        w, n = self._sizes.worlds, self._sizes.freedom
        stage = ImplicitStage()
        for name in ("x", "rate", "accel"):
            setattr(stage, name, self._zeros(w * n, scalar, requires_grad))
        stage.c = self._zeros(w, scalar, requires_grad and self._sizes.impacts)
        return stage

    def _links(self, elements: int, bodies: int, requires_grad: bool = False) -> Links:
        sizes = [(elements, t) for t in (mat33, vec3, mat33, Twist, Twist)] + [(bodies, mat33), (bodies, vec3)]
        return self._struct(Links, sizes, requires_grad, **self._frames)

    def _struct(
        self, cls: type, arrays: list[tuple[int, type]], requires_grad: bool = False, **structs: object
    ) -> object:
        """A struct of the class `cls`: the fields in `structs` are given, or null; all other fields are new arrays.

        `arrays` lists the size and the type of each new array.
        """
        struct = cls()
        for name, value in structs.items():
            if value is not None:
                setattr(struct, name, value)
        names = [name for name in cls.vars if name not in structs]
        for name, (size, dtype) in zip(names, arrays, strict=True):
            setattr(struct, name, self._zeros(size, dtype, requires_grad))
        return struct

    def _zeros(self, size: int | tuple, dtype: type, requires_grad: bool = False) -> wp.array:
        return wp.zeros(size, dtype=dtype, device=self._device, requires_grad=requires_grad)
