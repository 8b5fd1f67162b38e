"""Conversion of a scene into an `MPMModel`."""

import numpy as np
import warp as wp

from warpbots.actuation_laws import activation, active_laws
from warpbots.contact import coefficients
from warpbots.materials import FLUIDS, hencky, law_of, weakly_compressible
from warpbots.numerics import real, vector
from warpbots.scene import (
    Cable,
    CamClay,
    Cavity,
    DielectricElastomer,
    Expansion,
    Fibre,
    Motor,
    Muscle,
    Oscillation,
    PneumaticCell,
    Points,
    Scene,
    SceneError,
    VelocityDrive,
)
from warpbots.solvers.cable_routes import cables_of
from warpbots.solvers.device_arrays import device_array, tiled, tiled_parameters
from warpbots.solvers.law_constants import check_laws, most_constants, refuse_taken_names
from warpbots.solvers.law_groups import LawGroup, law_groups
from warpbots.solvers.loads import load_forces
from warpbots.solvers.matter import refuse_lost
from warpbots.solvers.motion_parameters import motion_parameters
from warpbots.solvers.moving_frames import MovingFrames
from warpbots.solvers.mpm.domain import domain_of
from warpbots.solvers.mpm.flow import flow_groups
from warpbots.solvers.mpm.grid import BackgroundGrid
from warpbots.solvers.mpm.held_regions import held_regions
from warpbots.solvers.mpm.model import MPMModel, ParticleGroup
from warpbots.solvers.mpm.moving_solids import moving_solids
from warpbots.solvers.mpm.particles import ParticleConstants, Particles, fill
from warpbots.solvers.mpm.stable_time_step import largest_step
from warpbots.solvers.mpm.workspace import MPMWorkspace
from warpbots.solvers.overlapping_bodies import warn_of_overlap
from warpbots.solvers.scene_parts import remedy
from warpbots.solvers.scene_support import (
    refuse_actuators,
    refuse_copies,
    refuse_embedded,
    refuse_fluid,
    refuse_materials,
    refuse_rigid,
    refuse_sheets,
    warn_of_sunken,
)
from warpbots.solvers.thin_bodies import warn_of_thin_bodies
from warpbots.user_warning import warn_user

__all__ = ["build"]

_FLOWING = {"hencky": hencky.law, "weakly_compressible": weakly_compressible.law}
"""Definitions of the laws on which plastic flow and the flow of fluids rely, by name."""

_BENDS = 0.75
"""Least number of cells across a body at which its bending stiffness is right within a fifth: two particles."""


