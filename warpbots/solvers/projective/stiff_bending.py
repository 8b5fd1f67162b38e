"""A warning about parts that linear tetrahedra make too stiff in bending, with the excess stiffness and the remedy.

A linear tetrahedron has no curvature: if matter bends, it shears instead. The bending stiffness of a part of
thickness t is too large by the fraction

    e = (A l^2 + B h^2) / t^2,   A = 0.92, B = 0.9,

with the sizes of the elements l along the part and h through the part (`warpbots.meshing.elements_across`): 2.5 / n^2
with n cubes across. The constants come from cantilevers, and hold within a quarter for any Poisson's ratio up to 0.49
(docs/design/projective-elements.md).
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from warpbots.meshing.elements_across import Across, elements_across
from warpbots.scene import Scene, SoftBody
from warpbots.solvers.matter import regions_at
from warpbots.solvers.projective.mesh import Mesh
from warpbots.solvers.thin_bodies import SLENDER
from warpbots.user_warning import warn_user

__all__ = ["excess_stiffness", "warn_of_stiff_bending"]

_ALONG, _THROUGH = 0.92, 0.9
"""A and B."""
_ALLOWED = 0.2
"""Excess stiffness up to which there is no warning [1]: four cubes across have 0.16."""
_ENOUGH = 5.0
"""Number of elements across at which the excess is a tenth [1]."""


class StiffPart(NamedTuple):
    """Part of a body that is too stiff in bending.

    Attributes:
        excess: Excess of the bending stiffness, relative to the correct one [1].
        thickness: Thickness of the part [m].
        layers: Number of elements across the part.
        place: A point of the surface of the part [m], shape (3,).
        faces: Number of faces of the part.
    """

    excess: float
    thickness: float
    layers: int
    place: np.ndarray
    faces: int


def excess_stiffness(across: Across) -> np.ndarray:
    """Relative excess e of the bending stiffness under each face [1], shape (n,)."""
    return (_ALONG * across.aside + _THROUGH * across.along) / across.thickness**2


def warn_of_stiff_bending(scene: Scene, mesh: Mesh) -> None:
    """Warn, in one message for a scene, of slender parts of bodies that have too few linear tetrahedra across.

    Args:
        scene: The scene.
        mesh: The soft bodies of the scene, of linear tetrahedra.
    """
    owner = mesh.body[mesh.tets[:, 0]] if len(mesh.tets) else np.zeros(0, dtype=int)
    said = []
    for part in mesh.meshes:
        tets = mesh.tets[owner == part.body] - part.nodes.start
        if not len(tets):
            continue
        found = stiff_part(mesh.position[part.nodes], tets, mesh.bone[part.nodes] >= 0)
        if found is not None:
            said.append((found.excess, _described(scene.bodies[part.body], found), found))
    if not said:
        return
    said.sort(key=lambda each: -each[0])
    others = f" ({len(said) - 1} more bodies likewise)" if len(said) > 1 else ""
    size = said[0][2].thickness / _ENOUGH
    warn_user(
        f"{said[0][1]}{others}: use ProjectiveDynamics(elements='quadratic_tetrahedra'), which take 15 to 30 times as "
        f"long, or edges of at most {size:.2g} m there; elements='tetrahedra' accepts the error"
    )


def stiff_part(position: np.ndarray, tets: np.ndarray, bound: np.ndarray) -> StiffPart | None:
    """Of the slender parts of a body that are too stiff in bending, the one with the most faces; None if there is none.

    Args:
        position: Vertices [m], shape (n, 3).
        tets: Corners of linear tetrahedra, shape (n_tets, 4).
        bound: Vertices that are bound to bones, which do not bend, shape (n,), bool.
    """
    across = elements_across(position, tets)
    excess = excess_stiffness(across)
    rigid = bound[across.faces].all(axis=1) | (bound[across.end] & (across.end >= 0)).all(axis=1)
    stiff = np.flatnonzero((excess > _ALLOWED) & ~rigid)
    if not len(stiff):
        return None
    faces = across.faces[stiff]
    ends = faces.ravel(), np.repeat(np.arange(len(stiff)) + len(position), 3)
    joined = coo_array((np.ones(faces.size), ends), shape=(len(position) + len(stiff),) * 2)
    label = connected_components(joined, directed=False)[1][len(position) :]
    worst = None
    for group in np.unique(label):
        own = label == group
        t = float(np.median(across.thickness[stiff[own]]))
        extent = float(np.ptp(position[faces[own].ravel()], axis=0).max())
        if extent < SLENDER * t or (worst is not None and own.sum() <= worst.faces):
            continue
        middle = position[faces[own]].mean(axis=1)
        place = middle[np.linalg.norm(middle - middle.mean(axis=0), axis=1).argmin()]
        h = float(np.sqrt(np.median(across.along[stiff[own]])))
        worst = StiffPart(float(np.median(excess[stiff[own]])), t, max(1, round(t / h)), place, int(own.sum()))
    return worst


def _described(body: SoftBody, part: StiffPart) -> str:
    """Text that describes a part that is too stiff in bending."""
    inside = [name for name, at in regions_at(body, part.place[None], slack=0.05 * part.thickness).items() if at[0]]
    where = f" in region {inside[0]!r}" if inside else ""
    near = ", ".join(f"{x:.4g}" for x in part.place)
    return (
        f"SoftBody {body.name!r}: its linear tetrahedra are about {100.0 * part.excess:.0f} % too stiff in "
        f"bending{where} near ({near}) m, with {part.layers} across a thickness of {part.thickness:.2g} m"
    )
