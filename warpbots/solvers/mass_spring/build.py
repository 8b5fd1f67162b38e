"""Conversion of a scene into a `MassSpringModel`."""

import dataclasses

import numpy as np
import warp as wp
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from warpbots.actuation_laws import acts_as_stress, law_and_constants, proportional
from warpbots.contact import CODES, coefficients, extra_rest_friction, refuse_thin
from warpbots.contact.solid import Solids
from warpbots.contact.solid_forms import closed_form, linear_samples, solid_arrays
from warpbots.numerics import parallel, real, vector
from warpbots.scene import (
    FREEDOMS,
    Cable,
    Cavity,
    Expansion,
    Heightfield,
    Motor,
    Oscillation,
    Scene,
    SceneError,
    Shape,
    SoftBody,
    TetMesh,
    TriangleMesh,
    VelocityDrive,
    bars_of,
)
from warpbots.solvers.cable_routes import cables_of
from warpbots.solvers.device_arrays import device_array, tiled, tiled_parameters
from warpbots.solvers.loads import load_forces
from warpbots.solvers.mass_spring.actuation import drive_of, signals_of
from warpbots.solvers.mass_spring.constraints import FREE
from warpbots.solvers.mass_spring.fast_impacts import warn_of_fast_impacts
from warpbots.solvers.mass_spring.lattice import (
    POISSONS_RATIO,
    Cells,
    Lattice,
    LatticeConstants,
    assemble,
    attached,
    finer,
    scattered_cells,
    truss_cells,
    voxel_cells,
)
from warpbots.solvers.mass_spring.missing_collision import warn_of_falls, warn_of_weak_surfaces
from warpbots.solvers.mass_spring.model import MassSpringModel
from warpbots.solvers.mass_spring.motors import motors_of
from warpbots.solvers.mass_spring.plasticity import fracture_arrays
from warpbots.solvers.mass_spring.self_contact import radii, stiffnesses, warn_close
from warpbots.solvers.mass_spring.springs import rows_of
from warpbots.solvers.mass_spring.vanishing_springs import spring_strains
from warpbots.solvers.mass_spring.workspace import MassSpringSizes, MassSpringWorkspace
from warpbots.solvers.matter import refuse_lost
from warpbots.solvers.motion_parameters import motion_parameters
from warpbots.solvers.moving_frames import MovingFrames
from warpbots.solvers.overlapping_bodies import warn_of_overlap
from warpbots.solvers.scene_parts import remedy
from warpbots.solvers.scene_support import (
    check_ignored_laws,
    refuse_actuators,
    refuse_copies,
    refuse_embedded,
    refuse_flow,
    refuse_fluid,
    refuse_rigid,
    refuse_sheets,
    warn_of_sunken,
)
from warpbots.solvers.thin_bodies import warn_of_thin_bodies
from warpbots.user_warning import warn_user

__all__ = ["build"]

