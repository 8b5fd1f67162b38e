"""The solver of projective dynamics: one step of implicit Euler, and its adjoint by the implicit function theorem."""

import dataclasses
import math
from typing import ClassVar

import numpy as np
import warp as wp

from warpbots.near_names import names_arguments
from warpbots.numerics import precision, real, record, vector, warp_device
from warpbots.scene import Scene
from warpbots.scene.field_types import conform
from warpbots.solvers.articulated import Articulated
from warpbots.solvers.cell_sizes import given
from warpbots.solvers.device_arrays import tiled
from warpbots.solvers.projective.build import build
from warpbots.solvers.projective.default_cell_size import default_cell_size
from warpbots.solvers.projective.elements.reference_elements import HEXAHEDRON, QUADRATIC_TETRAHEDRON, TETRAHEDRON
from warpbots.solvers.projective.failure_diagnosis import diagnosis
from warpbots.solvers.projective.gradient_diagnosis import gradient_diagnosis
from warpbots.solvers.projective.measurements import ProjectiveReadings, readings, sense
from warpbots.solvers.projective.model import ProjectiveModel
from warpbots.solvers.projective.report import StepReport, report_of
from warpbots.solvers.projective.shorter_steps import ShorterSteps
from warpbots.solvers.projective.states import ProjectiveState, SkeletalState
from warpbots.solvers.projective.statics import equilibrium
from warpbots.solvers.scene_support import refuse_states_without_gradient, refuse_worlds

__all__ = ["ProjectiveDynamics"]

_TOLERANCE = {"float32": 1e-5, "float64": 1e-8}
_ROUNDING = {"float32": 5e-7, "float64": 1e-15}
"""Least tolerances [mean edges]."""
_SHORT = 0.01
"""Step length below which the tolerance shrinks in proportion, which limits the error of velocities [s]."""
_MOST_HALVINGS = 10
"""Largest `max_halvings`: the adjoint stores up to 2^max_halvings shorter steps."""
_LINEAR_SOLVERS = "iterative", "direct", "adaptive"
_ELEMENTS = {"tetrahedra": TETRAHEDRON, "quadratic_tetrahedra": QUADRATIC_TETRAHEDRON, "hexahedra": HEXAHEDRON}
"""Elements of solids by their names."""


