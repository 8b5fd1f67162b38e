"""Attachments of a lattice: each attachment merges a mass of one body with a mass of another body."""

import dataclasses

import numpy as np
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree

from warpbots.scene import Attachment, Scene, SceneError
from warpbots.solvers.mass_spring.lattice.assembly import Lattice
from warpbots.solvers.mass_spring.lattice.truss_bars import finer
from warpbots.solvers.matter import Matter

__all__ = ["attached"]


def attached(scene: Scene, lattice: Lattice) -> Lattice:
    """Return `lattice` with the masses merged that the attachments of `scene` join.

    At each point of an attachment, the nearest mass of each of the two bodies is replaced by one common mass. This mass
    is at the point, and it belongs to the first body and to the regions of both bodies. Springs that ended at either
    mass keep their stiffness, and their rest lengths follow from the new positions.

    Raises:
        SceneError: No mass of a body is near a point of the attachment, two points have the same nearest mass, or two
            masses of one body would be merged.
    """
    if not scene.attachments:
        return lattice
    position = lattice.position.copy()
    becomes = np.arange(len(lattice))
    for attachment in scene.attachments:
        first, second = (_nearest(scene, lattice, attachment, name) for name in (attachment.first, attachment.second))
        position[becomes[first]] = attachment.points
        for stays, goes in zip(becomes[first], becomes[second], strict=True):
            becomes[becomes == goes] = stays  # with all masses merged into it before
        _refuse_collapse(scene, lattice, attachment, becomes)
    return _merged(dataclasses.replace(lattice, position=position), becomes)


def _nearest(scene: Scene, lattice: Lattice, attachment: Attachment, name: str) -> np.ndarray:
    """Index of the mass of the body `name` that is nearest to each point of the attachment, shape (n_points,)."""
    body = [b.name for b in scene.bodies].index(name)
    own, remedy = np.flatnonzero(lattice.body == body), finer(scene.bodies[body])
    inside = lattice.body[lattice.ends[:, 0]] == body
    distance, nearest = cKDTree(lattice.position[own]).query(attachment.points)
    far = int(distance.argmax())
    reach = float(np.median(lattice.rest_length[inside]))
    if distance[far] > reach:
        raise SceneError(
            f"Attachment {attachment.name!r}: the nearest mass of {name!r} is {distance[far]:.3g} m from its point "
            f"{list(attachment.points[far])}; put the point into both bodies, or {remedy}"
        )
    if len(np.unique(nearest)) < len(nearest):
        raise SceneError(
            f"Attachment {attachment.name!r}: two of its points have the same nearest mass of {name!r}; move them "
            f"apart, or {remedy}"
        )
    return own[nearest]


def _refuse_collapse(scene: Scene, lattice: Lattice, attachment: Attachment, becomes: np.ndarray) -> None:
    """Raise an error if `attachment` merges two masses of the same body, because their spring would have no length.

    Raises:
        SceneError: Two masses of one body would be merged.
    """
    row, count = np.unique(np.stack([lattice.body, becomes]), axis=1, return_counts=True)
    if (count > 1).any():
        body, mass = row[:, count.argmax()]
        i, j = np.flatnonzero((lattice.body == body) & (becomes == mass))[:2]
        raise SceneError(
            f"Attachment {attachment.name!r}: with earlier attachments it merges the masses of "
            f"{scene.bodies[body].name!r} at {lattice.position[i].tolist()} and {lattice.position[j].tolist()} m; move "
            f"its points apart from theirs, or {finer(scene.bodies[body])}"
        )


def _merged(lattice: Lattice, becomes: np.ndarray) -> Lattice:
    """Return `lattice` with each mass i merged into mass ``becomes[i]``; masses with ``becomes[i] == i`` remain."""
    stays = becomes == np.arange(len(lattice))
    number = np.cumsum(stays) - 1
    into = csr_matrix((np.ones(len(becomes)), (number[becomes], np.arange(len(becomes)))))
    ends = np.sort(number[becomes[lattice.ends]], axis=1)
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    place = np.argsort(order)  # new index of each spring
    per_mass = {f.name for f in dataclasses.fields(Matter)} - {"regions"}
    fields = {name: getattr(lattice, name)[stays] for name in per_mass}
    fields |= {name: into @ getattr(lattice, name) for name in ("mass", "volume")}
    fields["density"] = fields["mass"] / fields["volume"]
    fields["regions"] = {name: into @ inside > 0 for name, inside in lattice.regions.items()}
    for name in ("spring_body", "stiffness", "youngs_modulus", "damping", "yield_strain", "breaking_strain"):
        fields[name] = getattr(lattice, name)[order]
    drive = lattice.drive.copy()
    drive[:, 0] = place[drive[:, 0].astype(int)]
    ends, position = ends[order], fields["position"]
    length = np.linalg.norm(position[ends[:, 1]] - position[ends[:, 0]], axis=1)
    carry = lattice.carry @ into.T
    cells = dataclasses.replace(lattice.cells, position=carry @ position)
    return dataclasses.replace(
        lattice, **fields, ends=ends, rest_length=length, drive=drive, carry=carry, cells=cells
    )  # fmt: skip
