"""How a scene becomes a `MassSpringModel`."""

import dataclasses
import warnings

import numpy as np
import warp as wp
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from warpbots.actuators import rest_strain
from warpbots.contact import coefficients, obstacle_field, refuse_thin
from warpbots.numerics import parallel, real, real_numpy, vector
from warpbots.scene import (
    FREEDOMS,
    Cable,
    Heightfield,
    Motor,
    Oscillation,
    Scene,
    SceneError,
    Shape,
    SoftBody,
    TetMesh,
    TriangleMesh,
    bars_of,
)
from warpbots.solvers.cable_routes import cables_of
from warpbots.solvers.checks import refuse_copies, refuse_fluid, refuse_rigid, refuse_sheets
from warpbots.solvers.mass_spring.actuation import drive_of, signals_of
from warpbots.solvers.mass_spring.constraints import FREE
from warpbots.solvers.mass_spring.lattice import (
    POISSONS_RATIO,
    Cells,
    Lattice,
    assemble,
    attached,
    scattered_cells,
    truss_cells,
    voxel_cells,
)
from warpbots.solvers.mass_spring.model import MassSpringModel
from warpbots.solvers.mass_spring.motors import motors_of
from warpbots.solvers.mass_spring.plasticity import wear_arrays
from warpbots.solvers.mass_spring.self_collision import radii, say_pressed, stiffnesses
from warpbots.solvers.mass_spring.springs import rows_of
from warpbots.solvers.mass_spring.workspace import Scratch
from warpbots.solvers.matter import refuse_lost

__all__ = ["build"]


def build(
    scene: Scene,
    worlds: int,
    device: wp.Device,
    stages: int,
    *,
    spacing: float,
    lattice: str,
    seed: int,
    damping: float,
    drag: float,
    contact_stiffness: float,
    collision: float,
) -> MassSpringModel:
    """Arrays of `scene` as a lattice, for a scheme of so many stages; the options are those of `MassSpring`.

    Raises:
        SceneError: The scene cannot be simulated by masses and springs; the message says why.
    """
    refuse_rigid("MassSpring", scene)
    refuse_sheets("MassSpring", scene)
    refuse_fluid("MassSpring", scene)
    refuse_thin(scene.obstacles, spacing, "masses", "MassSpring(spacing=...)")
    _refuse_actuators(scene)
    _refuse_incompressibility(scene)
    cells = [_cut(body, spacing, lattice, seed) for body in scene.bodies]
    lattice = attached(scene, assemble(scene, cells, damping))
    for body, cut in zip(scene.bodies, cells, strict=True):
        if bars_of(body.shape) is None:  # a bar is one spring with all of its volume
            refuse_lost(body, cut.volume.sum(), "cells", "use a smaller MassSpring(spacing=...)")
    _refuse_pieces(scene, lattice)
    _say_poissons_ratio(scene)
    refuse_copies("MassSpring", worlds, 300.0 * len(lattice) + 50.0 * len(lattice.ends))
    motors = [a for a in scene.actuators if isinstance(a, Motor)]
    oscillations = [a for a in scene.actuators if isinstance(a, Oscillation)]
    n, springs, signals = len(lattice), len(lattice.ends), len(signals_of(scene.actuators))
    tied = cables_of(scene, lattice.position, spacing, device, "mass", "MassSpring(spacing=...)")
    cables, cable_count, waypoints = tied
    freedom, direction = _constraints(scene, lattice)
    radius = radii(lattice) if collision else np.zeros(1)
    if collision:
        say_pressed(scene, lattice, radius)
    area = lattice.volume ** (1.0 - 1.0 / scene.dim)

    def constant(values: np.ndarray | list, dtype: type = real) -> wp.array:
        values = np.asarray(values, dtype=real_numpy)
        return wp.array(np.tile(values, (worlds, *(1,) * values.ndim)), dtype=dtype, device=device)

    return MassSpringModel(
        scene=scene,
        worlds=worlds,
        device=device,
        lattice=lattice,
        stiffness=constant(lattice.stiffness),
        rest_length=constant(lattice.rest_length),
        damping=constant(lattice.damping),
        yield_strain=constant(lattice.yield_strain),
        mass=constant(lattice.mass),
        drag=constant(drag * lattice.mass),
        load=constant(_loads(scene, lattice), vector(scene.dim)),
        friction=constant(coefficients(scene.obstacles)),
        gravity=constant(scene.gravity, vector(scene.dim)),
        amplitude=constant([o.amplitude for o in oscillations]),
        frequency=constant([o.frequency for o in oscillations]),
        phase=constant([o.phase for o in oscillations]),
        torque=constant([m.max_torque for m in motors]),
        speed=constant([m.max_speed for m in motors]),
        radius=wp.array(radius.astype(real_numpy), dtype=real, device=device),
        collision=wp.array(
            (collision * stiffnesses(lattice) if collision else np.zeros(0)).astype(real_numpy),
            dtype=real,
            device=device,
        ),
        reach=2.0 * float(radius.max()) * (1.0 + 1e-5),  # the grid works in single precision
        rows=rows_of(lattice.ends, n, device, gather=parallel(device)),
        drive=drive_of(lattice.drive, scene.actuators, device),
        wear=_wear(lattice, device),
        motors=motors_of(scene, lattice, device),
        cables=cables,
        freedom=wp.array(freedom, dtype=int, device=device),
        direction=wp.array(direction.astype(real_numpy), dtype=vector(scene.dim), device=device),
        contact=wp.array((contact_stiffness * area).astype(real_numpy), dtype=real, device=device),
        obstacles=obstacle_field(
            scene.obstacles, scene.dim, lambda shape: _sampled_box(scene, shape, spacing), 0.5 * spacing, device
        ),
        scratch=Scratch(
            dim=scene.dim,
            masses=worlds * n,
            springs=springs,
            stages=stages,
            worlds=worlds,
            signals=signals,
            motor_count=len(motors),
            cable_count=cable_count,
            waypoints=waypoints,
            device=device,
        ),
    )