@names_arguments
@dataclasses.dataclass(frozen=True)
class ProjectiveDynamics:
    """Finite elements, rigid bodies and implicit Euler, in space (Bouaziz et al. 2014; Qiao et al. 2021).

    A step minimises Phi(x) = 1/(2 h^2) |x - s|_M^2 + E(x) (eq. 2): local steps evaluate the stress of every
    element, global steps solve with a constant matrix that is factored once (eq. 5), and Anderson's acceleration makes
    a few dozen iterations enough. For laws other than the corotated one this is a quasi-Newton method (Liu et al.
    2017).

    Elements are tetrahedra of solids, triangles and hinges of a `Sheet`, and bars of a `Truss`. Whatever the law of
    their material, sheets and bars follow Hooke's law in a corotated frame; the bending rigidity is a separate
    parameter, which does not change with Young's modulus. Contact with obstacles takes place at the middle surface of a
    sheet and at the joints of a truss: half the thickness is ignored. Sheets of one `Union` are sewn to each other and
    to its solids where vertices coincide, and rotate freely there. Cables are tied to nodes, motors drive the nodes of
    regions, cavities press on solids and sheets, and the other actuators act on solids only. Kelvin-Voigt damping
    resists strain, but not the folding of sheets. A step of thin cloth that buckles has many solutions, and may be
    divided into shorter ones.

    Rigid bodies of the scene replace the soft bodies inside their shapes, and nodes inside or on their surface are
    bound to them: they are bones. A rigid body that reaches into no soft body is a separate object, which may touch
    others from the start. Joints, springs, limits and motors are those of `Articulated` with implicit Euler. Joints may
    start anywhere; soft bodies are given in their places at the start. The surface of a rigid body outside its soft
    body touches obstacles and other bodies, with edges of about `cell_size` and friction as `RigidBody` describes.
    Bones never collide with their own soft body, and with their joint neighbours only if a `Contact` law names both. If
    `Scene.contacts` is given, rigid bodies touch one another and obstacles only where a law names both, and the
    friction of a law replaces the coefficients of the pair, which may include a soft body. If several
    contacts hold the same matter (between soft surfaces, at rigid bodies, and in corners of obstacles), each contact
    has a compliance of up to a hundredth of the compliance of a node, or of a rigid body by its inertia; the weight of
    a body compresses a contact by at most a thousandth of an edge. A scene needs no soft body.

    Coulomb's law holds to 1e-7 of the coefficient in single precision and 1e-10 in double, so that no node creeps on an
    obstacle below the angle of friction. Contacts with a compliance creep: a rigid cube of 3 cm on a slope of 20
    degrees at 3 micrometres per second in steps of 5 ms. On a slope at exactly the angle of friction a moving body does
    not stop, and keeps the velocity that sudden loads give it: a block of 1 MPa to which gravity is applied suddenly is
    compressed, oscillates and slides on at 2 to 4 mm/s; a coefficient larger by 0.001 stops it within half a second.

    Obstacles and constraints may move as prescribed; Coulomb's law then acts on the displacement of a step relative to
    the surface, in its pose at the end of the step. A constraint that moves must not share nodes with another
    constraint. Obstacles do not act on nodes that a constraint holds fixed; an obstacle that moves into them ends the
    run.

    Constraints hold exactly; a node in the regions of several constraints obeys all of them. Nodes of fixed regions go
    to their `anchor`. Nodes on lines and planes stay on the line or plane through their position at the start of a
    step, and do not move at all if constraints leave no direction. Motors use their speed at the end of a step, so that
    they are stable in long steps, and their axis and arms at the start of the step. The error of motors is of second
    order in the rotation w h per step. So is the error of implicit Euler itself: spinning matter loses the fraction (w
    h)^2 of its angular momentum in a step.

    No step ends with an inverted tetrahedron, whatever the law. The energy of most laws is finite in an inverted
    element, but no motion leads to such a state, and the result would depend on the path of the iteration.

    A gradient through a contact whose plane was frozen within a step, or had not settled at its end, is refused, and
    the message names the contact; corners on edges rarely need a frozen plane.

    Nodes detect contact with obstacles. With `collisions`, sharp edges and corners of boxes, cylinders and meshes touch
    faces and edges of bodies, too; they count as rounded to a hundredth of an edge, and have sliding friction only.
    Samples of faces and bars detect round obstacles that are less than two edges wide. A step that would end with an
    edge that intersects the face of another surface, or with an obstacle deep inside a face, fails, and the message
    names the place.

    Attributes:
        margin: Safe fraction of the stability bound [1]; the method is implicit and has no bound.
        cell_size: Edge length for shapes that are not meshes yet [m]; None to choose it for a scene (`sized`).
            Tetrahedra, sheets and trusses stay as they are.
        tolerance: A step has converged when neither the last correction nor the estimated error of a node exceeds this
            value [mean edges]; in steps of slender bars the error was up to four times the estimate. For steps shorter
            than 10 ms, the tolerance shrinks in proportion to their length. None for 1e-5 in single and 1e-8 in double
            precision; at least 5e-7 and 1e-15. The adjoint has converged when its error is this fraction of its
            solution, or, without contact, when its residual is this fraction of the initial residual.
        max_iterations: Number of iterations after which a step has failed; a quarter of this number for steps that can
            still be halved.
        memory: Number of corrections that Anderson's acceleration remembers.
        max_halvings: How often a step that fails is halved, in the worlds in which it fails: two steps of half the
            length replace the step, each of which may be halved in turn. 0 for never.
        collisions: Whether there is contact between soft and rigid bodies, and self-contact of soft bodies; otherwise
            they pass through one another.
        splitting: Whether global steps solve with a diagonal (eq. 21 of Qiao et al. 2021, modified to converge on every
            mesh) instead of a factored matrix: no factorisation, and all nodes in parallel, but many times as many
            iterations. A long step, such as 1/30 s for a soft block that slides, may then end in another equilibrium,
            with elements compressed to a third; compare it with a step of half the length.
        elements: Elements of solids. Linear ``"tetrahedra"`` of four nodes are the fastest, and too stiff in bending.
            None takes linear tetrahedra, and warns of slender parts and walls with so few elements across that the
            bending stiffness is too large by a fifth or more; the warning gives the figure, the place and the remedy.
            ``"quadratic_tetrahedra"`` have ten nodes, the corners and the middles of the edges of the same mesh, and
            bend without locking. ``"hexahedra"``, trilinear and of eight nodes, fill a `Box` (also `Posed`) with one
            element for each cell. All actuators act on all kinds.
        linear_solver: How Newton steps and adjoints of worlds without contact solve with the second derivative.
            ``"iterative"`` is MINRES, preconditioned by the matrix of the global step, which couples nodes but not
            their coordinates: some dozens of iterations for uniform matter, and hundreds where moduli of neighbouring
            cells spread over decades (topology optimisation) or Poisson's ratio is near 1/2. ``"direct"`` factors the
            second derivative itself, anew for each system, and takes an iteration or two. ``"adaptive"`` begins
            iteratively and factors once the iterations have cost as much as a factor does. ``"direct"`` and
            ``"adaptive"`` take Newton steps earlier, and at least one in every step, so that bending needs a few global
            steps instead of some dozens. A factor takes 48 bytes (96 in double precision) for each entry of every
            world: 0.6 MB for 425 nodes of hexahedra, 11 MB for 2,673. Where the second derivative is not positive
            definite, as in buckling, all solves are iterative. Systems with bones or a fluid are not symmetric, and
            ``"direct"`` is refused there. In a fluid ``"adaptive"`` factors the symmetric part for adjoints without
            contact that the iteration has not solved. It is ``"iterative"`` with bones, with `splitting`, on a GPU, for
            more than 20,000 nodes, and where all worlds would need more than 0.5 GB.
        contact_interval: Length of the step whose forces on obstacles, constraints and rigid bodies `sense` measures
            (`SupportReadings`) [s]; the length of the simulation's step gives the forces of its next step. Each
            measurement then costs as much as a step. None for no such readings.

    Raises:
        ValueError: A value is outside its range.
    """

    margin: ClassVar[float] = 1.0

    cell_size: float | None = None
    tolerance: float | None = None
    max_iterations: int = 2000
    memory: int = 20
    max_halvings: int = 5
    collisions: bool = True
    splitting: bool = False
    elements: str | None = None
    linear_solver: str = "adaptive"
    contact_interval: float | None = None

    def __post_init__(self):
        conform(self)
        if self.cell_size is not None and self.cell_size <= 0.0:
            raise ValueError(f"ProjectiveDynamics: cell_size must be positive [m], got {self.cell_size:g}")
        if self.contact_interval is not None and not 0.0 < self.contact_interval < math.inf:
            raise ValueError(
                f"ProjectiveDynamics: contact_interval must be positive and finite [s], got {self.contact_interval:g}; "
                f"use the step of the simulation, or None for no readings of forces on obstacles"
            )
        if self.elements is not None and self.elements not in _ELEMENTS:
            known = ", ".join(map(repr, _ELEMENTS))
            raise ValueError(f"ProjectiveDynamics: elements must be one of {known}, got {self.elements!r}")
        if self.linear_solver not in _LINEAR_SOLVERS:
            known = ", ".join(map(repr, _LINEAR_SOLVERS))
            raise ValueError(f"ProjectiveDynamics: linear_solver must be one of {known}, got {self.linear_solver!r}")
        tolerance = _TOLERANCE[precision] if self.tolerance is None else self.tolerance
        if not tolerance >= _ROUNDING[precision]:
            raise ValueError(
                f"ProjectiveDynamics: tolerance must be at least {_ROUNDING[precision]:g} [mean edges] in {precision}, "
                f"got {tolerance:g}{'; use WARPBOTS_PRECISION=float64' if precision == 'float32' else ''}"
            )
        object.__setattr__(self, "tolerance", tolerance)
        if not 0 <= self.max_halvings <= _MOST_HALVINGS:
            raise ValueError(
                f"ProjectiveDynamics: max_halvings must be from 0 to {_MOST_HALVINGS}, got {self.max_halvings}"
            )
        if self.max_iterations < 1 or self.memory < 1:
            raise ValueError(
                f"ProjectiveDynamics: max_iterations and memory must be at least 1, got {self.max_iterations} and "
                f"{self.memory}"
            )

    @property
    def lost_gradient(self) -> str:
        """Text that says why gradients may not be finite within a step, and what the remedy is."""
        return "every adjoint of a step had a result, so a force or a reading has no finite derivative at this state"

    def gradient_diagnosis(self, model: ProjectiveModel, first: int, substeps: int) -> str | None:
        """Say in one sentence why the adjoint of a step had no result, and forget it; None if every adjoint had one.

        Args:
            model: The model, whose worlds are those of the simulation from `first` on.
            first: Index of its first world.
            substeps: Number of steps of a control interval.
        """
        return gradient_diagnosis(model, first, substeps, self.tolerance, self.max_iterations)

    def sized(self, scene: Scene) -> "ProjectiveDynamics":
        """A solver with a `cell_size`: the given one, the one of the scene's task, or a default for the shapes.

        If all soft bodies are meshes already, the default is the mean length of their edges. Otherwise there are 4
        cells across the width (`warpbots.contact.width`) of the thinnest body that is to be meshed, and 2 across the
        width of the thinnest bone; there are fewer cells across if there would be more than 1,500 cells in all. Without
        soft bodies there are 2 cells across the thinnest rigid body.
        """
        return self if self.cell_size else dataclasses.replace(self, cell_size=default_cell_size(scene))

    def build(self, scene: Scene, worlds: int = 1, device: wp.DeviceLike = None) -> ProjectiveModel:
        """Mesh the bodies of `scene`.

        Raises:
            SceneError: The scene cannot be simulated by projective dynamics; the message gives the reason.
            ValueError: `worlds` is below 1, or `cell_size` is None.
        """
        refuse_worlds("ProjectiveDynamics", worlds)
        size = given(self.cell_size, "ProjectiveDynamics", "cell_size")
        solid = _ELEMENTS[self.elements or "tetrahedra"]
        how = self.collisions, self.splitting, self.linear_solver
        chosen = self.elements is not None
        return build(scene, size, solid, self.memory, *how, worlds, warp_device(device), chosen)

    def state(self, model: ProjectiveModel, requires_grad: bool = False) -> ProjectiveState[wp.array]:
        """Fresh arrays: every node at its rest position with the initial velocity of its body, at time 0."""

        def copies(values: np.ndarray) -> wp.array:
            return tiled(values, model.worlds, model.device, vector(3), requires_grad)

        def clock(*shape: int) -> wp.array:
            shape = (model.worlds, *shape)
            return wp.zeros(shape, dtype=wp.float64, device=model.device, requires_grad=requires_grad)

        time = clock() if model.amplitude.size or model.frames.names else clock(0)
        log = (wp.zeros(model.worlds, dtype=real, device=model.device, requires_grad=requires_grad) for _ in range(2))
        nodes = copies(model.mesh.position), copies(model.mesh.velocity), time, clock(model.frames.drives), *log
        if model.skeleton is None:
            return ProjectiveState(*nodes)
        bones = Articulated().state(model.skeleton, requires_grad)
        return SkeletalState(*nodes, bones.q, bones.qd)

    def max_time_step(self, model: ProjectiveModel, enough: float = math.inf) -> float:
        """Infinity: implicit Euler is stable for every step."""
        return math.inf

    def diagnose(self, model: ProjectiveModel, before: dict, after: dict, dt: float) -> str:
        """Say in one sentence why `after`, one step after `before`, is not finite.

        Args:
            model: From `build`.
            before: Fields of the last state as NumPy arrays.
            after: Fields of the state that is not finite, as NumPy arrays.
            dt: Length of the step [s].
        """
        return diagnosis(model, before, after, dt, self.max_iterations, self.memory)

    def step(
        self, model: ProjectiveModel, state: ProjectiveState, control: wp.array, state_out: ProjectiveState, dt: float
    ) -> None:
        """Advance by `dt` [s]; records the adjoint of the step on the active tape.

        A step that fails is divided into shorter steps, see `max_halvings`. Worlds in which the shortest steps fail,
        too, stay as they are and are marked `lost` from then on; `warpbots.Simulation` gives the reason.

        Args:
            model: From `build`.
            state: The state at the start; not changed.
            control: Control signals in [-1, 1], shape (worlds, channels).
            state_out: The state to write; different arrays from `state`.
            dt: Time step [s].

        Raises:
            RuntimeError: A gradient is wanted but the states have no room for it.
        """
        self._steps(model, state, control, state_out, dt).take()
        model.workspace.stepped.fill_(1)
        reads = [*state.fields(), control, *model.parameter_arrays()]
        record(lambda: self._step_adjoint(model, state, control, state_out, dt), reads, state_out.fields())

    def _steps(
        self, model: ProjectiveModel, state: ProjectiveState, control: wp.array, state_out: ProjectiveState, dt: float
    ) -> ShorterSteps:
        return ShorterSteps(model, state, control, state_out, dt, self)

    def tolerance_of(self, dt: float) -> float:
        """Tolerance of steps of `dt` [mean edges]."""
        return max(self.tolerance * min(1.0, dt / _SHORT), min(self.tolerance, 2.0 * _ROUNDING[precision]))

    def _step_adjoint(
        self, model: ProjectiveModel, state: ProjectiveState, control: wp.array, state_out: ProjectiveState, dt: float
    ) -> None:
        refuse_states_without_gradient("ProjectiveDynamics", state=state.fields(), state_out=state_out.fields())
        self._steps(model, state, control, state_out, dt).adjoint()

    def equilibrium(
        self,
        model: ProjectiveModel,
        state: ProjectiveState[wp.array],
        control: np.ndarray,
        dt: float,
        steps: int,
        tolerance: float | None = None,
    ) -> ProjectiveState[wp.array]:
        """The static equilibrium of the bodies; see `warpbots.solvers.projective.equilibrium`."""
        return equilibrium(self, model, control, state, dt, steps, tolerance).state

    def report(self, model: ProjectiveModel, dt: float) -> StepReport:
        """How the last step ended: its iterations, residual and contact forces.

        Args:
            model: The model.
            dt: Length of the step [s].

        Raises:
            RuntimeError: The last computation with the model was not a step of this length.
        """
        return report_of(model, dt, self.tolerance_of(dt))

    def chosen(self, model: ProjectiveModel) -> "ProjectiveDynamics":
        """This solver with the linear solver that it chose for a model, by the memory of the factors of all worlds."""
        return dataclasses.replace(self, linear_solver=model.matrices.linear_solver)

    def grown(self, model: ProjectiveModel) -> ProjectiveModel | None:
        """The model with room for all pairs of surfaces in contact, if a step ran out of room; else None.

        `warpbots.Simulation` calls this after each control interval, and repeats the interval with the new model.
        """
        return model.grown()

    def readings(self, model: ProjectiveModel, requires_grad: bool = False) -> ProjectiveReadings[wp.array]:
        """Fresh arrays for `sense`: `SkeletalReadings` if the scene has bones, else `ProjectiveReadings`.

        With a `contact_interval`, `SkeletalSupportReadings` or `SupportReadings`.
        """
        return readings(model, self.contact_interval is not None, requires_grad)

    def without_steps(self) -> "ProjectiveDynamics":
        """This solver without `contact_interval`, whose readings take no steps."""
        return dataclasses.replace(self, contact_interval=None)

    def sense(
        self, model: ProjectiveModel, state: ProjectiveState, control: wp.array, readings_out: ProjectiveReadings
    ) -> None:
        """Measure energies, momenta, strain, stress, cavities and bones; records the adjoint on the active tape.

        With a `contact_interval`, the forces of a step from `state` are measured, too.

        Args:
            model: From `build`.
            state: The state to measure.
            control: Control signals, shape (worlds, channels).
            readings_out: The readings to write, from `readings`.

        Raises:
            RuntimeError: A gradient is wanted but the arrays have no room for it.
        """
        sense(model, state, control, readings_out, self)
