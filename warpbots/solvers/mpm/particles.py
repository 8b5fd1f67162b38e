"""Converts a scene to particles, on the host: fills shapes on a lattice, and assigns materials and regions."""

import dataclasses

import numpy as np

from warpbots.contact import signed_distance
from warpbots.scene import Material, Points, Scene, SceneError, Shape, SoftBody, TetMesh, TriangleMesh
from warpbots.scene.memory_limit import refuse_excess
from warpbots.solvers.law_constants import law_constants_at
from warpbots.solvers.matter import Matter, materials_at, refuse_empty, regions_at, together

__all__ = ["Particles", "fill"]

ELASTIC = {
    "yield_stress": 1e30, "hardening": 0.0, "friction_angle": 45.0, "preconsolidation_pressure": 1e30,
    "stress_ratio": 1.0, "cohesion": 0.0, "hardening_coefficient": 0.0,
}  # fmt: skip
"""Values of constants of plasticity for matter that lacks them: within their ranges, and without effect."""

_PARTICLE = 400.0
"""Memory that a particle takes [bytes]."""


@dataclasses.dataclass(frozen=True)
class Particles(Matter):
    """Matter of MPM: particles, each with a volume and a material.

    The second axis of an array is the index of a fibre family or Maxwell branch. Its length is the largest number of
    families or branches in any material; entries beyond the number of the particle's material have no effect.

    Attributes:
        youngs_modulus: Young's modulus of each particle [Pa], shape (n,).
        poissons_ratio: Poisson's ratio of each particle [1], shape (n,).
        damping: Time of Kelvin-Voigt damping of each particle [s], shape (n,).
        yield_stress: Yield stress [Pa], shape (n,); meaningful only for particles of `VonMises` matter.
        hardening: Hardening modulus [Pa], shape (n,); meaningful only for particles of `VonMises` matter.
        friction_angle: Angle of internal friction [degrees], shape (n,); meaningful only for particles of
            `DruckerPrager` matter.
        preconsolidation_pressure: Initial preconsolidation pressure [Pa], shape (n,); meaningful only for particles of
            `CamClay` matter, as are `stress_ratio`, `cohesion` and `hardening_coefficient`.
        stress_ratio: Slope of the critical state line of Cam clay [1], shape (n,).
        cohesion: Tensile strength of Cam clay divided by its preconsolidation pressure [1], shape (n,).
        hardening_coefficient: Increase of the logarithm of the preconsolidation pressure per volumetric strain of
            compaction [1], shape (n,).
        fibres: Number of families of fibres in each particle, shape (n,), int.
        fibre_modulus: Stiffness of the fibres of each family [Pa], shape (n, n_families).
        fibre_direction: Direction of the fibres of each family at rest [1], shape (n, n_families, dim).
        branches: Number of Maxwell branches in each particle, shape (n,), int.
        branch_modulus: Shear modulus of each branch [Pa], shape (n, n_branches).
        relaxation_time: Relaxation time of each branch [s], shape (n, n_branches).
        law_constants: Constants of the laws by name, without effect on matter with another law [1, or the unit that
            the law declares], each of shape (n,).
        spacing: Distance to the next particle along the axis with the widest spacing [m], shape (n,); infinite for
            particles that are not on a lattice.
    """

    youngs_modulus: np.ndarray
    poissons_ratio: np.ndarray
    damping: np.ndarray
    yield_stress: np.ndarray
    hardening: np.ndarray
    friction_angle: np.ndarray
    preconsolidation_pressure: np.ndarray
    stress_ratio: np.ndarray
    cohesion: np.ndarray
    hardening_coefficient: np.ndarray
    fibres: np.ndarray
    fibre_modulus: np.ndarray
    fibre_direction: np.ndarray
    branches: np.ndarray
    branch_modulus: np.ndarray
    relaxation_time: np.ndarray
    law_constants: dict[str, np.ndarray]
    spacing: np.ndarray


def fill(scene: Scene, dx: float, per_axis: int) -> Particles:
    """Fill every body of `scene` with particles.

    Args:
        scene: The scene.
        dx: Size of a grid cell [m].
        per_axis: Particles per cell along each axis.

    Raises:
        SceneError: A body or a region contains no particle.
    """
    materials = [m for body in scene.bodies for m in body.materials]
    families, branches = (max((len(getattr(m, f)) for m in materials), default=0) for f in ("fibres", "branches"))
    parts = [_fill_body(b, dx / per_axis, i, families, branches) for i, b in enumerate(scene.bodies)]
    constants = law_constants_at(scene, [m for part in parts for m in part.pop("material")])
    return Particles(**together(scene, parts), law_constants=constants)


