"""How a scene becomes particles: shapes filled on a lattice, materials and regions looked up, on the host."""

import dataclasses

import numpy as np

from warpbots.contact import signed_distance
from warpbots.scene import Points, Scene, SceneError, Shape, SoftBody, TriangleMesh

__all__ = ["Particles", "fill"]


@dataclasses.dataclass(frozen=True)
class Particles:
    """All matter of a scene at rest, body after body; float64.

    Attributes:
        position: Rest positions [m], shape (n, dim).
        velocity: Initial velocities [m/s], shape (n, dim).
        volume: Rest volumes [m^dim], shape (n,).
        youngs_modulus: Young's modulus [Pa], shape (n,).
        poissons_ratio: Poisson's ratio [1], shape (n,).
        density: Density [kg/m^dim], shape (n,).
        body: Index of the body in the scene, shape (n,).
        regions: For every region name, which particles belong to it, each of shape (n,), bool.
    """

    position: np.ndarray
    velocity: np.ndarray
    volume: np.ndarray
    youngs_modulus: np.ndarray
    poissons_ratio: np.ndarray
    density: np.ndarray
    body: np.ndarray
    regions: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.position)


def fill(scene: Scene, dx: float, per_axis: int) -> Particles:
    """Fill every body of `scene` with particles.

    Args:
        scene: What to fill.
        dx: Size of a grid cell [m].
        per_axis: Particles per cell along each axis.

    Raises:
        SceneError: A body or a region contains no particle.
    """
    parts = [_fill_body(b, dx / per_axis, i) for i, b in enumerate(scene.bodies)]
    sizes = [len(p["position"]) for p in parts]
    start = np.concatenate([[0], np.cumsum(sizes)])
    regions = {name: np.zeros(start[-1], dtype=bool) for name in scene.regions()}
    for i, part in enumerate(parts):
        for name, inside in part.pop("regions").items():
            regions[name][start[i] : start[i + 1]] = inside
    fields = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
    return Particles(**fields, regions=regions)


def _fill_body(body: SoftBody, spacing: float, index: int) -> dict:
    position, volume = _fill_shape(body.shape, spacing)
    if len(position) == 0:
        lower, upper = body.shape.bounds
        raise SceneError(
            f"SoftBody {body.name!r}: no particle fits into its shape of {(upper - lower).round(6).tolist()} m with "
            f"particles {spacing:g} m apart; use a smaller MPM(dx=...)"
        )
    n, dim = position.shape
    materials = np.array([_constants(body.material)] * n)
    regions = {}
    for name, shape in body.regions.items():
        inside = signed_distance(shape, position) <= 0.0
        if not inside.any():
            lower, upper = shape.bounds
            raise SceneError(
                f"SoftBody {body.name!r}: region {name!r} (from {lower.round(6).tolist()} to {upper.round(6).tolist()} "
                f"m) selects 0 of {n} particles; move it onto the body or use a smaller MPM(dx=...)"
            )
        if name in body.region_materials:
            materials[inside] = _constants(body.region_materials[name])
        regions[name] = inside
    return {
        "position": position,
        "velocity": np.tile(np.array(body.velocity or (0.0,) * dim), (n, 1)),
        "volume": volume,
        "youngs_modulus": materials[:, 0],
        "poissons_ratio": materials[:, 1],
        "density": materials[:, 2],
        "body": np.full(n, index),
        "regions": regions,
    }


def _constants(material) -> tuple[float, float, float]:
    return material.youngs_modulus, material.poissons_ratio, material.density


def _fill_shape(shape: Shape, spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Particle positions [m] and volumes [m^dim] on a lattice that fits the bounding box of `shape` exactly."""
    if isinstance(shape, Points):
        return shape.positions, shape.volumes
    lower, upper = shape.bounds
    if not np.isfinite(upper - lower).all():
        raise SceneError(f"a {type(shape).__name__} has no end; a body needs a bounded shape")
    counts = np.maximum(1, np.round((upper - lower) / spacing)).astype(int)
    step = (upper - lower) / counts
    axes = [lo + (np.arange(n) + 0.5) * h for lo, n, h in zip(lower, counts, step, strict=True)]
    lattice = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(lower))
    position = lattice[signed_distance(shape, lattice) <= 0.0]
    volume = float(np.prod(step))
    if isinstance(shape, TriangleMesh) and len(position):
        volume = shape.volume / len(position)  # the enclosed volume is known: the body has exactly its mass
    return position, np.full(len(position), volume)