def build(scene: Scene, dx: float, per_axis: int, margin: float, worlds: int, device: wp.Device) -> MPMModel:
    """Build the model of `scene`.

    Args:
        scene: The scene.
        dx: Size of a grid cell [m].
        per_axis: Particles per cell along each axis.
        margin: Time over which contact forces are measured, divided by the stability bound of the time step [1].
        worlds: Number of independent worlds.
        device: Device of the arrays.

    Raises:
        SceneError: The scene cannot be simulated by MPM; the message says why.
    """
    _refuse_what_is_unknown(scene)
    refuse_embedded(scene)
    particles = fill(scene, dx, per_axis)
    for i, body in enumerate(scene.bodies):
        own = particles.volume[particles.body == i].sum()
        refuse_lost(body, own, "particles", "use a smaller MPM(dx=...)")
    warn_of_thin_bodies(scene, dx, _loses_bending, "MPM(dx=...)", 1.0)
    _warn_of_few_particles(scene, particles, dx)
    warn_of_sunken(scene, particles.body, particles.position, dx)
    warn_of_overlap(scene, particles.body, particles.position, particles.volume, dx / per_axis)
    grid = BackgroundGrid.around(*domain_of(scene, particles), dx)
    moving = moving_solids(scene, grid, device)
    per_node = 100.0 + 20.0 * len(scene.constraints) + 60.0 * len(moving)
    refuse_copies("MPM", worlds, per_node * grid.nodes + 300.0 * len(particles))
    frames = MovingFrames(scene, worlds, device, moving.solids, moving.owner.numpy())
    moves = frames.of_obstacle >= 0
    grid.refuse_thin(scene.obstacles, moves)
    cables, n_cables, n_waypoints = cables_of(scene, particles.position, dx, device, "particle", "MPM(dx=...)")
    constraints = held_regions(scene, particles, frames.of_constraint, dx, worlds * grid.nodes, device)
    stresses = {c: a for c, a in enumerate(scene.actuators) if not isinstance(a, Cable | VelocityDrive)}
    laws = active_laws(stresses.values(), scene.dim)
    groups, contacts = groups_of(scene, particles, worlds, device), grid.contacts(scene.obstacles, moves, device)
    at_rest = (
        particles.youngs_modulus, particles.poissons_ratio, particles.density, particles.damping,
        particles.fibre_modulus, particles.branch_modulus,
    )  # fmt: skip
    fluid = _fluid(scene, particles, worlds, device)
    workspace = MPMWorkspace(
        nodes=worlds * grid.nodes, pencils=worlds * grid.pencils, dim=scene.dim, worlds=worlds,
        particles=len(particles), n_fluid=0 if fluid is None else len(fluid), n_cables=n_cables,
        n_waypoints=n_waypoints, n_contacts=contacts.obstacle.size, n_moving=len(moving),
        n_constraints=len(scene.constraints),
        n_planes=worlds * grid.resolution[0], n_constants=most_constants(groups), device=device,
    )  # fmt: skip

    entries = {"scalar": real, "direction": vector(scene.dim)}

    def constant(values: np.ndarray, dtype: type = real) -> wp.array:
        return tiled(values, worlds, device, dtype)

    return MPMModel(
        scene=scene,
        worlds=worlds,
        device=device,
        matter=particles,
        groups=groups,
        flows=flow_groups((b.material for b in scene.bodies), particles.body, worlds, device),
        fluid=fluid,
        grid=grid,
        **tiled_parameters(ParticleConstants, vars(particles), worlds, device, entries),
        friction=constant(coefficients(scene.obstacles)),
        gravity=constant(scene.gravity, vector(scene.dim)),
        load=constant(load_forces(scene, particles), vector(scene.dim)) if scene.loads else workspace.no_load,
        law_constants={name: constant(values) for name, values in particles.law_constants.items()},
        dilates=_dilates(scene, particles, device),
        counts=device_array(np.stack([particles.fibres, particles.branches], axis=1), device, wp.vec2i),
        geometry=grid.geometry(worlds, len(particles), device),
        contacts=contacts,
        frames=frames,
        moving=moving,
        **motion_parameters(scene, worlds, device),
        actuation=activation(stresses, particles.regions, len(particles), scene.dim, device, laws),
        active_laws=laws if stresses else (),
        cables=cables,
        constraints=constraints,
        contact_interval=margin * largest_step(dx, groups, particles.spacing, *at_rest),
        workspace=workspace,
    )


def _fluid(scene: Scene, particles: Particles, worlds: int, device: wp.Device) -> wp.array | None:
    """Indices of the fluid particles that no constraint holds, in the arrays of all worlds; None if there are none."""
    free = np.array([body.material.law in FLUIDS for body in scene.bodies])[particles.body]
    for constraint in scene.constraints:
        free &= ~particles.regions[constraint.region]
    own = np.flatnonzero(free)
    rows = (np.arange(worlds)[:, None] * len(particles) + own).reshape(-1)
    return device_array(rows, device, int) if len(own) else None


def _dilates(scene: Scene, particles: Particles, device: wp.Device) -> wp.array | None:
    """1 for each `CamClay` particle, whose plastic flow changes its volume, else 0.

    None if there is no such particle.
    """
    bodies = np.array([isinstance(body.material.plasticity, CamClay) for body in scene.bodies])
    return device_array(bodies[particles.body], device, int) if bodies.any() else None


def _loses_bending(across: float) -> str | None:
    """A warning if a body is thinner than one cell (docs/design/mpm-transfers.md), else None.

    Args:
        across: Thickness of the body [cells].
    """
    if across > _BENDS:
        return None
    return "its bending is lost in a cell of the grid: half of its stiffness is left with 0.5 cells, and none with 0.25"


