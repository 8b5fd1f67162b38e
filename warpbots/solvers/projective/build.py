"""How a scene becomes a `ProjectiveModel`."""

import itertools

import numpy as np
import warp as wp
from scipy.sparse import coo_matrix, csc_matrix

from warpbots.actuators import activation
from warpbots.contact import CODES, coefficients, extra_rest_friction, signed_distance
from warpbots.contact.solid import solids_of
from warpbots.materials import LAWS
from warpbots.math import real, real_numpy, vector
from warpbots.scene import Cable, Expansion, Motor, Oscillation, Scene, SceneError, Shape
from warpbots.solvers.checks import refuse_rigid
from warpbots.solvers.projective.mesh import Mesh, assemble
from warpbots.solvers.projective.model import Group, ProjectiveModel
from warpbots.solvers.projective.scratch import Scratch

__all__ = ["build", "weights"]

_SAMPLES = 64  # along the longest edge of obstacles without a closed form


def build(
    scene: Scene, cell_size: float, slots: int, collisions: bool, worlds: int, device: wp.Device
) -> ProjectiveModel:
    """Arrays of `scene` with tetrahedra of size `cell_size` [m].

    Raises:
        SceneError: The scene cannot be simulated by projective dynamics; the message says why.
    """
    _refuse_what_is_unknown(scene)
    mesh = assemble(scene, cell_size)
    fixed = np.zeros(len(mesh), dtype=bool)
    for constraint in scene.constraints:
        fixed |= mesh.regions[constraint.region]
    stresses = dict(enumerate(scene.actuators))
    obstacle, solids = _solids(scene)
    _refuse_overlap(scene, mesh)
    weight = weights(mesh.youngs_modulus, mesh.poissons_ratio)
    stiffness, size = _stiffness(mesh, weight)
    vec = vector(3)

    def constant(values: np.ndarray, dtype: type = real) -> wp.array:
        values = np.asarray(values, dtype=real_numpy)
        return wp.array(np.tile(values, (worlds, *(1,) * values.ndim)), dtype=dtype, device=device)

    return ProjectiveModel(
        scene=scene,
        worlds=worlds,
        device=device,
        particles=mesh,
        groups=_groups(scene, mesh),
        youngs_modulus=constant(mesh.youngs_modulus),
        poissons_ratio=constant(mesh.poissons_ratio),
        density=constant(mesh.element_density),
        rest_position=constant(mesh.position, vec),
        anchor=constant(mesh.position[fixed], vec),
        load=constant(_loads(scene, mesh), vec),
        friction=constant(coefficients(scene.obstacles)),
        body_friction=constant([b.friction for b in scene.bodies]),
        gravity=constant(scene.gravity, vec),
        activation=activation(stresses, mesh.element_regions, len(mesh.tets), 3, device),
        solids=solids_of(solids, _SAMPLES, 0.0, device),
        obstacle=wp.array(obstacle, dtype=int, device=device),
        condition=wp.array([CODES[o.condition] for o in scene.obstacles], dtype=int, device=device),
        extra=wp.array(extra_rest_friction(scene.obstacles).astype(real_numpy), dtype=real, device=device),
        scratch=Scratch(
            mesh=mesh,
            fixed=fixed,
            stiffness=stiffness,
            nominal=weight * mesh.element_volume * size,
            touching=_touching(mesh, fixed) if solids or collisions else np.zeros(0, dtype=int),
            solids=len(solids),
            capacity=_room(mesh) if collisions else 0,
            worlds=worlds,
            slots=slots,
            device=device,
        ),
    )


def _touching(mesh: Mesh, fixed: np.ndarray) -> np.ndarray:
    """Nodes of surfaces that are not fixed."""
    surface = np.unique(np.concatenate([(part.faces + part.nodes.start).reshape(-1) for part in mesh.meshes]))
    return surface[~fixed[surface]]


def _room(mesh: Mesh) -> int:
    """Contacts of pairs that there is room for: four for every vertex of a surface."""
    return 64 + 4 * sum(len(np.unique(part.faces)) for part in mesh.meshes)


def _solids(scene: Scene) -> tuple[list[int], list[tuple[int, Shape]]]:
    """Obstacle of each solid, and the solids: a union is several."""
    parts = [(i, part) for i, o in enumerate(scene.obstacles) for part in getattr(o.shape, "shapes", (o.shape,))]
    return [i for i, _ in parts], [(-1, part) for _, part in parts]


