"""Cables from node to node (`warpbots.actuation_laws.cable`, ChainQueen eq. 17).

    E = k/2 max(0, L - R (1 - u))^2,   L = sum_i |d_i|,   T = k max(0, L - R (1 - u)),   f = -+ T d_i / |d_i|

for the segments d_i of a cable. The tension in each segment depends on the lengths of all segments, so that an element
is a pair of segments of one cable:

    H_ij = k n_i n_j^T + [i = j] T / |d_i| (1 - n_i n_i^T),   n_i = d_i / |d_i|,

if the cable is taut or just taut, and 0 if it is slack. Forces belong to pairs of a segment with itself. Only these
pairs are in the matrix of the global step, with a stiffness of k times the number of segments. This stiffness is not
below the first term of H_ij, nor below the second term unless one segment is far shorter than the others.
"""

import numpy as np
import warp as wp

from warpbots.numerics import NODE, positive_part, real, vector
from warpbots.scene import Scene
from warpbots.solvers.cable_routes import routes_of
from warpbots.solvers.projective.elements.element import (
    Kind,
    Place,
    add_block,
    corner,
    energy_by,
    forces_by,
    raise_to,
    scaling_by,
    span,
    stiffness_by,
)

__all__ = ["CABLES", "CableArrays", "energy_kernel", "force_kernel", "scaling_kernel", "stiffness_kernel", "strung"]

_vec, _part = vector(3), positive_part()


@wp.struct
class CableArrays:
    """Pairs of segments, grouped by cables; arrays that may differ between worlds hold all worlds in one row.

    place: Location of these elements among the elements of all kinds.
    node: End nodes of the two segments of each pair, shape (count,).
    cable: Cable of each pair, shape (count,).
    cable_first: First pair of each cable, shape (cables,).
    cable_segments: Number of segments of each cable, shape (cables,).
    cable_channel: Control channel of each cable, shape (cables,).
    cable_stiffness: Spring constant k of the whole cable [N/m], shape (worlds * cables,).
    cable_length: Length R paid out at u = 0 [m], shape (worlds * cables,).
    cable_rounding: Slack up to which a cable counts as just taut in derivatives [m], shape (cables,).
    nominal: Stiffness of a pair in the matrix of the global step [N/m], 0 for a pair of different segments, shape
        (count,).
    """

    place: Place
    node: wp.array[wp.vec4i]
    cable: wp.array[int]
    cable_first: wp.array[int]
    cable_segments: wp.array[int]
    cable_channel: wp.array[int]
    cable_stiffness: wp.array[real]
    cable_length: wp.array[real]
    cable_rounding: wp.array[real]
    nominal: wp.array[real]


@wp.func
def single(cables: CableArrays, e: int):
    """Whether a pair consists of a segment and itself."""
    c = cables.cable[e]
    return (e - cables.cable_first[c]) % (cables.cable_segments[c] + 1) == 0


@wp.kernel(enable_backward=False)
def scaling_kernel(
    # model
    cables: CableArrays,
    # out
    scaling_out: wp.array2d[real],
):
    """Raise the maxima to the largest ratio of a stiffness to its nominal value in the matrix of the global step."""
    w, e = wp.tid()
    c = cables.cable[e]
    if single(cables, e):
        k = cables.cable_stiffness[w * cables.cable_first.shape[0] + c]
        raise_to(scaling_out, w, e, k * real(cables.cable_segments[c]) / cables.nominal[e])


@wp.func
def segment(cables: CableArrays, x: wp.array[_vec], u: wp.array[NODE], w: int, e: int, i: int):
    """Vector along the first segment of a pair (i = 0) or the second segment (i = 2)."""
    k = cables.node[e]
    return span(cables.place, x, u, w, k[i], k[i + 1])


@wp.func
def length(cables: CableArrays, x: wp.array[_vec], u: wp.array[NODE], w: int, c: int):
    """Length L of a cable; a separate function, because Warp's adjoint code replays functions but not loops."""
    n = cables.cable_segments[c]
    L = real(0.0)
    for i in range(n):
        L += wp.length(segment(cables, x, u, w, cables.cable_first[c] + i * (n + 1), 0))
    return L


@wp.func
def extension(cables: CableArrays, control: wp.array2d[real], x: wp.array[_vec], u: wp.array[NODE], w: int, c: int):
    """L - R (1 - u) of a cable; negative if the cable is slack."""
    paid_out = cables.cable_length[w * cables.cable_first.shape[0] + c]
    return length(cables, x, u, w, c) - paid_out * (real(1.0) - control[w, cables.cable_channel[c]])


@wp.func
def tension(cables: CableArrays, control: wp.array2d[real], x: wp.array[_vec], u: wp.array[NODE], w: int, c: int):
    """Tension T of a cable."""
    k = cables.cable_stiffness[w * cables.cable_first.shape[0] + c]
    return k * _part(extension(cables, control, x, u, w, c), cables.cable_rounding[c])