def _fill_body(body: SoftBody, spacing: float, index: int, families: int, branches: int) -> dict:
    position, volume, apart = _fill_shape(body.shape, spacing)
    if len(position) == 0:
        lower, upper = body.shape.bounds
        raise SceneError(
            f"SoftBody {body.name!r}: no particle fits into its shape of {(upper - lower).round(6).tolist()} m with "
            f"particles {spacing:g} m apart; use a smaller MPM(dx=...)"
        )
    n, dim = position.shape
    regions = _regions(body, position, apart)
    refuse_empty(body, regions, "particles", "use a smaller MPM(dx=...)")
    materials = materials_at(body, regions, n)
    return {
        "position": position,
        "material": materials,
        "velocity": np.tile(np.array(body.velocity or (0.0,) * dim), (n, 1)),
        "volume": volume,
        "youngs_modulus": np.array([m.youngs_modulus for m in materials]),
        "poissons_ratio": np.array([m.poissons_ratio for m in materials]),
        "density": np.array([m.density for m in materials]),
        "damping": np.array([m.damping for m in materials]),
        **{name: np.array([_strength(m, name) for m in materials]) for name in ELASTIC},
        **_constituents(materials, families, branches, dim),
        "spacing": np.full(n, apart),
        "body": np.full(n, index),
        "regions": regions,
    }


def _strength(material: Material, name: str) -> float:
    """The constant `name` of the plasticity of a material, or a neutral value if the material has no such constant."""
    return vars(material.plasticity).get(name, ELASTIC[name]) if material.plasticity else ELASTIC[name]


def _constituents(materials: np.ndarray, families: int, branches: int, dim: int) -> dict:
    """Fields of `Particles` for fibres and Maxwell branches, from the material of each particle."""
    n = len(materials)
    modulus, direction = np.zeros((n, families)), np.zeros((n, families, dim))
    shear, time = np.zeros((n, branches)), np.ones((n, branches))
    direction[..., 0] = 1.0
    for i, material in enumerate(materials):
        for k, fibre in enumerate(material.fibres):
            modulus[i, k], direction[i, k] = fibre.modulus, fibre.direction
        for k, branch in enumerate(material.branches):
            shear[i, k], time[i, k] = branch.shear_modulus, branch.relaxation_time
    return {
        "fibres": np.array([len(m.fibres) for m in materials]),
        "fibre_modulus": modulus,
        "fibre_direction": direction,
        "branches": np.array([len(m.branches) for m in materials]),
        "branch_modulus": shear,
        "relaxation_time": time,
    }


def _regions(body: SoftBody, position: np.ndarray, spacing: float) -> dict[str, np.ndarray]:
    """The particles of each region of a body, by the name of the region.

    The result is that of `regions_at`, except for a region that is too thin to contain a particle, such as a face: it
    gets all particles whose cells it cuts.
    """
    regions, reach = regions_at(body, position), np.sqrt(position.shape[1]) / 2.0 * spacing
    if np.isfinite(spacing) and not all(inside.any() for inside in regions.values()):
        wide = regions_at(body, position, slack=reach)
        regions = {name: inside if inside.any() else wide[name] for name, inside in regions.items()}
    return regions


def _fill_shape(shape: Shape, spacing: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Positions [m], volumes [m^dim] and spacing [m] on a lattice that fits the bounding box of `shape` exactly."""
    if isinstance(shape, Points):
        return shape.positions, shape.volumes, np.inf
    lower, upper = shape.bounds
    if not np.isfinite(upper - lower).all():
        raise SceneError(f"a {type(shape).__name__} has no end; a body needs a bounded shape")
    counts = np.maximum(1.0, np.round((upper - lower) / spacing))
    refuse_excess(counts.prod(), _PARTICLE, "MPM: particles of a body", "use a larger MPM(dx=...) or a smaller body")
    counts = counts.astype(int)
    step = (upper - lower) / counts
    axes = [lo + (np.arange(n) + 0.5) * h for lo, n, h in zip(lower, counts, step, strict=True)]
    lattice = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(lower))
    position = lattice[signed_distance(shape, lattice) <= 0.0]
    volume = float(np.prod(step))
    if isinstance(shape, TriangleMesh | TetMesh) and len(position):
        volume = shape.volume / len(position)  # the enclosed volume is known, so that the mass of the body is exact
    return position, np.full(len(position), volume), float(step.max())
