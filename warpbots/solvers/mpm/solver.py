"""The MPM solver: one explicit step of MLS-MPM and its adjoint."""

import dataclasses
import math
from typing import ClassVar

import numpy as np
import warp as wp

from warpbots.materials import p_wave_modulus
from warpbots.numerics import (
    clear_gradients,
    launch,
    launch_adjoint,
    launch_adjoints,
    launch_all,
    matrix,
    parallel,
    real,
    record,
    vector,
)
from warpbots.scene import Scene
from warpbots.scene.field_types import conform, shown
from warpbots.solvers.cable_forces import cable_adjoints, cable_launches
from warpbots.solvers.cell_sizes import cell_size_for, given
from warpbots.solvers.device_arrays import tiled
from warpbots.solvers.mpm.build import build
from warpbots.solvers.mpm.grid import clear_kernel, grid_kernel
from warpbots.solvers.mpm.model import MPMModel, MPMState
from warpbots.solvers.mpm.particle_forces import adj_force_kernel, force_kernel
from warpbots.solvers.mpm.transfer import move_kernel, p2g_kernel
from warpbots.solvers.mpm.transfer_adjoint import adj_move_kernel, adj_p2g_kernel
from warpbots.solvers.mpm.workspace import Gathered
from warpbots.solvers.scene_support import OVERFLOW, refuse_states_without_gradient, refuse_worlds

__all__ = ["MPM"]

_CELLS = {2: 5_000, 3: 2_500}
"""Full cells where the size of cells is chosen, at most, by dimension."""


