"""The MPM solver: one explicit step of MLS-MPM and its adjoint."""

import dataclasses
import math
from typing import ClassVar

import numpy as np
import warp as wp

from warpbots.near_names import names_arguments
from warpbots.numerics import copy, matrix, real, record, vector, warp_device
from warpbots.scene import Scene
from warpbots.scene.field_types import conform, shown
from warpbots.solvers.cell_sizes import cell_size_for, given
from warpbots.solvers.device_arrays import numpy_type, tiled
from warpbots.solvers.law_constants import law_in_words
from warpbots.solvers.mpm.build import build
from warpbots.solvers.mpm.explicit_step import step, step_adjoint
from warpbots.solvers.mpm.grid_viscosity import viscosity_caution
from warpbots.solvers.mpm.measurements import MPMReadings, readings, sense
from warpbots.solvers.mpm.model import MPMModel, MPMState
from warpbots.solvers.mpm.moving_faults import motion_fault
from warpbots.solvers.mpm.stable_time_step import largest_step
from warpbots.solvers.scene_support import OVERFLOW, refuse_states_without_gradient, refuse_worlds

__all__ = ["MPM"]

_CELLS = {2: 5_000, 3: 2_500}
"""Largest number of full cells for a chosen cell size, by dimension."""


@names_arguments
@dataclasses.dataclass(frozen=True)
class MPM:
    """Moving least squares material point method, explicit, in 2D and 3D (Hu et al. 2018; ChainQueen §3.2).

    Particles carry the whole state; the grid is filled anew in every step. The adjoint of a step reuses the grid of the
    step, or fills the grid again if keeping the grid would take more memory than the particles.

    Fluids retain a fraction of the motion that the grid does not resolve (affine FLIP). The transfers add about dx^2 /
    (8 T) to the kinematic viscosity of fluids, where T is twenty safe steps.

    A constraint acts through the grid: matter is clamped within half a cell of the face of the constrained region. If
    the face lies on a multiple of `dx`, matter is clamped as at a sticky wall.

    Attributes:
        dx: Edge length of a grid cell [m]; None for the choice that `sized` makes for a scene.
        margin: Longest safe step for matter in motion, divided by the stability bound [1]; below 1, because free
            surfaces lower the bound.
        particles_per_cell: Number of particles in a full cell: 4 or 9 in 2D, 8 or 27 in 3D; None for two particles per
            axis. With 1 particle per cell, matter tears apart.

    Raises:
        ValueError: `dx` is not positive.
    """

    margin: ClassVar[float] = 0.4

    dx: float | None = None
    particles_per_cell: int | None = None

    def __post_init__(self):
        conform(self)
        if self.dx is not None and self.dx <= 0.0:
            raise ValueError(f"MPM: dx must be positive [m], got {self.dx:g}")

    @property
    def lost_gradient(self) -> str:
        """A text that says why gradients can become infinite or NaN within a step, and how to prevent this."""
        return OVERFLOW

    def sized(self, scene: Scene) -> "MPM":
        """The solver with `dx` set: its own, else the cell size in the task of the scene, else a size from the bodies.

        The size from the bodies is 1/4 of the width of the thinnest body (`warpbots.contact.width`). It is larger if
        more than 5,000 cells in 2D, or 2,500 cells in 3D, would be necessary to fill all bodies; with two particles per
        axis, these cells contain 20,000 particles.
        """
        return self if self.dx else dataclasses.replace(self, dx=cell_size_for(scene, 4.0, _CELLS[scene.dim]))

    def build(self, scene: Scene, worlds: int = 1, device: wp.DeviceLike = None) -> MPMModel:
        """Fill the bodies of `scene` with particles and build the grid.

        Raises:
            SceneError: The scene cannot be simulated by MPM; the message says why.
            ValueError: `worlds` is below 1, `dx` is None, or `particles_per_cell` is not a square (2D) or cube (3D) of
                an integer.
        """
        refuse_worlds("MPM", worlds)
        dx = given(self.dx, "MPM", "dx")
        return build(scene, dx, self._per_axis(scene.dim), self.margin, worlds, warp_device(device))

    def _per_axis(self, dim: int) -> int:
        if self.particles_per_cell is None:
            return 2
        per_axis = round(self.particles_per_cell ** (1.0 / dim)) if 1 <= self.particles_per_cell < 1e6 else 0
        if per_axis < 1 or per_axis**dim != self.particles_per_cell:
            raise ValueError(
                f"MPM: particles_per_cell must be a {'square' if dim == 2 else 'cube'} such as {2**dim} or {3**dim} "
                f"in {dim}D, got {shown(self.particles_per_cell)}"
            )
        return per_axis

    def state(self, model: MPMModel, requires_grad: bool = False) -> MPMState[wp.array]:
        """A new state: every particle is undeformed, at its rest position, and has the initial velocity of its body."""
        dim = model.dim

        def copies(values: np.ndarray, dtype: type) -> wp.array:
            return tiled(values, model.worlds, model.device, dtype, requires_grad)

        zero = np.zeros((len(model.matter), dim, dim))
        return MPMState(
            position=copies(model.matter.position, vector(dim)),
            velocity=copies(model.matter.velocity, vector(dim)),
            velocity_gradient=copies(zero, matrix(dim)),
            deformation=copies(zero + np.eye(dim), matrix(dim)),
            plastic=copies(np.zeros(len(model.matter) if model.flows else 0), real),
            branch_deformation=copies(_springs_at_rest(model), matrix(dim)),
            time=copies(np.zeros(() if len(model.frames) else 0), wp.float64),
            travel=copies(np.zeros(model.frames.drives), wp.float64),
            lost=copies(np.zeros(()), real),
        )

    def max_time_step(self, model: MPMModel, enough: float = math.inf) -> float:
        """Stability bound [s]: h = C dx / c_p with the P-wave speed c_p = sqrt(M / rho) of the stiffest particle.

        C = 1.2747 if particles are at most 3/4 dx apart, else C = 1, in every dimension and for every Poisson's ratio.
        C follows from the exact linearisation about a lattice of particles at rest, for the worst position of the
        lattice on the grid, since matter moves. (With two particles per cell and axis, C is 1.2747 if particles lie on
        the nodes, and 1.3064 if they lie between nodes; with three particles C is at least 1.2883, with four at least
        1.2902, and with one between 1 and 1.894.) ChainQueen §3.7 gives the bound with sqrt(E / rho) instead of c_p,
        which is unstable from nu near 0.36 upwards. At free surfaces stability is lost at shorter steps (measured: at
        0.87 of the bound in 2D for nu = 0.3, at 0.65 to 0.7 in 3D for nu = 0.45), and large deformation and active
        stress stiffen matter. Half of the bound is therefore a good choice.

        By the same linearisation, damping with the time beta lowers the bound to sqrt(beta^2 + h^2) - beta, which is
        about h^2 / (2 beta) if beta is much longer than h. The argument `enough` has no effect.
        """
        of = (
            model.youngs_modulus, model.poissons_ratio, model.density, model.damping, model.fibre_modulus,
            model.branch_modulus,
        )  # fmt: skip
        values = (array.numpy().astype(np.float64) for array in of)
        return largest_step(model.grid.dx, model.groups, model.matter.spacing, *values)

    def caution(self, model: MPMModel, dt: float) -> str | None:
        """Warning that names a fluid whose viscosity is below the added viscosity; None if there is no such fluid.

        Args:
            model: The model, from `build`.
            dt: Length of a step [s]; it has no effect.
        """
        if model.fluid is None:
            return None
        own = model.of_fluid
        E, nu, rho, beta, modulus, time = (
            array.numpy().astype(np.float64)[:, own]
            for array in (
                model.youngs_modulus, model.poissons_ratio, model.density, model.damping, model.branch_modulus,
                model.relaxation_time,
            )
        )  # fmt: skip
        viscosity = beta * E / (2.0 * (1.0 + nu)) + (modulus * time).sum(axis=-1)
        names = np.broadcast_to(np.array([b.name for b in model.scene.bodies])[model.matter.body[own]], E.shape)
        added = rho * model.added_viscosity
        return viscosity_caution(names.ravel(), viscosity.ravel(), added.ravel(), model.grid.dx)

    def diagnose(self, model: MPMModel, before: dict, after: dict, dt: float) -> str:
        """One sentence that says why `after`, the state one step after `before`, is not finite: field, index and cause.

        Args:
            model: The model, from `build`.
            before: Fields of the state before the step, as NumPy arrays.
            after: Fields of the state that is not finite, as NumPy arrays.
            dt: Length of the step [s].
        """
        if said := motion_fault(model, before, after, dt):
            return said
        remedy = (
            f"use more substeps (this one has {dt:.3g} s, the bound for matter at rest is "
            f"{self.max_time_step(model):.3g} s) or weaker actuators"
        )
        for name, values in before.items():
            if not np.isfinite(values).all():
                where = self._where(model, ~np.isfinite(values).reshape(*values.shape[:2], -1).all(axis=-1))
                return f"{name} of {where} is not finite at the start of the step: the motion diverged before; {remedy}"
        with np.errstate(all="ignore"):  # these values may overflow
            before = {name: values.astype(np.float64) for name, values in before.items()}
            J = np.linalg.det(before["deformation"])
            fast = ~(np.linalg.norm(before["velocity"], axis=-1) * dt < model.grid.dx)
            x = (before["position"] - model.grid.lower) / model.grid.dx
            outside = ~((x >= 0.5) & (x < np.array(model.grid.resolution) - 1.5)).all(axis=-1)
        if (J <= 0.0).any():
            where = self._where(model, J <= 0.0)
            return (
                f"{where} was inverted (det F = {J[J <= 0.0][0]:.3g}), its stress is not finite: the motion diverged; "
                f"{remedy}, or law='fixed_corotated', which resists inversion"
            )
        if model.law_constants and (beyond := ~np.isfinite(self._stress(model, before)).all(axis=(-2, -1))).any():
            w, p = np.argwhere(beyond)[0]
            law, F = law_in_words(model.scene.bodies[model.matter.body[p]].material), before["deformation"][w, p]
            stretches = ", ".join(f"{s:.3g}" for s in np.linalg.svd(F, compute_uv=False))
            return (
                f"{self._where(model, beyond)} is deformed beyond the range of its {law}: its principal stretches are "
                f"{stretches}, where the law has no finite stress: the motion diverged; {remedy}, or constants "
                f"that allow this deformation"
            )
        if fast.any():
            return f"{self._where(model, fast)} moves more than a cell in one step: the motion diverged; {remedy}"
        if outside.any():
            position = before["position"][outside][0].tolist()
            lower = (model.grid.lower + 0.5 * model.grid.dx).tolist()
            upper = (model.grid.lower + (np.array(model.grid.resolution) - 1.5) * model.grid.dx).tolist()
            return (
                f"{self._where(model, outside)} left the grid at {position} m, which reaches from {lower} to {upper}; "
                f"enlarge Scene.domain, or add a floor or walls"
            )
        name, values = next((n, v) for n, v in after.items() if not np.isfinite(v).all())
        where = self._where(model, ~np.isfinite(values).reshape(*values.shape[:2], -1).all(axis=-1))
        return f"{name} of {where} is not finite: the motion diverged; {remedy}"

    def _stress(self, model: MPMModel, fields: dict) -> np.ndarray:
        """Stress of the particles in a state with given fields, without actuators, shape (worlds, n, dim, dim)."""
        state = self.state(model)
        for name, values in fields.items():
            array = getattr(state, name)
            array.assign(values.astype(numpy_type(array.dtype)))
        found = self.readings(model)
        self.sense(model, state, wp.zeros((model.worlds, model.channels), dtype=real, device=model.device), found)
        return found.stress.numpy()

    def _where(self, model: MPMModel, bad: np.ndarray) -> str:
        """Description of the first particle for which `bad`, shape (worlds, n_particles), is true."""
        w, p = (int(i) for i in np.argwhere(bad)[0])
        return f"particle {p} of {model.scene.bodies[model.matter.body[p]].name!r} in world {w}"

    def step(self, model: MPMModel, state: MPMState, control: wp.array, state_out: MPMState, dt: float) -> None:
        """Advance `state` by `dt` [s] and write the result to `state_out`; records the adjoint on the active tape.

        Args:
            model: The model, from `build`.
            state: State at the start of the step; not changed.
            control: Control signals in [-1, 1], shape (worlds, channels).
            state_out: State at the end of the step; it must not share arrays with `state`.
            dt: Time step [s].

        Raises:
            RuntimeError: A gradient is recorded, but a state has no arrays for gradients.
        """
        step(model, state, control, state_out, dt)
        copy(state_out.lost, state.lost)
        reads = [*state.fields(), control, *model.parameter_arrays()]
        record(lambda: self._step_adjoint(model, state, control, state_out, dt), reads, state_out.fields())

    def _step_adjoint(
        self, model: MPMModel, state: MPMState, control: wp.array, state_out: MPMState, dt: float
    ) -> None:
        refuse_states_without_gradient("MPM", state=state.fields(), state_out=state_out.fields())
        step_adjoint(model, state, control, state_out, dt)

    def readings(self, model: MPMModel, requires_grad: bool = False) -> MPMReadings[wp.array]:
        """New arrays to which `sense` can write."""
        return readings(model, requires_grad)

    def sense(self, model: MPMModel, state: MPMState, control: wp.array, readings_out: MPMReadings) -> None:
        """Measure energies, momenta, strain, stress and forces on obstacles of a state.

        Records the adjoint on the tape.

        Args:
            model: The model, from `build`.
            state: State to measure.
            control: Control signals, on which stress and contact forces depend, shape (worlds, channels).
            readings_out: Arrays that receive the measurements, from `readings`.

        Raises:
            RuntimeError: A gradient is recorded, but an array has no array for its gradient.
        """
        sense(model, state, control, readings_out)


def _springs_at_rest(model: MPMModel) -> np.ndarray:
    """Initial deformations of the springs of Maxwell branches [1], shape (n_particles, n_branches, dim, dim)."""
    branches = model.branch_modulus.shape[-1]
    shape = (len(model.matter), branches) if branches else (0, 0)
    return np.broadcast_to(np.eye(model.dim), (*shape, model.dim, model.dim))