_ALLOWED = 0.25
"""Largest relative excess of bending stiffness without a warning [1]: three cells across have 0.13."""


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
    """Build the model of `scene`, for a scheme of `stages` stages; see `MassSpring` for the options.

    Raises:
        SceneError: The scene cannot be simulated by masses and springs; the message says why.
    """
    refuse_rigid("MassSpring", scene)
    refuse_sheets("MassSpring", scene)
    refuse_fluid("MassSpring", scene)
    refuse_flow("MassSpring", scene)
    refuse_embedded(scene)
    refuse_thin(scene.obstacles, spacing, "masses", "MassSpring(spacing=...)")
    _refuse_actuators(scene)
    check_ignored_laws("MassSpring", scene, lambda _: "springs follow Hooke's law and have no volume")
    cells = [_cut(body, spacing, lattice, seed) for body in scene.bodies]
    if lattice == "voxel":
        warn_of_thin_bodies(scene, spacing, _too_stiff, "MassSpring(spacing=...)", 3.0)
    lattice = attached(scene, assemble(scene, cells, damping))
    for body, cut in zip(scene.bodies, cells, strict=True):
        if bars_of(body.shape) is None:  # a bar is one spring with its whole volume
            refuse_lost(body, cut.volume.sum(), "cells", "use a smaller MassSpring(spacing=...)")
    if not contact_stiffness:
        warn_of_sunken(scene, lattice.body, lattice.position, spacing)
    overlap = warn_of_overlap(scene, lattice.cells.body, lattice.cells.position, lattice.cells.volume, spacing)
    _refuse_pieces(scene, lattice)
    _warn_poissons_ratio(scene)
    if fault := spring_strains(scene, lattice).fault():
        raise SceneError(fault)
    refuse_copies("MassSpring", worlds, 300.0 * len(lattice) + 50.0 * len(lattice.ends))
    motors = [a for a in scene.actuators if isinstance(a, Motor)]
    oscillations = [a for a in scene.actuators if isinstance(a, Oscillation)]
    tied = cables_of(scene, lattice.position, spacing, device, "mass", "MassSpring(spacing=...)")
    cables, n_cables, n_waypoints = tied
    sizes = MassSpringSizes(
        dim=scene.dim, worlds=worlds, masses=len(lattice), springs=len(lattice.ends), stages=stages,
        signals=len(signals_of(scene.actuators)), motors=len(motors), cables=n_cables, waypoints=n_waypoints,
        obstacles=len(scene.obstacles), constraints=len(scene.constraints),
    )  # fmt: skip
    held, freedom, direction = _constraints(scene, lattice)
    obstacles = _obstacles(scene, spacing, device)
    frames = MovingFrames(scene, worlds, device, obstacles)
    radius = radii(lattice) if collision else np.zeros(1)
    if collision and not overlap:
        warn_close(scene, lattice, radius)
    if not (collision or overlap):
        warn_of_falls(scene)
    area = lattice.volume ** (1.0 - 1.0 / scene.dim)
    if contact_stiffness:
        warn_of_weak_surfaces(scene, lattice, area, contact_stiffness)
    warn_of_fast_impacts(scene, spacing, contact_stiffness, collision)

    def constant(values: np.ndarray | list, dtype: type = real) -> wp.array:
        return tiled(values, worlds, device, dtype)

    constants = tiled_parameters(LatticeConstants, vars(lattice), worlds, device, {"scalar": real})
    return MassSpringModel(
        scene=scene,
        worlds=worlds,
        device=device,
        lattice=lattice,
        **constants,
        scene_modulus=constants["youngs_modulus"],
        drag=constant(drag * lattice.mass),
        load=constant(load_forces(scene, lattice), vector(scene.dim)),
        friction=constant(coefficients(scene.obstacles)),
        gravity=constant(scene.gravity, vector(scene.dim)),
        amplitude=constant([o.amplitude for o in oscillations]),
        frequency=constant([o.frequency for o in oscillations]),
        phase=constant([o.phase for o in oscillations]),
        torque=constant([m.max_torque for m in motors]),
        speed=constant([m.max_speed for m in motors]),
        radius=device_array(radius, device),
        collision=device_array(collision * stiffnesses(lattice) if collision else [], device),
        reach=2.0 * float(radius.max()) * (1.0 + 1e-5),  # the grid works in single precision
        rows=rows_of(lattice.ends, len(lattice), device, gather=parallel(device)),
        drive=drive_of(lattice.drive, scene.actuators, device),
        fracture=_fracture(lattice, device),
        motors=motors_of(scene, lattice, device),
        cables=cables,
        freedom=device_array(freedom, device, int),
        direction=device_array(direction, device, vector(scene.dim)),
        contact=device_array(contact_stiffness * area, device),
        constraint=device_array(held, device, int),
        carried=device_array(np.append(frames.of_constraint, -1)[held], device, int),
        rest=device_array(np.pad(lattice.position, ((0, 0), (0, 3 - scene.dim))), device, wp.vec3d),
        frames=frames,
        **motion_parameters(scene, worlds, device),
        obstacles=obstacles,
        condition=device_array([CODES[o.condition] for o in scene.obstacles], device, int),
        extra_friction=device_array(extra_rest_friction(scene.obstacles), device),
        workspace=MassSpringWorkspace(sizes, device, lattice),
    )


def _fracture(lattice: Lattice, device: wp.Device) -> object:
    arrays = fracture_arrays()()
    arrays.ends = device_array(lattice.ends, device, wp.vec2i)
    arrays.breaking_strain = device_array(lattice.breaking_strain, device)
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
        lost = shape.volume / cells.volume.sum()  # the enclosed volume is known, so that the mass of the body is exact
        cells = dataclasses.replace(cells, volume=lost * cells.volume, weight=lost * cells.weight)
    return cells


def _refuse_actuators(scene: Scene) -> None:
    for actuator in scene.actuators:
        if isinstance(actuator, Cavity):
            raise SceneError(
                f"Cavity {actuator.name!r}: MassSpring has no surface around a void for air to press on; "
                f"{remedy(scene, 'MassSpring', 'take Pressure, for matter that swells,')}"
            )
    refuse_actuators("MassSpring", scene, (Cable, Expansion, Oscillation, Motor, VelocityDrive))
    for actuator in filter(acts_as_stress, scene.actuators):
        if law_and_constants(actuator, scene.dim)[0] is not proportional:
            raise SceneError(
                f"{type(actuator).__name__} {actuator.name!r}: springs have rest lengths that are linear in a control, "
                f"and no deformation gradient, so that MassSpring takes only stresses that are proportional to the "
                f"control; {remedy(scene, 'MassSpring', 'take Pressure or Muscle,')}"
            )


