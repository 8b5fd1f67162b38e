"""Builds the `ProjectiveModel` of a scene."""

import dataclasses

import numpy as np
import warp as wp

from warpbots.actuation_laws import activation, active_laws, acts_as_stress, without_energy
from warpbots.contact import CODES, coefficients, extra_rest_friction
from warpbots.contact.solid_forms import solids_of, widths
from warpbots.numerics import real, real_numpy, vector
from warpbots.scene import Motor, Scene, SceneError, Shape, parts_of
from warpbots.solvers.articulated.missing_laws import missing_law
from warpbots.solvers.articulated.model import ArticulatedModel
from warpbots.solvers.device_arrays import tiled, tiled_parameters
from warpbots.solvers.hidden_friction import hidden_friction
from warpbots.solvers.law_constants import most_constants
from warpbots.solvers.law_groups import LawGroup, law_groups
from warpbots.solvers.loads import load_forces
from warpbots.solvers.motion_parameters import motion_parameters
from warpbots.solvers.moving_frames import MovingFrames
from warpbots.solvers.projective.assemble import assemble
from warpbots.solvers.projective.bones.binding import at_start, bound_velocity, motors_of, refuse_unbound, skeleton_of
from warpbots.solvers.projective.components import Components
from warpbots.solvers.projective.connected import components_of
from warpbots.solvers.projective.contact.bone_surface import (
    BoneSurfaces,
    bone_surfaces_of,
    refuse_penetration,
)
from warpbots.solvers.projective.contact.contact_laws import friction_alone, laws_of_pairs, unnamed_obstacles
from warpbots.solvers.projective.contact.obstacle_edges import ObstacleEdges, is_angular, obstacle_edges_of
from warpbots.solvers.projective.contact.surface_samples import SurfaceSamples, surface_samples_of
from warpbots.solvers.projective.elements.oscillations import (
    element_strains,
    growth_of,
    oscillating,
    signals,
    signals_of,
)
from warpbots.solvers.projective.elements.reference_elements import TETRAHEDRON, ReferenceElement
from warpbots.solvers.projective.global_matrix import GlobalMatrices
from warpbots.solvers.projective.guided_nodes import anchored_in, frames_in, normals_of
from warpbots.solvers.projective.mesh import Mesh, MeshConstants
from warpbots.solvers.projective.model import ProjectiveModel
from warpbots.solvers.projective.refusals import (
    refuse_held_bones,
    refuse_idle,
    refuse_shared,
    refuse_unsupported,
)
from warpbots.solvers.projective.second_derivative import is_symmetric
from warpbots.solvers.projective.start_overlaps import SAMPLES, refuse_overlap, refuse_swallowed
from warpbots.solvers.projective.stiff_bending import warn_of_stiff_bending
from warpbots.solvers.projective.topology import MeshTopology, ProjectiveSizes
from warpbots.solvers.projective.workspace import ProjectiveWorkspace
from warpbots.solvers.scene_parts import immovable
from warpbots.solvers.scene_support import refuse_copies
from warpbots.user_warning import warn_user

__all__ = ["build"]

_NUMBERS = 2**31  # numbers that an index can address
_FACTORED_NODES, _FACTORS = 20_000, 5e8  # limits of the adaptive linear solver: nodes, memory of all worlds [bytes]
_FULLY = 500  # vertices of rigid bodies for which there is room for four contacts each at first
_MOST_PAIRS = 64  # largest number of contacts per vertex in a step; with nodes on nodes there are seven


