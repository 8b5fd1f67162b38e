"""Assembly of bodies into one lattice: each cell gets its material, and the contributions of all cells are summed."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Generic

import numpy as np
from scipy.sparse import block_diag, csr_matrix

from warpbots.actuation_laws import rest_strain
from warpbots.numerics.parameters import NOT_NEGATIVE, POSITIVE, parameter, parametric, shared
from warpbots.scene import Scene, SceneError, SoftBody
from warpbots.solvers.array_fields import Array
from warpbots.solvers.mass_spring.actuation import signals_of
from warpbots.solvers.mass_spring.lattice.lattice_cells import Cells, eigenstrain
from warpbots.solvers.mass_spring.lattice.truss_bars import finer
from warpbots.solvers.mass_spring.plasticity import NEVER
from warpbots.solvers.matter import Matter, materials_at, refuse_empty, regions_at, together
from warpbots.solvers.parameters import YOUNGS_MODULUS

__all__ = ["Lattice", "LatticeConstants", "assemble"]


@parametric
class LatticeConstants(Generic[Array]):
    """Constants of masses and springs: NumPy arrays in a `Lattice`, and Warp arrays for all worlds in a model."""

    stiffness: Array = parameter("N/m", POSITIVE, "spring", "spring constant, at the Young's modulus of the scene")
    youngs_modulus: Array = shared(
        YOUNGS_MODULUS, "spring",
        meaning="Young's modulus; for a spring between cells of several materials the mean weighted by their shares",
    )  # fmt: skip
    rest_length: Array = parameter(
        "m", POSITIVE, "spring", "rest length", meaning="rest length without actuators and plastic strains"
    )
    damping: Array = parameter(
        "N s/m", NOT_NEGATIVE, "spring", "damping along the spring",
        meaning="damping along the spring at the Young's modulus of the scene",
    )  # fmt: skip
    yield_strain: Array = parameter(
        "1", POSITIVE, "spring", "strain at which the spring yields",
        meaning="strain at which the spring yields; `plasticity.NEVER` if it does not",
    )  # fmt: skip
    mass: Array = parameter("kg", POSITIVE, "mass", "mass")


@dataclasses.dataclass(frozen=True)
class DrawnCells(Matter):
    """The cells of lattices as matter that viewers draw.

    Attributes:
        whole: Whether no spring can yield or break.
    """

    whole: bool = False

    @property
    def holds(self) -> bool:
        """Whether the springs hold the matter together."""
        return self.whole


@parametric
class Lattice(Matter, LatticeConstants[np.ndarray]):
    """All soft matter of a scene as masses and springs.

    The masses are listed body after body. The springs are sorted by their first mass, then by their second mass.

    Attributes:
        ends: Indices of the two masses that each spring joins, the lower index first, shape (n_springs, 2), int.
        spring_body: For each spring, the index of its body in the scene, shape (n_springs,), int.
        breaking_strain: Strain at which each spring breaks [1], or `plasticity.NEVER` for a spring that cannot break,
            shape (n_springs,).
        cells: Matter at rest that viewers draw: the cells of the bodies, with each bar divided into several pieces.
        carry: Sparse matrix that maps positions of the masses to positions of `cells` [1], shape (n_cells, n).
        drive: Table of the signals that springs follow. Each row has the index of the spring, the index of the signal
            (`warpbots.solvers.mass_spring.actuation.signals_of`), the strain of the rest length that a signal of 1
            causes [1], and 1 if the actuator prescribes a stress or 0 if it prescribes a strain; shape (n_drives, 4).
    """

    ends: np.ndarray
    spring_body: np.ndarray
    breaking_strain: np.ndarray
    cells: DrawnCells
    carry: csr_matrix
    drive: np.ndarray

    def with_bodies(self, index: np.ndarray) -> "Lattice":
        """A copy of masses, springs and cells; see `Matter.with_bodies`."""
        cells = self.cells.with_bodies(index)
        return dataclasses.replace(self, body=index[self.body], spring_body=index[self.spring_body], cells=cells)

    @property
    def drawn(self) -> Matter:
        """Matter to draw: the cells, because discs around the masses on the surface would extend beyond the body."""
        return self.cells

    def drawn_at(self, values: np.ndarray) -> np.ndarray:
        """Convert values at masses, shape (..., n, m), to values at cells: the mean over the masses of each cell."""
        moved = self.carry @ np.moveaxis(values, -2, 0).reshape(values.shape[-2], -1)
        return np.moveaxis(moved.reshape(-1, *values.shape[:-2], values.shape[-1]), 0, -2)

    @property
    def springs(self) -> np.ndarray:
        """Indices of the masses that each spring joins, shape (n_springs, 2), int."""
        return self.ends

    @property
    def inelastic(self) -> bool:
        """Whether any spring can yield or break."""
        return not self.cells.whole


def assemble(scene: Scene, cells: list[Cells], damping: float = 0.0) -> Lattice:
    """Assemble the cells of all bodies of a scene into one lattice.

    Args:
        scene: The scene.
        cells: Cells of each body.
        damping: Time constant of Kelvin-Voigt damping, added to the damping of the materials [s].

    Raises:
        SceneError: A body has no cells, a region contains no cell, or a spring has no length.
    """
    parts, filled = [], []
    masses = springs = 0
    for i, (body, cut) in enumerate(zip(scene.bodies, cells, strict=True)):
        part, filling = _of_body(scene, body, cut, damping)
        part["body"], filling["body"] = np.full(len(cut.node), i), np.full(len(cut.piece), i)
        part["spring_body"] = np.full(len(part["ends"]), i)
        part["ends"] = part["ends"] + masses
        part["drive"][:, 0] += springs
        masses, springs = masses + len(cut.node), springs + len(part["ends"])
        parts.append(part)
        filled.append(filling)
    carry = block_diag([cut.carry for cut in cells], "csr")
    fields = together(scene, parts)
    whole = not (np.minimum(fields["yield_strain"], fields["breaking_strain"]) < NEVER).any()
    return Lattice(**fields, cells=DrawnCells(**together(scene, filled), whole=bool(whole)), carry=carry)


def _of_body(scene: Scene, body: SoftBody, cells: Cells, damping: float) -> tuple[dict, dict]:
    remedy = finer(body)
    if not len(cells.volume):
        lower, upper = body.shape.bounds
        raise SceneError(
            f"SoftBody {body.name!r}: no cell of the lattice fits into its shape of "
            f"{(upper - lower).round(6).tolist()} m; {remedy}"
        )
    filled = regions_at(body, cells.centre)
    slack = 1e-6 * float(np.linalg.norm(cells.node[cells.corner[0]].max(0) - cells.node[cells.corner[0]].min(0)))
    regions = regions_at(body, cells.node, slack)
    refuse_empty(body, regions, "masses", remedy)
    materials = materials_at(body, filled, len(cells.volume))
    E, rho, beta = (np.array([getattr(m, f) for m in materials]) for f in ("youngs_modulus", "density", "damping"))
    n, corners = len(cells.node), cells.corner.shape[1]

    def at_nodes(values: np.ndarray) -> np.ndarray:
        """Distribute the value of every cell in equal parts to its corners."""
        return np.bincount(cells.corner.reshape(-1), np.repeat(values / corners, corners), n)

    ends = np.sort(cells.ends.reshape(-1, 2), axis=1)
    key, spring = np.unique(ends[:, 0] * n + ends[:, 1], return_inverse=True)
    ends = np.stack([key // n, key % n], axis=1)
    share = (cells.weight * E[:, None]).reshape(-1)

    def at_springs(values: np.ndarray) -> np.ndarray:
        """Sum the contributions of all cells to their springs."""
        return np.bincount(spring, values.reshape(-1), len(key))

    def weakest(field: str) -> np.ndarray:
        """Smallest value of `field` among the materials of the cells of each spring."""
        limit = np.full(len(key), NEVER)
        own = np.array([NEVER if getattr(m, field) is None else getattr(m, field) for m in materials])
        np.minimum.at(limit, spring.reshape(-1), np.repeat(own, len(cells.pair)))
        return limit

    length = np.linalg.norm(cells.node[ends[:, 1]] - cells.node[ends[:, 0]], axis=1)
    if not (length > 0.0).all():
        i, j = ends[int(length.argmin())]
        raise SceneError(
            f"SoftBody {body.name!r}: the masses {i} and {j} are both at {cells.node[i].tolist()} m, the spring "
            f"between them has no direction; move them apart"
        )
    stiffness = at_springs(share)
    volume, mass = at_nodes(cells.volume), at_nodes(rho * cells.volume)
    drive = [
        np.stack([driven, np.full(len(driven), number), strain[driven], np.full(len(driven), stressed)], axis=1)
        for number, strain, stressed in _driven(scene, body, cells, filled, E, share, at_springs, stiffness, ends)
        for driven in [np.flatnonzero(strain)]
    ]
    velocity = np.array(body.velocity or (0.0,) * cells.node.shape[1])
    piece = cells.piece
    filling = {
        "position": cells.carry @ cells.node,
        "velocity": np.tile(velocity, (len(piece), 1)),
        "volume": (cells.volume / np.bincount(piece))[piece],
        "density": rho[piece],
        "regions": {name: inside[piece] for name, inside in filled.items()},
    }
    return {
        "position": cells.node,
        "velocity": np.tile(velocity, (n, 1)),
        "volume": volume,
        "density": mass / volume,
        "regions": regions,
        "mass": mass,
        "ends": ends,
        "rest_length": length,
        "stiffness": stiffness,
        "youngs_modulus": stiffness / at_springs(cells.weight),
        "damping": at_springs(share * np.repeat(damping + beta, len(cells.pair))),
        "yield_strain": weakest("yield_strain"),
        "breaking_strain": weakest("breaking_strain"),
        "drive": np.concatenate([np.zeros((0, 4)), *drive]),
    }, filling


def _driven(
    scene: Scene,
    body: SoftBody,
    cells: Cells,
    filled: dict[str, np.ndarray],
    E: np.ndarray,
    share: np.ndarray,
    at_springs: Callable[[np.ndarray], np.ndarray],
    stiffness: np.ndarray,
    ends: np.ndarray,
) -> Iterator[tuple[int, np.ndarray, bool]]:
    """Yield for each signal that acts on the body: its index, the strain of each spring, and a flag.

    The strain is the relative change of the rest length that a signal of 1 causes. The flag is true if the actuator
    prescribes a stress. If cells inside and outside of the actuated region share a spring, its strain is multiplied by
    the fraction of the stiffness that comes from the cells inside.
    """
    n, middle = cells.direction, cells.node[ends].mean(axis=1)
    for number, signal in enumerate(signals_of(scene.actuators)):
        actuator = scene.actuators[signal.channel]
        if getattr(actuator, "region", None) not in filled:
            continue
        inside = filled[actuator.region]
        if not inside.any():
            raise SceneError(
                f"{type(actuator).__name__} {actuator.name!r}: its region {actuator.region!r} in SoftBody "
                f"{body.name!r} holds no cell of the lattice; make it larger or {finer(body)}"
            )
        stress, strain = rest_strain(actuator, n.shape[-1])
        stressed = bool(stress.any())
        e = np.where(inside[:, None, None], eigenstrain(stress) / E[:, None, None] + strain, 0.0)
        strain = at_springs(share * np.einsum("csi,cij,csj->cs", n, e, n).reshape(-1)) / stiffness
        wave = getattr(actuator, "wave", None)
        yield number, strain if wave is None else strain * np.cos(middle @ np.array(wave) + signal.ahead), stressed