def _refuse_overlap(scene: Scene, mesh: Mesh) -> None:
    """Raise if matter starts inside of an obstacle."""
    for obstacle in scene.obstacles:
        depth = -signed_distance(obstacle.shape, mesh.position)
        if depth.max() > 1e-3 * mesh.edge:
            i = int(depth.argmax())
            inside = int((depth > 1e-3 * mesh.edge).sum())
            raise SceneError(
                f"Obstacle {obstacle.name!r}: {inside} nodes of SoftBody {scene.bodies[mesh.body[i]].name!r} start "
                f"inside of it, the deepest {depth[i]:.4g} m; move the body or the obstacle apart"
            )


def weights(E: np.ndarray, nu: np.ndarray) -> np.ndarray:
    """Weight of elements in the matrix of the global step [Pa].

    With 2 mu + lambda it is that of projective dynamics. The iteration converges if the matrix is not below half the
    second derivative of the energy, whose largest eigenvalue at rest is 2 mu + 3 lambda: hence the other bound, which
    takes over above a Poisson's ratio of 1/3.
    """
    mu, lam = E / (2.0 * (1.0 + nu)), E * nu / ((1.0 + nu) * (1.0 - 2.0 * nu))
    return np.maximum(2.0 * mu + lam, mu + 1.5 * lam)


def _stiffness(mesh: Mesh, weight: np.ndarray) -> tuple[csc_matrix, np.ndarray]:
    """Sum of w V G G^T over the elements [N/m], and |D_0^-1|^2 [1/m^2] of each."""
    x, tets = mesh.position, mesh.tets
    inverse = np.linalg.inv(np.swapaxes(x[tets[:, 1:]] - x[tets[:, :1]], 1, 2))
    G = np.concatenate([-inverse.sum(axis=1, keepdims=True), inverse], axis=1)
    blocks = (weight * mesh.element_volume)[:, None, None] * (G @ np.swapaxes(G, 1, 2))
    rows, columns = np.repeat(tets, 4, axis=1).reshape(-1), np.tile(tets, (1, 4)).reshape(-1)
    return coo_matrix((blocks.reshape(-1), (rows, columns)), shape=(len(x), len(x))).tocsc(), (inverse**2).sum((1, 2))


def _groups(scene: Scene, mesh: Mesh) -> tuple[Group, ...]:
    """Runs of tetrahedra with one law; neighbouring bodies of one law make one run."""
    laws = [(b.material.law, b.material.incompressibility) for b in scene.bodies]
    counts = np.bincount(mesh.element_body, minlength=len(laws))
    groups, first = [], 0
    for law, run in itertools.groupby(zip(laws, counts, strict=True), key=lambda pair: pair[0]):
        count = int(sum(n for _, n in run))
        groups.append(Group(*law, first, count))
        first += count
    return tuple(groups)


def _loads(scene: Scene, mesh: Mesh) -> np.ndarray:
    """Steady forces on the nodes [N], shape (n_nodes, 3): each load spread over its region by volume."""
    force = np.zeros((len(mesh), 3))
    for load in scene.loads:
        share = mesh.volume * mesh.regions[load.region]
        force += share[:, None] / share.sum() * np.array(load.force)
    return force


def _refuse_what_is_unknown(scene: Scene) -> None:
    """Raise if the scene has something that projective dynamics cannot simulate."""
    refuse_rigid("ProjectiveDynamics", scene)
    if scene.dim != 3:
        raise SceneError("ProjectiveDynamics simulates bodies in space; this scene is 2D: use MPM or MassSpring")
    for body in scene.bodies:
        if body.material.law not in LAWS:
            raise SceneError(f"SoftBody {body.name!r}: law must be one of {', '.join(LAWS)}, got {body.material.law!r}")
        for material in (body.material, *body.region_materials.values()):
            if material.damping:
                raise SceneError(f"SoftBody {body.name!r}: ProjectiveDynamics knows no damping yet; set damping=0")
            for field in ("yield_strain", "breaking_strain"):
                if getattr(material, field) is not None:
                    raise SceneError(
                        f"SoftBody {body.name!r}: ProjectiveDynamics knows no {field}; leave it out, or use MassSpring"
                    )
    for actuator in scene.actuators:
        if isinstance(actuator, Motor | Expansion | Oscillation | Cable):
            raise SceneError(
                f"{type(actuator).__name__} {actuator.name!r}: ProjectiveDynamics knows no such actuator yet; use "
                f"Pressure or Muscle"
            )
    for constraint in scene.constraints:
        if constraint.freedom != "fixed":
            raise SceneError(
                f"Constraint {constraint.name!r}: ProjectiveDynamics knows only 'fixed', got {constraint.freedom!r}"
            )
    for part in scene.attachments:
        raise SceneError(f"{type(part).__name__} {part.name!r}: ProjectiveDynamics knows no such thing yet")