def _wear(lattice: Lattice, device: wp.Device) -> object:
    arrays = wear_arrays()()
    arrays.ends = wp.array(lattice.ends.astype(np.int32), dtype=wp.vec2i, device=device)
    arrays.breaking = wp.array(lattice.breaking_strain.astype(real_numpy), dtype=real, device=device)
    arrays.masses = len(lattice)
    return arrays


def _cut(body: SoftBody, spacing: float, kind: str, seed: int) -> Cells:
    if not np.isfinite(body.shape.bounds).all():
        raise SceneError(f"SoftBody {body.name!r}: a {type(body.shape).__name__} has no end; a body needs one")
    if truss := bars_of(body.shape):
        return truss_cells(truss)
    shape = body.shape
    if kind == "voxel":
        cells = voxel_cells(shape, spacing, body.name)
    else:
        cells = scattered_cells(shape, spacing, seed, body.name)
    if isinstance(shape, TriangleMesh | TetMesh) and len(cells.volume):
        lost = shape.volume / cells.volume.sum()  # the enclosed volume is known: the body has exactly its mass
        cells = dataclasses.replace(cells, volume=lost * cells.volume, weight=lost * cells.weight)
    return cells


def _refuse_actuators(scene: Scene) -> None:
    for actuator in (a for a in scene.actuators if not isinstance(a, Motor | Cable)):
        try:
            rest_strain(actuator, scene.dim)
        except TypeError:
            raise SceneError(
                f"{type(actuator).__name__} {actuator.name!r}: MassSpring has no such actuator; use Pressure, Muscle, "
                f"Cable, Expansion, Oscillation or Motor"
            ) from None


def _refuse_incompressibility(scene: Scene) -> None:
    for body in scene.bodies:
        exponent = body.material.incompressibility
        if exponent:
            raise SceneError(
                f"SoftBody {body.name!r}: springs know no volume, so incompressibility={exponent} means nothing to "
                f"MassSpring; set it to 0, or use MPM"
            )


def _refuse_pieces(scene: Scene, lattice: Lattice) -> None:
    """Raise if a body falls into pieces."""
    n, (i, j) = len(lattice), lattice.ends.T
    _, piece = connected_components(coo_matrix((np.ones(len(i)), (i, j)), shape=(n, n)), directed=False)
    for k, body in enumerate(scene.bodies):
        pieces = np.unique(piece[lattice.body == k])
        if len(pieces) > 1:
            raise SceneError(
                f"SoftBody {body.name!r}: its lattice is in {len(pieces)} pieces that no spring joins; use a smaller "
                f"MassSpring(spacing=...), or make each piece a body of its own"
            )


def _say_poissons_ratio(scene: Scene) -> None:
    solid = [b for b in scene.bodies if bars_of(b.shape) is None]
    other = [b for b in solid if b.material.poissons_ratio != POISSONS_RATIO]
    if other:
        warnings.warn(
            f"MassSpring: springs make matter of Poisson's ratio {POISSONS_RATIO:g}, in the place of "
            f"{other[0].material.poissons_ratio:g} in {other[0].name!r}; Young's modulus is kept",
            stacklevel=5,
        )


def _loads(scene: Scene, lattice: Lattice) -> np.ndarray:
    """Steady force on every mass [N], shape (n, dim)."""
    force = np.zeros_like(lattice.position)
    for load in scene.loads:
        share = np.where(lattice.regions[load.region], lattice.volume, 0.0)
        force += share[:, None] / share.sum() * np.array(load.force)
    return force


def _constraints(scene: Scene, lattice: Lattice) -> tuple[np.ndarray, np.ndarray]:
    """Freedom of every mass, shape (n,), and the direction that goes with it, shape (n, dim)."""
    freedom, direction = np.full(len(lattice), FREE), np.zeros_like(lattice.position)
    for constraint in scene.constraints:
        held = lattice.regions[constraint.region]
        if (freedom[held] != FREE).any():
            mass = int(np.flatnonzero(held & (freedom != FREE))[0])
            raise SceneError(
                f"Constraint {constraint.name!r}: another one holds mass {mass} at {lattice.position[mass].tolist()} m "
                f"already; keep the regions of constraints apart"
            )
        freedom[held] = FREEDOMS.index(constraint.freedom)
        if constraint.direction is not None:
            direction[held] = constraint.direction
    return freedom, direction


def _sampled_box(scene: Scene, shape: Shape, spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """The box in which an obstacle is sampled [m].

    The domain; without one the bodies' box grown by its largest edge, if the obstacle is in it, or else the obstacle's
    own, because bodies may come to all of it.
    """
    if scene.domain is not None:
        return np.array(scene.domain[0]), np.array(scene.domain[1])
    lower, upper = scene.bounds
    room = (upper - lower).max()
    lower, upper = lower - room, upper + room
    low, high = shape.bounds
    if isinstance(shape, Heightfield):  # goes on downwards without end
        low = np.array([*low[:-1], shape.heights.min()])
    low = np.where(np.isfinite(low), low, np.minimum(lower, high - room))
    high = np.where(np.isfinite(high), high, np.maximum(upper, low + room))
    low = np.where(np.isfinite(low), low, lower)
    if (low >= lower).all() and (high <= upper).all():
        return lower, upper
    return low - 2.0 * spacing, high + 2.0 * spacing
