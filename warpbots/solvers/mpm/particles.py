"""Converts a scene to particles, on the host: fills shapes on a lattice, and assigns materials and regions."""

import dataclasses
from typing import Generic

import numpy as np

from warpbots.contact import signed_distance
from warpbots.numerics.parameters import ANY, NOT_NEGATIVE, POSITIVE, parameter, parameters_of, parametric, shared
from warpbots.scene import (
    CamClay,
    DruckerPrager,
    Material,
    Points,
    Scene,
    SceneError,
    Shape,
    SoftBody,
    TetMesh,
    TriangleMesh,
    VonMises,
)
from warpbots.scene.memory_limit import refuse_excess
from warpbots.solvers.array_fields import Array
from warpbots.solvers.law_constants import law_constants_at
from warpbots.solvers.matter import Matter, elasticity_of, materials_at, refuse_empty, regions_at, together
from warpbots.solvers.parameters import DAMPING, DENSITY, POISSONS_RATIO, YOUNGS_MODULUS

__all__ = ["STRENGTH", "ParticleConstants", "Particles", "fill"]

_PARTICLE = 400.0
"""Memory that a particle takes [bytes]."""

STRENGTH = {field.name: kind for kind in (VonMises, DruckerPrager, CamClay) for field in dataclasses.fields(kind)}
"""Parameters of plastic matter, each a field of one kind of plasticity."""

_FAMILIES, _BRANCHES = "n_particles, n_families", "n_particles, n_branches"


@parametric
class ParticleConstants(Generic[Array]):
    """Constants of particles: NumPy arrays in `Particles`, and Warp arrays with an axis for the worlds in a model.

    The constants of `VonMises` (`yield_stress`, `hardening`), `DruckerPrager` (`friction_angle`) and `CamClay`
    (`preconsolidation_pressure`, `stress_ratio`, `cohesion`, `hardening_coefficient`) have no effect on other matter.
    Entries beyond the number of fibre families or Maxwell branches of the particle's own material have no effect.
    """

    youngs_modulus: Array = shared(YOUNGS_MODULUS, "particle")
    poissons_ratio: Array = shared(POISSONS_RATIO, "particle")
    density: Array = shared(DENSITY, "particle", unit="kg/m^dim", doc="mass density at rest")
    volume: Array = parameter("m^dim", POSITIVE, "particle", "volume at rest")
    damping: Array = shared(DAMPING, "particle")
    yield_stress: Array = parameter("Pa", POSITIVE, "particle", "yield stress", intensive=True, neutral=1e30)
    hardening: Array = parameter("Pa", NOT_NEGATIVE, "particle", "hardening modulus", intensive=True, neutral=0.0)
    friction_angle: Array = parameter(
        "deg", (0.0, 90.0, False), "particle", "angle of internal friction", intensive=True, neutral=45.0
    )
    preconsolidation_pressure: Array = parameter(
        "Pa", POSITIVE, "particle", "initial preconsolidation pressure", intensive=True, neutral=1e30
    )
    stress_ratio: Array = parameter(
        "1", POSITIVE, "particle", "slope of the critical state line", intensive=True, neutral=1.0
    )
    cohesion: Array = parameter(
        "1", NOT_NEGATIVE, "particle", "tensile strength over preconsolidation pressure", intensive=True, neutral=0.0
    )
    hardening_coefficient: Array = parameter(
        "1", NOT_NEGATIVE, "particle", "growth of ln p_c per strain of compaction", intensive=True, neutral=0.0
    )
    fibre_modulus: Array = parameter(
        "Pa", NOT_NEGATIVE, "particle", "stiffness of each family of fibres", intensive=True, axes=_FAMILIES
    )
    fibre_direction: Array = parameter(
        "1", ANY, "particle", "direction of each family", intensive=True, axes=_FAMILIES, entry="direction",
        meaning="direction of each family at rest; its length has no effect",
    )  # fmt: skip
    branch_modulus: Array = parameter(
        "Pa", NOT_NEGATIVE, "particle", "shear modulus of each Maxwell branch", intensive=True, axes=_BRANCHES
    )
    relaxation_time: Array = parameter(
        "s", POSITIVE, "particle", "its relaxation time", intensive=True, axes=_BRANCHES,
        meaning="relaxation time of each Maxwell branch",
    )  # fmt: skip


@parametric
class Particles(Matter, ParticleConstants[np.ndarray]):
    """Matter of MPM: particles, each with a volume and a material.

    Attributes:
        fibres: Number of families of fibres in each particle, shape (n,), int.
        branches: Number of Maxwell branches in each particle, shape (n,), int.
        law_constants: Constants of the laws by name, without effect on matter with another law [1, or the unit that
            the law declares], each of shape (n,).
        spacing: Distance to the next particle along the axis with the widest spacing [m], shape (n,); infinite for
            particles that are not on a lattice.
    """

    fibres: np.ndarray
    branches: np.ndarray
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
        **elasticity_of(materials),
        **{name: np.array([_strength(m, name) for m in materials]) for name in STRENGTH},
        **_constituents(materials, families, branches, dim),
        "spacing": np.full(n, apart),
        "body": np.full(n, index),
        "regions": regions,
    }


def _strength(material: Material, name: str) -> float:
    """The constant `name` of the plasticity of a material, or its neutral value if the material lacks it."""
    constants = vars(material.plasticity) if material.plasticity else {}
    return constants.get(name, parameters_of(ParticleConstants)[name].neutral)


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