def build(
    scene: Scene,
    cell_size: float,
    solid: ReferenceElement,
    slots: int,
    collisions: bool,
    splitting: bool,
    linear_solver: str,
    worlds: int,
    device: wp.Device,
    chosen: bool = True,
) -> ProjectiveModel:
    """Arrays of `scene`, with solids meshed by one kind of element of size `cell_size` [m].

    If the user has not `chosen` the kind of element, a warning names the parts that this kind makes too stiff in
    bending.

    Raises:
        SceneError: The scene cannot be simulated by projective dynamics; the message gives the reason.
    """
    refuse_unsupported(scene)
    posed = at_start(scene)
    mesh = assemble(posed, cell_size, solid)
    if not chosen:
        warn_of_stiff_bending(scene, mesh)
    refuse_copies("ProjectiveDynamics", worlds, 1e3 * len(mesh) + _memory(solid) * len(mesh.solids))
    normals = normals_of(scene, mesh.regions)
    fixed = np.zeros(len(mesh), dtype=bool)
    fixed[[i for i, n in normals.items() if len(n) == 3]] = True
    guided = {i: n for i, n in normals.items() if len(n) < 3}
    anchored = anchored_in(scene, mesh.regions, len(mesh))
    refuse_shared(scene, mesh)
    refuse_idle(scene, mesh)
    solids = mesh.of(mesh.solid.name)
    groups = _groups(scene, mesh)
    stresses = {i: a for i, a in enumerate(scene.actuators) if acts_as_stress(a)}
    laws = active_laws(stresses.values(), 3)
    oscillations, motors = oscillating(scene), [a for a in scene.actuators if isinstance(a, Motor)]
    driven = {name: inside[solids] for name, inside in mesh.element_regions.items()}
    fluid = _fluid(scene)
    obstacle, hard = _solids(scene)
    if fault := element_strains(scene, mesh.element_regions).fault():
        raise SceneError(fault)
    refuse_unbound(posed, mesh)
    obstructed = bool(hard) or collisions
    surfaces = bone_surfaces_of(posed, mesh, cell_size, obstructed)
    components = components_of(scene, mesh, surfaces)
    skeleton = skeleton_of(scene, mesh, components, worlds, device)
    edges = obstacle_edges_of(scene, components.sizes[0]) if collisions else ObstacleEdges.none()
    laws_of_pairs(scene, surfaces.bones)
    _warn_of_laws(scene, mesh, surfaces)
    refuse_overlap(posed, mesh, surfaces, components)
    refuse_swallowed(posed, surfaces, cell_size)
    if collisions:
        refuse_penetration(posed, mesh, surfaces, cell_size)
    refuse_held_bones(scene, mesh)
    if skeleton is not None:
        mesh = dataclasses.replace(mesh, velocity=bound_velocity(skeleton, mesh))
    vec, model_solids = vector(3), solids_of(hard, SAMPLES, 0.0, device)

    constants = vars(mesh) if mesh.damped else vars(mesh) | {"damping": []}

    def constant(values: np.ndarray, dtype: type = real) -> wp.array:
        return tiled(values, worlds, device, dtype)

    across = widths(model_solids)[:, 1]
    angular = np.array([collisions and is_angular(part) for _, part in hard], dtype=bool)
    across[angular] = 0.0  # contacts at their edges need no surface samples
    solid_shapes = across, angular
    frames = MovingFrames(scene, worlds, device, model_solids, obstacle)
    held = fixed, anchored, guided, frames_in(scene, mesh.regions, frames.of_constraint, len(mesh))
    topology = _topology(
        posed, mesh, surfaces, edges, components, solid_shapes, held, collisions, skeleton, worlds, device
    )
    if linear_solver == "direct":
        _refuse_direct(scene, topology)
    elif linear_solver == "adaptive" and not _is_factored(scene, topology, splitting):
        linear_solver = "iterative"
    extra = extra_rest_friction(scene.obstacles)
    return ProjectiveModel(
        scene=scene,
        worlds=worlds,
        device=device,
        mesh=mesh,
        groups=groups,
        **tiled_parameters(MeshConstants, constants, worlds, device, {"scalar": real}),
        density=constant(mesh.element_density),
        law_constants={name: constant(values) for name, values in mesh.law_constants.items()},
        amplitude=constant([o.amplitude for o in oscillations]),
        frequency=constant([o.frequency for o in oscillations]),
        phase=constant([o.phase for o in oscillations]),
        torque=constant([m.max_torque for m in motors]),
        speed=constant([m.max_speed for m in motors]),
        rest_position=constant(mesh.position, vec),
        anchor=constant(mesh.position[anchored], vec),
        load=constant(load_forces(scene, mesh), vec),
        friction=constant(coefficients(scene.obstacles)),
        body_friction=constant([*(b.friction for b in scene.soft), *(scene.rigid[k].friction for k in surfaces.bones)]),
        contact_friction=constant([c.friction for c in scene.laws]),
        gravity=constant(scene.gravity, vec),
        fluid_density=constant(fluid["density"]),
        fluid_velocity=constant(fluid["velocity"], vec),
        drag=constant(fluid["drag"]),
        thrust=constant(fluid["thrust"]),
        activation=activation(stresses, driven, len(mesh.solids), 3, device, laws),
        active_laws=laws,
        growth=growth_of(scene, mesh.position[mesh.solids].mean(axis=1), driven, device),
        signals=signals(scene, device),
        solids=model_solids,
        obstacle=wp.array(obstacle, dtype=int, device=device),
        condition=wp.array([CODES[o.condition] for o in scene.obstacles], dtype=int, device=device),
        frames=frames,
        **motion_parameters(scene, worlds, device),
        extra=wp.array(extra.astype(real_numpy), dtype=real, device=device),
        skeleton=skeleton,
        topology=topology,
        matrices=GlobalMatrices(topology, skeleton, splitting, slots, linear_solver),
        workspace=ProjectiveWorkspace(
            topology,
            skeleton,
            motors_of(scene),
            len(signals_of(scene.actuators)) if oscillations else 0,
            most_constants(groups),
            bool(extra.any()),
        ),
    )