def _warn_of_few_particles(scene: Scene, particles: Particles, dx: float) -> None:
    """Warn of a body with fewer than two particles along each axis, which is smaller than a cell and has no shape."""
    count = np.bincount(particles.body, minlength=len(scene.bodies))
    for body, n in zip(scene.bodies, count, strict=True):
        if n < 2**scene.dim and not isinstance(body.shape, Points):
            size = float(np.ptp(body.shape.bounds, axis=0).min())
            warn_user(
                f"SoftBody {body.name!r} is {n} particle{'s' if n > 1 else ''}, because it is {size:.2g} m thick and "
                f"cells have {dx:.2g} m: it moves like the grid around it and keeps no shape of its own; use "
                f"MPM(dx=...) of at most {size / 2.0:.2g} m"
            )
            return


def _refuse_what_is_unknown(scene: Scene) -> None:
    """Raise if the scene contains a part that MPM cannot simulate."""
    refuse_rigid("MPM", scene)
    refuse_sheets("MPM", scene)
    refuse_fluid("MPM", scene)
    refuse_materials("MPM", scene)
    refuse_taken_names("MPM", scene, MPMModel)
    check_laws(scene, second=False)
    for body in scene.bodies:
        flows = body.material.plasticity is not None or body.material.law in FLUIDS
        if flows and law_of(body.material.law).definition is not _FLOWING[body.material.law]:
            raise SceneError(
                f"SoftBody {body.name!r}: plasticity and fluids need the law {body.material.law!r} of warpbots, which "
                f"LAWS[{body.material.law!r}] = ... has replaced; register your law under another name"
            )
        if body.material.law in FLUIDS and any(material.fibres for material in body.materials):
            raise SceneError(
                f"SoftBody {body.name!r}: a fluid, law={body.material.law!r}, forgets the stretch that fibres feel; "
                f"leave out Material.fibres, or use the law of a solid"
            )
    fluids = {region: body.name for body in scene.bodies if body.material.law in FLUIDS for region in body.regions}
    for actuator in scene.actuators:
        if isinstance(actuator, Muscle | DielectricElastomer) and actuator.region in fluids:
            raise SceneError(
                f"{type(actuator).__name__} {actuator.name!r}: a fluid, SoftBody {fluids[actuator.region]!r}, forgets "
                f"how it has turned, so that a direction of actuation stays as it was at rest; take Pressure, or the "
                f"law of a solid"
            )
        if isinstance(actuator, Motor):
            raise SceneError(f"Motor {actuator.name!r}: MPM has no motors; {remedy(scene, 'MPM')}")
        if isinstance(actuator, Cavity):
            raise SceneError(
                f"Cavity {actuator.name!r}: MPM has no surface around a void for air to press on; "
                f"{remedy(scene, 'MPM', 'take Pressure, for matter that swells,')}"
            )
        if isinstance(actuator, Fibre | PneumaticCell):
            raise SceneError(
                f"{type(actuator).__name__} {actuator.name!r}: MPM has no actuator with a stiffness of its own; "
                f"{remedy(scene, 'MPM', 'take Muscle or Pressure,')}"
            )
        if isinstance(actuator, Expansion | Oscillation):
            raise SceneError(
                f"{type(actuator).__name__} {actuator.name!r}: MPM has no actuator that changes rest lengths; "
                f"{remedy(scene, 'MPM', 'take Pressure or Muscle,')}"
            )
    refuse_actuators("MPM", scene, (Cable, VelocityDrive))
    for attachment in scene.attachments:
        raise SceneError(
            f"Attachment {attachment.name!r}: in MPM bodies in contact stick together; "
            f"{remedy(scene, 'MPM', 'leave it out')}"
        )


def groups_of(scene: Scene, particles: Particles, worlds: int, device: wp.Device) -> tuple[ParticleGroup, ...]:
    """Groups of consecutive particles with the same material law."""
    counts = np.bincount(particles.body, minlength=len(scene.bodies))

    def rows(group: LawGroup) -> wp.array:
        own = np.arange(group.first, group.first + group.count)
        return device_array((np.arange(worlds)[:, None] * len(particles) + own).reshape(-1), device, int)

    groups = law_groups((b.material for b in scene.bodies), counts)
    return tuple(ParticleGroup(**vars(group), rows=rows(group)) for group in groups)