def _refuse_pieces(scene: Scene, lattice: Lattice) -> None:
    """Raise an error if the lattice of a body consists of unconnected pieces."""
    n, (i, j) = len(lattice), lattice.ends.T
    _, piece = connected_components(coo_matrix((np.ones(len(i)), (i, j)), shape=(n, n)), directed=False)
    for k, body in enumerate(scene.bodies):
        pieces = np.unique(piece[lattice.body == k])
        if len(pieces) > 1:
            join = finer(body) if bars_of(body.shape) is None else "join them by bars"
            raise SceneError(
                f"SoftBody {body.name!r}: its lattice is in {len(pieces)} pieces that no spring joins; {join}, or make "
                f"each piece a body of its own"
            )


def _too_stiff(across: float) -> str | None:
    """Text of a warning if a body is so few cells thick that its bending is too stiff, else None.

    The error of the bending stiffness is derived in docs/design/mass-spring.md.
    """
    excess = 1.2 / across**2
    return None if excess <= _ALLOWED else f"its bending is about {100.0 * excess:.0f} % too stiff"


def _warn_poissons_ratio(scene: Scene) -> None:
    solid = [b for b in scene.bodies if bars_of(b.shape) is None]
    other = [(b, m.poissons_ratio) for b in solid for m in b.materials if m.poissons_ratio != POISSONS_RATIO]
    if other:
        body, nu = other[0]
        warn_user(
            f"MassSpring: springs make matter of Poisson's ratio {POISSONS_RATIO:g}, instead of {nu:g} in "
            f"{body.name!r}; Young's modulus is kept"
        )


def _constraints(scene: Scene, lattice: Lattice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Index of the constraint of each mass, code of its freedom, shape (n,) each, and direction [1], shape (n, dim).

    The index is -1 for a mass without a constraint; the code is an index in `FREEDOMS`, or `FREE`.
    """
    of = np.full(len(lattice), -1)
    freedom, direction = np.full(len(lattice), FREE), np.zeros_like(lattice.position)
    for k, constraint in enumerate(scene.constraints):
        held = lattice.regions[constraint.region]
        if (freedom[held] != FREE).any():
            mass = int(np.flatnonzero(held & (freedom != FREE))[0])
            raise SceneError(
                f"Constraint {constraint.name!r}: another one holds mass {mass} at {lattice.position[mass].tolist()} m "
                f"already; keep the regions of constraints apart"
            )
        of[held] = k
        freedom[held] = FREEDOMS.index(constraint.freedom)
        if constraint.direction is not None:
            direction[held] = constraint.direction
    return of, freedom, direction


def _obstacles(scene: Scene, spacing: float, device: wp.Device) -> Solids:
    """Convert the obstacles of the scene to solids.

    A shape without a closed form is sampled at half the distance between masses.
    """
    forms = [
        closed_form(o.shape) or linear_samples(o.shape, *_sampled_box(scene, o.shape, spacing), 0.5 * spacing, o.name)
        for o in scene.obstacles
    ]
    return solid_arrays(forms, [-1] * len(forms), 0.0, device)


def _sampled_box(scene: Scene, shape: Shape, spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper corner of the box in which an obstacle is sampled [m], each of shape (dim,).

    The box is the domain of the scene if the scene has a domain. Otherwise the box is the bounding box of the obstacle,
    so that the samples do not depend on the positions of the bodies, extended by two spacings on all sides. In a
    direction in which the obstacle is unbounded, the box contains the bounding box of the bodies, extended by its
    largest edge.
    """
    if scene.domain is not None:
        return np.array(scene.domain[0]), np.array(scene.domain[1])
    lower, upper = scene.bounds
    room = (upper - lower).max()
    lower, upper = lower - room, upper + room
    low, high = shape.bounds
    if isinstance(shape, Heightfield):  # has no lower end
        low = np.array([*low[:-1], shape.heights.min()])
    low = np.where(np.isfinite(low), low, np.minimum(lower, high - room))
    high = np.where(np.isfinite(high), high, np.maximum(upper, low + room))
    low = np.where(np.isfinite(low), low, lower)
    return low - 2.0 * spacing, high + 2.0 * spacing