def _topology(
    scene: Scene,
    mesh: Mesh,
    surfaces: BoneSurfaces,
    edges: ObstacleEdges,
    components: Components,
    solid_shapes: tuple[np.ndarray, np.ndarray],
    held: tuple[np.ndarray, np.ndarray, dict[int, np.ndarray], np.ndarray],
    collisions: bool,
    skeleton: ArticulatedModel | None,
    worlds: int,
    device: wp.Device,
) -> MeshTopology:
    """The `MeshTopology` of a scene: points that may be in contact, and all sizes."""
    fixed, (across, angular) = held[0], solid_shapes
    obstructed = collisions or len(across) > 0
    candidates = _candidates(mesh, surfaces, fixed) if obstructed else np.zeros(0, dtype=int)
    samples = _samples(mesh, surfaces, fixed, across, components)
    sizes = ProjectiveSizes(
        worlds=worlds,
        nodes=len(mesh),
        vertices=len(surfaces),
        edge_ends=len(edges),
        freedom=skeleton.robot.freedom if skeleton else 0,
        bodies=len(scene.soft) + len(surfaces.bones) + len(scene.obstacles),
        candidates=len(candidates),
        samples=len(samples),
        solids=len(across),
        capacity=_room(mesh, surfaces, edges) if collisions else 0,
        most=_MOST_PAIRS * (_vertices(mesh) + len(surfaces.vertices)),
    )
    of_joints = components.of_joints(skeleton.robot if skeleton else None)
    standing = np.append(np.zeros(len(mesh), dtype=bool), immovable(scene)[surfaces.bone])
    where = candidates, samples, across, angular, standing, components, of_joints
    return MeshTopology(scene.rigid, mesh, surfaces, edges, *held, *where, sizes, device)


def _warn_of_laws(scene: Scene, mesh: Mesh, surfaces: BoneSurfaces) -> None:
    """Warn of a pair that `Scene.contacts` leaves out, a body that falls through an obstacle, or hidden friction."""
    moving = surfaces.bones[~immovable(scene)[surfaces.bones]]
    warning = unnamed_obstacles(scene, moving) or friction_alone(scene, moving)
    if warning is None and scene.contacts is not None and not (mesh.bone >= 0).any():
        warning = missing_law(scene, scene.soft)
    warning = warning or hidden_friction(scene)
    if warning is not None:
        warn_user(warning)


def _fluid(scene: Scene) -> dict[str, np.ndarray]:
    """Parameters of the fluid; without a fluid all arrays are empty."""
    if scene.fluid is None:
        return {"density": np.zeros(0), "velocity": np.zeros((0, 3)), "drag": np.zeros(0), "thrust": np.zeros(0)}
    tables = {name: np.array(getattr(scene.fluid, name))[:, 1] for name in ("drag", "thrust")}
    velocity = scene.fluid.velocity or (0.0,) * 3
    return {"density": np.array([scene.fluid.density]), "velocity": np.array([velocity]), **tables}


def _candidates(mesh: Mesh, surfaces: BoneSurfaces, fixed: np.ndarray) -> np.ndarray:
    """Nodes of surfaces and bars that are not fixed, and vertices of bone surfaces."""
    soft = [(part.faces + part.nodes.start).reshape(-1) for part in mesh.meshes]
    surface = np.unique(np.concatenate([*soft, mesh.bars.reshape(-1)]))
    return np.append(surface[~fixed[surface]], len(mesh) + surfaces.vertices)