@wp.kernel(module=wp.get_module("warpbots.projective.cables_energy"))
def energy_kernel(
    # model
    cables: CableArrays,
    # state
    control: wp.array2d[real],
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    energy_out: wp.array[real],
):
    """Write the energy k/2 max(0, L - R (1 - u))^2 of a cable to the entry of its first pair."""
    w, e = wp.tid()
    c = cables.cable[e]
    if e == cables.cable_first[c]:
        d = wp.max(extension(cables, control, x, u, w, c), real(0.0))
        k = cables.cable_stiffness[w * cables.cable_first.shape[0] + c]
        energy_out[corner(cables.place, w, 4 * e)] = real(0.5) * k * d * d


@wp.kernel
def force_kernel(
    # model
    cables: CableArrays,
    # state
    active: wp.array[int],
    control: wp.array2d[real],
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    force_out: wp.array[_vec],
):
    """f = T n at the start of a segment, -T n at its end."""
    w, e = wp.tid()
    if active[w] == 0 or not single(cables, e):
        return
    f = tension(cables, control, x, u, w, cables.cable[e]) * wp.normalize(segment(cables, x, u, w, e, 0))
    c = corner(cables.place, w, 4 * e)
    force_out[c] = f
    force_out[c + 1] = -f


@wp.kernel(enable_backward=False)
def stiffness_kernel(
    # model
    cables: CableArrays,
    # state
    control: wp.array2d[real],
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    block_out: wp.array[NODE],
):
    """K += H_ij between the ends of the two segments."""
    w, e = wp.tid()
    c = cables.cable[e]
    if extension(cables, control, x, u, w, c) < -cables.cable_rounding[c]:
        return
    T = tension(cables, control, x, u, w, c)
    k = cables.cable_stiffness[w * cables.cable_first.shape[0] + c]
    d = segment(cables, x, u, w, e, 0)
    n = wp.normalize(d)
    m = wp.normalize(segment(cables, x, u, w, e, 2))
    for b in range(3):
        t = k * m[b] * n
        if single(cables, e):
            across = -n[b] * n
            across[b] = across[b] + real(1.0)
            t = t + (T / wp.length(d)) * across
        add_block(cables.place, w, 16 * e + 2, b, t, block_out)
        add_block(cables.place, w, 16 * e + 3, b, -t, block_out)
        add_block(cables.place, w, 16 * e + 6, b, -t, block_out)
        add_block(cables.place, w, 16 * e + 7, b, t, block_out)


def strung(scene: Scene, position: np.ndarray, cell_size: float) -> dict[str, np.ndarray]:
    """Fields of `Mesh` for the cables of a scene.

    Args:
        scene: The scene.
        position: Nodes at rest [m], shape (n, 3).
        cell_size: Largest distance of a waypoint from a node [m].

    Raises:
        SceneError: A waypoint is too far from all nodes, or two consecutive waypoints are tied to the same node.
    """
    routes = routes_of(scene, position, cell_size, "node", "ProjectiveDynamics(cell_size=...)")
    pairs = []
    for route in routes:
        segments = np.stack([route.points[:-1], route.points[1:]], axis=1)
        n = len(segments)
        pairs.append(np.concatenate([np.repeat(segments, n, axis=0), np.tile(segments, (n, 1))], axis=1))
    sizes = np.array([len(p) for p in pairs], dtype=int)
    return {
        "cables": np.concatenate([np.zeros((0, 4), dtype=int), *pairs]),
        "cable": np.repeat(np.arange(len(sizes)), sizes),
        "cable_first": np.cumsum(sizes) - sizes,
        "cable_segments": np.array([len(r.points) - 1 for r in routes], dtype=int),
        "cable_channel": np.array([r.channel for r in routes], dtype=int),
        "cable_stiffness": np.array([r.stiffness for r in routes], dtype=float),
        "cable_length": np.array([r.rest_length for r in routes], dtype=float),
        "cable_rounding": np.array([r.rounding for r in routes], dtype=float),
    }


def _blocks(mesh: object) -> np.ndarray:
    """k times the number of segments for pairs of a segment with itself, zero for other pairs."""
    alone = (mesh.cables[:, :2] == mesh.cables[:, 2:]).all(axis=1)
    stiff = alone * (mesh.cable_stiffness * mesh.cable_segments)[mesh.cable]
    block = np.zeros((4, 4))
    block[:2, :2] = [[1.0, -1.0], [-1.0, 1.0]]
    return stiff[:, None, None] * block


CABLES = Kind(
    name="cables",
    arrays=CableArrays,
    node=wp.vec4i,
    constant={"cable": int, "cable_first": int, "cable_segments": int, "cable_channel": int, "cable_rounding": real},
    blocks=_blocks,
    scaling=scaling_by(scaling_kernel),
    forces=forces_by(force_kernel, driven=True),
    energy=energy_by(energy_kernel, driven=True),
    stiffness=stiffness_by(stiffness_kernel, driven=True),
)
"""Cables."""
