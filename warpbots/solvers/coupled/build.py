"""Conversion of a scene with matter and rigid bodies into a `CoupledModel`."""

import dataclasses
import itertools

import numpy as np
import warp as wp

from warpbots.contact.solid import Solids
from warpbots.numerics import parallel, real
from warpbots.scene import Scene, SceneError
from warpbots.scene.with_z import with_z
from warpbots.solvers.articulated import Articulated
from warpbots.solvers.articulated.exchange_step import ExchangeWorkspace
from warpbots.solvers.articulated.model import ArticulatedModel, ArticulatedState
from warpbots.solvers.articulated.spatial import mat33, scalar, vec3
from warpbots.solvers.coupled.body_solids import body_boxes, body_solids
from warpbots.solvers.coupled.bound_points import BoundPoints, bound_points, reaches, thrown_with, with_bound
from warpbots.solvers.coupled.compositions import CoupledMatter, composition_of
from warpbots.solvers.coupled.measured_bodies import MeasuredBodies, measured_bodies
from warpbots.solvers.coupled.model import CoupledModel, CoupledWorkspace, MatterPoints, with_motions_of
from warpbots.solvers.coupled.scene_parts import matter_channels, matter_of, robot_channels, robots_of
from warpbots.solvers.coupled.thin_links import warn_of_gaps, warn_of_thin_links
from warpbots.solvers.device_arrays import device_array, tiled
from warpbots.solvers.mass_spring import MassSpring
from warpbots.solvers.mass_spring.model import MassSpringModel
from warpbots.solvers.mpm import MPM
from warpbots.solvers.mpm.model import MPMModel
from warpbots.solvers.scene_parts import EMBEDDED, IN_MATTER, immovable, lacking, remedy

__all__ = ["build"]

_DEPTH = 0.25
"""Depth up to which points of matter are inside bodies that are placed in contact [`MatterPoints.size`]."""

_PARTS = 256
"""Number of parts of the matter of a world whose points a parallel device lists at the same time."""


def build(scene: Scene, matter: MPM | MassSpring, bodies: Articulated, worlds: int, device: wp.Device) -> CoupledModel:
    """Build the model of a scene.

    Raises:
        SceneError: The scene cannot be simulated by both solvers together; the message says why.
        ValueError: The solver of the matter has an option that the exchange does not take.
    """
    composition = composition_of(matter)
    composition.refuse(matter)
    _refuse_others(scene, composition, type(matter).__name__)
    soft = matter.build(matter_of(scene), worlds, device)
    rigid = bodies.build_beside(robots_of(scene), worlds, device)
    gravity = tiled(with_z(scene.gravity), worlds, device, vec3, requires_grad=True)
    rigid = with_motions_of(soft, dataclasses.replace(rigid, gravity=gravity))
    points = composition.points(matter, soft)
    solids = body_solids(scene.rigid, points.size, composition.rounding * points.size, device)
    bound = _bound(scene, composition, points, soft, measured_bodies(bodies, rigid), solids)
    warn_of_thin_links(scene.rigid, points)
    warn_of_gaps([body for k, body in enumerate(scene.rigid) if k not in bound.of], points)
    if len(bound):
        rigid = thrown_with(rigid, bound, soft.matter.velocity)
        soft = with_bound(soft, bound, measured_bodies(bodies, rigid))
    friction = [body.friction for body in (*scene.soft, *scene.rigid)]
    return CoupledModel(
        scene=scene, worlds=worlds, device=device, soft=soft, rigid=rigid,
        body_friction=tiled(friction, worlds, device, real), solids=solids,
        boxes=body_boxes(scene.rigid, points.size, device), points=points, bound=bound,
        exchanges=ExchangeWorkspace(rigid, worlds * len(soft.matter)),
        workspace=_workspace(scene, composition, soft, rigid, bound, bodies.state(rigid, requires_grad=True)),
    )  # fmt: skip