def _samples(
    mesh: Mesh, surfaces: BoneSurfaces, fixed: np.ndarray, across: np.ndarray, components: Components
) -> SurfaceSamples:
    """Samples of faces and bars with a node that is not fixed, for solids with the widths `across` [m]."""
    faces = np.concatenate([*(part.faces + part.nodes.start for part in mesh.meshes), surfaces.faces + len(mesh)])
    held = np.append(fixed, np.zeros(len(surfaces), dtype=bool))
    faces, bars = (ends[~held[ends].all(axis=1)] for ends in (faces, mesh.bars))
    return surface_samples_of(np.concatenate([mesh.position, surfaces.position]), faces, bars, across, components)


def _room(mesh: Mesh, surfaces: BoneSurfaces, edges: ObstacleEdges) -> int:
    """Pairs to allocate: 4 per surface vertex, 4 per end of an obstacle edge (for at most as many ends), plus 64.

    Most of the surfaces of rigid bodies touches nothing: beyond the first 500 of their vertices there is one per
    vertex.
    """
    soft, rigid = _vertices(mesh), len(surfaces.vertices)
    vertices = soft + rigid
    many = max(rigid - _FULLY, 0)
    return 64 + 4 * (vertices + min(len(edges), vertices)) - 3 * many if vertices else 0


def _vertices(mesh: Mesh) -> int:
    """Number of vertices of the surfaces of soft bodies."""
    return sum(len(np.unique(part.faces)) for part in mesh.meshes)


def _solids(scene: Scene) -> tuple[list[int], list[tuple[int, Shape]]]:
    """Index of the obstacle of each solid, and the solids; an obstacle that is a union consists of several solids."""
    parts = [(i, part) for i, o in enumerate(scene.obstacles) for part in parts_of(o.shape)]
    return [i for i, _ in parts], [(-1, part) for _, part in parts]


def _groups(scene: Scene, mesh: Mesh) -> tuple[LawGroup, ...]:
    """Consecutive solid elements with the same law, as groups."""
    counts = np.bincount(mesh.element_body[mesh.of(mesh.solid.name)], minlength=len(scene.bodies))
    return law_groups((b.material for b in scene.soft), counts[[part.body for part in mesh.meshes]])


def _memory(solid: ReferenceElement) -> float:
    """Memory of a solid element in each world [bytes]."""
    return 300.0 if solid is TETRAHEDRON else 50.0 * solid.gradients[..., 0].size + 100.0 * len(solid.shares) ** 2


def _refuse_direct(scene: Scene, topology: MeshTopology) -> None:
    """Raise if the second derivative of the scene cannot be factored, or the factors of all worlds are too large."""
    if _turns(topology):
        raise SceneError(
            "ProjectiveDynamics: lines and planes of a Constraint that moves may turn, and linear_solver='direct' "
            "takes them as they are at the start; use linear_solver='adaptive' or 'iterative'"
        )
    if not is_symmetric(scene):
        bones = [body.name for body in scene.rigid]
        what = f"the bones {', '.join(map(repr, bones))} make" if bones else "the fluid makes"
        for actuator in without_energy(scene):
            what = f"the stress of {type(actuator).__name__} {actuator.name!r}, which derives from no energy, makes"
        raise SceneError(
            f"ProjectiveDynamics: {what} the systems of adjoints unsymmetric, and linear_solver='direct' factors "
            f"symmetric ones; use linear_solver='adaptive' or 'iterative'"
        )
    elimination, worlds = topology.elimination, topology.sizes.worlds
    refuse_copies("ProjectiveDynamics", worlds, elimination.memory)
    if elimination.numbers * worlds >= _NUMBERS:
        raise SceneError(
            f"ProjectiveDynamics: linear_solver='direct' keeps {elimination.numbers} vectors in each of {worlds} "
            f"worlds, and there is room for {_NUMBERS} in all; use fewer worlds, larger cells, or "
            f"linear_solver='adaptive' or 'iterative'"
        )


def _turns(topology: MeshTopology) -> bool:
    """Whether the line or plane of a node may turn."""
    return bool((topology.frame[list(topology.guided)] >= 0).any())


def _is_factored(scene: Scene, topology: MeshTopology, splitting: bool) -> bool:
    """Whether the adaptive linear solver of a scene may factor second derivatives."""
    sizes, unsymmetric = topology.sizes, not topology.components.symmetric.any() and not scene.rigid
    if (
        not (is_symmetric(scene) or unsymmetric)
        or _turns(topology)
        or splitting
        or topology.device.is_cuda
        or sizes.nodes > _FACTORED_NODES
    ):
        return False
    return sizes.worlds * topology.elimination.memory <= _FACTORS