@dataclasses.dataclass(frozen=True)
class MPM:
    """Moving least squares material point method, explicit, in 2D and 3D (Hu et al. 2018; ChainQueen §3.2).

    Particles carry all state; the grid is filled anew in every step. Its adjoint finds the grid as the step left it, or
    fills it again where keeping it would take more memory than the particles.

    Attributes:
        dx: Size of a grid cell [m]; None to choose it for a scene (`sized`).
        margin: Part of the stability bound that is safe for matter in motion, too [1]; free surfaces need the rest.
        particles_per_cell: Particles in a full cell: 4 or 9 in 2D, 8 or 27 in 3D (1 tears); None for two per axis.

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
        """How gradients can stop being finite within a step, and what helps."""
        return OVERFLOW

    def sized(self, scene: Scene) -> "MPM":
        """With a `dx`: its own, that of the scene's task, or 4 cells across the width of the thinnest body.

        The width is that of `warpbots.contact.width`. Cells are larger where 5,000 of them in 2D, or 2,500 in 3D, would
        not fill all bodies; these have 20,000 particles.
        """
        return self if self.dx else dataclasses.replace(self, dx=cell_size_for(scene, 4.0, _CELLS[scene.dim]))

    def build(self, scene: Scene, worlds: int = 1, device: wp.DeviceLike = None) -> MPMModel:
        """Fill the bodies of `scene` with particles and build the grid.

        Raises:
            SceneError: The scene cannot be simulated by MPM; the message says why.
            ValueError: `worlds` is below 1, `dx` is open, or `particles_per_cell` is no square (2D) or cube (3D).
        """
        refuse_worlds("MPM", worlds)
        return build(scene, given(self.dx, "MPM", "dx"), self._per_axis(scene.dim), worlds, wp.get_device(device))

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
        """Fresh arrays: every particle at its rest position with the initial velocity of its body, undeformed."""
        dim = model.dim

        def copies(values: np.ndarray, dtype: type) -> wp.array:
            return tiled(values, model.worlds, model.device, dtype, requires_grad)

        zero = np.zeros((len(model.matter), dim, dim))
        return MPMState(
            position=copies(model.matter.position, vector(dim)),
            velocity=copies(model.matter.velocity, vector(dim)),
            velocity_gradient=copies(zero, matrix(dim)),
            deformation=copies(zero + np.eye(dim), matrix(dim)),
        )

    def max_time_step(self, model: MPMModel, enough: float = math.inf) -> float:
        """Stability bound [s]: C dx / c_p with the P-wave speed c_p = sqrt(M / rho) of the stiffest particle.

        C = 1.2747 for particles up to 3/4 dx apart and 1 for others, in every dimension and for every Poisson's ratio:
        the exact linearisation about a lattice at rest, at its worst position on the grid, since matter moves. (Two
        particles per cell and axis have 1.2747 on the nodes and 1.3064 between them; three 1.2883 at least, four
        1.2902; one 1 to 1.894.) ChainQueen §3.7 gives the bound with sqrt(E / rho) instead of c_p, which is unstable
        from nu near 0.36 upwards. At free surfaces stability is lost earlier (measured: at 0.87 of the
        bound in 2D for nu = 0.3, at 0.65 to 0.7 in 3D for nu = 0.45), and large deformation and active stress stiffen
        matter, so half of the bound is a good choice.
        """
        E, nu, rho = (a.numpy().astype(np.float64) for a in (model.youngs_modulus, model.poissons_ratio, model.density))
        C = np.where(model.matter.spacing <= 0.75 * model.grid.dx, 1.2747, 1.0)
        bound = math.inf
        for group in model.groups:
            rows = slice(group.first, group.first + group.count)
            modulus = p_wave_modulus(E[:, rows], nu[:, rows], group.incompressibility)
            bound = min(bound, float((C[rows] * model.grid.dx / np.sqrt(modulus / rho[:, rows])).min()))
        return bound

    def diagnose(self, model: MPMModel, before: dict, after: dict, dt: float) -> str:
        """Say in one sentence why `after`, one step on from `before`, is not finite: field, index, cause.

        Args:
            model: From `build`.
            before: Fields of the last state as NumPy arrays.
            after: Fields of the bad state.
            dt: Length of the step [s].
        """
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

    def _where(self, model: MPMModel, bad: np.ndarray) -> str:
        """The first of the `bad` particles, shape (worlds, n_particles), in words."""
        w, p = (int(i) for i in np.argwhere(bad)[0])
        return f"particle {p} of {model.scene.bodies[model.matter.body[p]].name!r} in world {w}"

    def step(self, model: MPMModel, state: MPMState, control: wp.array, state_out: MPMState, dt: float) -> None:
        """Advance by `dt` [s]; records its adjoint on the active tape.

        Args:
            model: From `build`.
            state: Where to start; not changed.
            control: Control signals in [-1, 1], shape (worlds, channels).
            state_out: Where to write; different arrays from `state`.
            dt: Time step [s].

        Raises:
            RuntimeError: A gradient is wanted but the states have no room for it.
        """
        gathered = model.workspace.gathered(state_out)
        self._pull_cables(model, state, control)
        self._gather(model, state, control, gathered, dt)
        self._move_grid(model, gathered, dt)
        inputs = [model.geometry, state.motion, model.workspace.velocity, real(dt)]
        launch(move_kernel(model.dim), state.position.size, inputs, [state_out.motion], model.device)
        parameters = model.parameter_arrays()
        reads = [*state.fields(), control, *parameters]
        record(lambda: self._step_adjoint(model, state, control, state_out, dt), reads, state_out.fields())

    def _pull_cables(self, model: MPMModel, state: MPMState, control: wp.array) -> None:
        """Forces of the cables at their waypoints."""
        if model.workspace.n_cables:
            work = model.workspace.cables
            work.length.zero_()
            launch_all(cable_launches(model.cables, work, control, state.position), model.device)

    def _gather(self, model: MPMModel, state: MPMState, control: wp.array, gathered: Gathered, dt: float) -> None:
        """Mass and momentum of the particles and the cables to the grid."""
        self._clear(model, gathered.active, gathered.momentum)
        gathered.active.zero_()
        for group in model.groups:
            launch(
                p2g_kernel(group.law, group.incompressibility, model.dim), len(group.rows),
                [model.material, model.actuation, model.geometry, group.rows, state.motion, control, real(dt)],
                [gathered.active, gathered.momentum], model.device,
            )  # fmt: skip
        if model.workspace.n_cables:
            force = model.workspace.cables.force
            inputs = [model.cables.particle, model.geometry, state.motion, force, real(dt)]
            launch(force_kernel(model.dim), force.shape, inputs, [gathered.momentum], model.device)

    def _move_grid(self, model: MPMModel, gathered: Gathered, dt: float) -> None:
        """The grid's velocity from what it gathered."""
        inputs = self._grid_inputs(model, model.friction, model.gravity, 1, gathered, dt)
        launch(grid_kernel(model.dim), self._grid_threads(model), inputs, [model.workspace.velocity], model.device)

    def _clear(self, model: MPMModel, active: wp.array, values: wp.array) -> None:
        """Zero to the nodes of the active pencils."""
        threads = self._grid_threads(model)
        launch(clear_kernel(), threads, [model.grid.resolution[-1], threads[1], active], [values], model.device)

    def _grid_threads(self, model: MPMModel) -> tuple[int, int]:
        """Pencils, and threads for each: one node a thread on a GPU, the whole pencil on a CPU."""
        return model.workspace.pencils, model.grid.resolution[-1] if parallel(model.device) else 1

    def _grid_inputs(
        self, model: MPMModel, friction: wp.array, gravity: wp.array, copies: int, gathered: Gathered, dt: float
    ) -> list:
        sizes = [model.grid.resolution[-1], model.grid.pencils, self._grid_threads(model)[1], copies]
        return [*model.contacts, friction, gravity, *sizes, gathered.active, gathered.momentum, real(dt)]

    def _grid_adjoint(self, model: MPMModel, gathered: Gathered, dt: float) -> None:
        """From the gradient of the grid's velocity to those of what it gathered, of friction and gravity."""
        workspace, shared = model.workspace, {"friction": model.friction, "gravity": model.gravity}
        copies = workspace.copies.wanted(*shared.values())
        values = [copies.values(name, array) for name, array in shared.items()]
        gradients = [copies.gradient(name, array) for name, array in shared.items()]
        launch_adjoint(
            grid_kernel(model.dim), self._grid_threads(model),
            self._grid_inputs(model, *values, copies.count, gathered, dt), [workspace.velocity],
            [None] * 5 + gradients + [None] * 5 + [workspace.momentum_adj, None],
            [workspace.velocity_adj], model.device,
        )  # fmt: skip
        for name, array in shared.items():
            copies.collect(name, array)

    def _step_adjoint(
        self, model: MPMModel, state: MPMState, control: wp.array, state_out: MPMState, dt: float
    ) -> None:
        """Gradients of `step` from those of `state_out`: the grid again as far as it was not kept, then backwards."""
        refuse_states_without_gradient("MPM", state=state.fields(), state_out=state_out.fields())
        workspace = model.workspace
        gathered = workspace.gathered(state_out)
        self._pull_cables(model, state, control)
        if not workspace.keeps(state_out):
            self._gather(model, state, control, gathered, dt)
        self._move_grid(model, gathered, dt)
        self._clear(model, gathered.active, workspace.velocity_adj)
        self._clear(model, gathered.active, workspace.momentum_adj)
        geometry, motion, motion_adj, particles = model.geometry, state.motion, state.motion_adj, state.position.size
        launch(
            adj_move_kernel(model.dim), particles,
            [geometry, motion, state_out.motion, workspace.velocity, state_out.motion_adj, real(dt)],
            [motion_adj, workspace.velocity_adj], model.device,
        )  # fmt: skip
        self._grid_adjoint(model, gathered, dt)
        if workspace.n_cables:
            self._cable_adjoint(model, state, control, dt)
        copies = workspace.copies
        control_adj = copies.gradient("control", control)
        for group in model.groups:
            launch(
                adj_p2g_kernel(group.law, group.incompressibility, model.dim), len(group.rows),
                [
                    model.material, model.actuation, geometry, group.rows, motion, control,
                    workspace.momentum_adj, real(dt), copies.count,
                ],
                [motion_adj, model.material_adj, control_adj], model.device,
            )  # fmt: skip
        copies.collect("control", control)

    def _cable_adjoint(self, model: MPMModel, state: MPMState, control: wp.array, dt: float) -> None:
        """Gradients of positions and controls from those of the momentum that the cables gave to the grid."""
        workspace, work, x = model.workspace, model.workspace.cables, state.position
        clear_gradients([work.force, work.tension, work.length])
        launch(
            adj_force_kernel(model.dim), work.force.shape,
            [model.cables.particle, model.geometry, state.motion, work.force, workspace.momentum_adj, real(dt)],
            [state.motion_adj, work.force.grad], model.device,
        )  # fmt: skip
        steps = cable_launches(model.cables, work, control, x)
        launch_adjoints(steps, cable_adjoints(work, control.grad, x.grad), model.device)