def _workspace(
    scene: Scene, composition: CoupledMatter, soft: MPMModel | MassSpringModel, rigid: ArticulatedModel,
    bound: BoundPoints, measured: ArticulatedState,
) -> CoupledWorkspace:  # fmt: skip
    worlds, drives, device = rigid.worlds, rigid.frames.drives, rigid.device
    channels = [np.array(c, dtype=int) for c in (matter_channels(scene), robot_channels(scene))]
    bodies, parts = len(scene.rigid), _PARTS if parallel(device) else 1

    def zeros(shape: int | tuple, dtype: type, requires_grad: bool = False) -> wp.array:
        return wp.zeros(shape, dtype=dtype, device=device, requires_grad=requires_grad)

    return CoupledWorkspace(
        *(device_array(channel, device, int) for channel in channels),
        *(zeros((worlds, c.size), t, True) for c, t in zip(channels, (real, scalar), strict=True)),
        axes=zeros(worlds * bodies, mat33),
        origin=zeros(worlds * bodies, vec3),
        lower=zeros(worlds * (bodies + 1), vec3),
        upper=zeros(worlds * (bodies + 1), vec3),
        soft_body=device_array(np.tile(soft.matter.body, worlds), device, int),
        body=zeros(worlds * len(soft.matter), int),
        counts=zeros(worlds * bodies * parts, int),
        next=zeros(worlds * bodies * parts, int),
        no_samples=zeros((0, 0), scalar),
        unused_lost=zeros((worlds,), scalar, True),
        bodies_time=zeros((worlds,), scalar, True),
        unused_travel=zeros((worlds, drives), scalar, True),
        stopped=zeros((worlds,), int),
        measured_state=measured,
        matter=composition.arrays(soft, _moving_mass(scene, soft, rigid, bound)),
    )


def _moving_mass(scene: Scene, soft: MPMModel | MassSpringModel, rigid: ArticulatedModel, bound: BoundPoints) -> float:
    """Mass of the rigid bodies that can move, with the points that are bound to them [kg]."""
    moves = ~immovable(scene)
    points = np.isin(bound.of, np.flatnonzero(moves))
    own = soft.matter.density * soft.matter.volume
    return float(rigid.mass.numpy()[0, moves].sum() + own[points].sum())


def _refuse_others(scene: Scene, composition: CoupledMatter, solver: str) -> None:
    if not scene.soft:
        raise SceneError(
            f"Coupled simulates matter by {solver} beside rigid bodies and takes no scenes without soft bodies: "
            f"{remedy(scene, composition.name)}"
        )
    soft = {body.name for body in scene.soft}
    if law := next((c for c in scene.laws if {c.points, c.solid} & soft), None):
        others, instead = _without_law(scene, composition, {law.points, law.solid})
        raise SceneError(
            f"Contact {law.name!r}: matter and {others} touch without a law under Coupled; "
            f"{remedy(scene, composition.name, instead)}"
        )
    if part := lacking(scene, composition.name, decided=IN_MATTER):
        raise SceneError(
            f"Coupled simulates matter by {solver} beside rigid bodies and takes no {part}: "
            f"{remedy(scene, composition.name)}"
        )
    if law := next((c for c in scene.laws if c.impact == "instant"), None):
        raise SceneError(
            f"Contact {law.name!r}: instant impacts divide a step, which Coupled cannot; use impact='compliant'"
        )


def _without_law(scene: Scene, composition: CoupledMatter, pair: set[str]) -> tuple[str, str]:
    """What touches matter in a pair of names, in the plural, and what to do instead of giving this pair a law."""
    if pair & {o.name for o in scene.obstacles}:
        return "obstacles", "leave it out (the friction is Obstacle.friction)"
    if pair <= {body.name for body in scene.soft}:
        return "other matter", f"leave it out ({composition.soft_pairs})"
    return "rigid bodies", "leave it out (the friction is the mean of SoftBody.friction and RigidBody.friction)"


def _bound(
    scene: Scene, composition: CoupledMatter, points: MatterPoints, soft: MPMModel | MassSpringModel,
    at: MeasuredBodies, solids: Solids,
) -> BoundPoints:  # fmt: skip
    """Bind the points of matter in the rigid bodies that reach into it.

    Raises:
        SceneError: A body reaches into matter, but the composition does not bind points, or they cannot be bound.
    """
    x, of, most = soft.matter.position, soft.matter.body, _DEPTH * points.size
    pairs = itertools.product(range(len(scene.rigid)), range(len(scene.soft)))
    reaching = [(k, s) for k, s in pairs if reaches(scene.rigid[k], at, k, scene.soft[s], x[of == s], most)]
    if reaching and not composition.binds:
        body, around = scene.rigid[reaching[0][0]], scene.soft[reaching[0][1]]
        raise SceneError(
            f"RigidBody {body.name!r}: it reaches into SoftBody {around.name!r} at the start, around "
            f"{at.position[0, reaching[0][0]].round(4).tolist()} m, deeper than bodies in contact ({most:.2g} m, a "
            f"quarter of a {points.cell}, or {EMBEDDED:.0%} of its extent), and is not bound to its {points.name}s; "
            f"{remedy(scene, composition.name, 'move them apart')}"
        )
    frames = solids.position.numpy(), solids.rotation.numpy()
    return bound_points(scene, points.size, points.cell, soft, at, reaching, frames, soft.device)
