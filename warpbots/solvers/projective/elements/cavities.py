"""Cavities: the air in a chamber presses on the faces around it, wherever they move.

The gauge pressure p of a cavity at the control u is given (first line), or follows from a given amount of gas at
constant temperature (second line),

    p = u p_max,   W = -p V,
    p = G r^u / V - p_0,   W = p_0 V - G r^u ln V,

with G = n R T at u = 0, the factor r of the amount of gas, the ambient pressure p_0 and the volume V. W is the energy,
-int p dV. With sums over the faces around the cavity, whose corners a, b, c are counter-clockwise seen from outside of
the cavity, and with the edges d_1, d_2 from the first corner,

    V = sum 1/6 a . (b x c),   dV = sum 1/6 (d_1 x d_2) . (da + db + dc),   f_0 = f_1 = f_2 = p/6 d_1 x d_2.

dV holds for a closed surface, not for each face. The second derivative of p V couples the corners of a face (its blocks
are symmetric only in sum). Gas adds a term of rank 1 to the second derivative, which couples all nodes of a cavity
(`gas_stiffness.py`) and is part of the global step:

    H = -p V'' + c V' V'^T,   c = -dp/dV = G r^u / V^2.

Volumes are summed in double precision: the gauge pressure of a gas is a small difference of large pressures.
"""

import numpy as np
import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.elements.element import Kind, Place, Point, add_block, corner, span

__all__ = [
    "CAVITIES",
    "CavityArrays",
    "edge",
    "energy_of_gas",
    "force_kernel",
    "part_kernel",
    "pressure_kernel",
    "pressure_launches",
    "stiffness_kernel",
]

_vec = vector(3)


@wp.struct
class CavityArrays:
    """Faces around cavities, grouped by cavities; arrays that may differ between worlds hold all worlds in one row.

    place: Location of these elements among the elements of all kinds.
    node: Nodes of the corners, counter-clockwise seen from outside of the cavity, shape (count,).
    cavity: Cavity of each face, shape (count,).
    cavity_run: First face of each run of faces, and the face after the last of the run, shape (runs,).
    cavity_runs: First run of each cavity, and the run after its last, shape (cavities,).
    cavity_channel: Control channel of each cavity, shape (cavities,).
    cavity_number: Index of each cavity among the cavities of given pressure, or among those of given gas, shape
        (cavities,).
    cavity_gas_ratio: Factor r of the amount of gas at u = 1 [1], 0 for a given pressure, shape (cavities,).
    cavity_least_volume: Volume below which walls have passed through one another, slightly negative [m^3], shape
        (cavities,).
    cavity_pressure: Gauge pressure at u = 1 [Pa], shape (worlds * cavities of given pressure,).
    cavity_gas: G = n R T at u = 0 [J], shape (worlds * cavities of given gas,).
    ambient_pressure: p_0 [Pa], shape (worlds * cavities of given gas,).
    part: Contribution of each run of faces to the volume of its cavity [m^3], shape (worlds * runs,).
    volume: V [m^3], shape (worlds * cavities,).
    pressure: p [Pa], shape (worlds * cavities,).
    nominal: Stiffness of a face in the matrix of the global step [N/m], always 0, shape (count,).
    """

    place: Place
    node: wp.array[wp.vec3i]
    cavity: wp.array[int]
    cavity_run: wp.array[wp.vec2i]
    cavity_runs: wp.array[wp.vec2i]
    cavity_channel: wp.array[int]
    cavity_number: wp.array[int]
    cavity_gas_ratio: wp.array[real]
    cavity_least_volume: wp.array[real]
    cavity_pressure: wp.array[real]
    cavity_gas: wp.array[real]
    ambient_pressure: wp.array[real]
    part: wp.array[wp.float64]
    volume: wp.array[wp.float64]
    pressure: wp.array[real]
    nominal: wp.array[real]


@wp.func
def from_origin(cavities: CavityArrays, x: wp.array[_vec], u: wp.array[NODE], w: int, e: int, i: int):
    """Vector from the first node of a cavity to corner i of one of its faces."""
    origin = cavities.cavity_run[cavities.cavity_runs[cavities.cavity[e]][0]][0]
    return span(cavities.place, x, u, w, cavities.node[origin][0], cavities.node[e][i])


@wp.func
def cone(cavities: CavityArrays, x: wp.array[_vec], u: wp.array[NODE], w: int, e: int):
    """1/6 a . (b x c) of a face: the signed volume of its cone from the first node of the cavity."""
    a = from_origin(cavities, x, u, w, e, 0)
    b = from_origin(cavities, x, u, w, e, 1)
    c = from_origin(cavities, x, u, w, e, 2)
    return wp.float64(wp.dot(a, wp.cross(b, c)) / real(6.0))


@wp.kernel
def part_kernel(
    # model
    cavities: CavityArrays,
    # state
    active: wp.array[int],
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    cavities_out: CavityArrays,
):
    """Write the sum of 1/6 a . (b x c) over a run of faces."""
    w, r = wp.tid()
    if active[w] == 0:
        return
    run = cavities.cavity_run[r]
    total = wp.float64(0.0)
    for e in range(run[0], run[1]):
        total += cone(cavities, x, u, w, e)
    cavities_out.part[w * cavities.cavity_run.shape[0] + r] = total


@wp.func
def volume_of(cavities: CavityArrays, w: int, c: int):
    """Volume V of a cavity; a separate function, because Warp's adjoint code replays functions but not loops."""
    V = wp.float64(0.0)
    for r in range(cavities.cavity_runs[c][0], cavities.cavity_runs[c][1]):
        V += cavities.part[w * cavities.cavity_run.shape[0] + r]
    return V


@wp.func
def number_of(cavities: CavityArrays, of_all: wp.array[real], w: int, c: int):
    """Index of cavity c of world w in `of_all`, a parameter of the cavities of one type in all worlds."""
    worlds = cavities.volume.shape[0] / cavities.cavity_runs.shape[0]
    return w * (of_all.shape[0] / worlds) + cavities.cavity_number[c]


@wp.func
def energy_of_gas(cavities: CavityArrays, control: wp.array2d[real], w: int, c: int):
    """G r^u."""
    G = cavities.cavity_gas[number_of(cavities, cavities.cavity_gas, w, c)]
    r = wp.float64(cavities.cavity_gas_ratio[c])
    return wp.float64(G) * wp.pow(r, wp.float64(control[w, cavities.cavity_channel[c]]))


@wp.kernel
def pressure_kernel(
    # model
    cavities: CavityArrays,
    # state
    active: wp.array[int],
    control: wp.array2d[real],
    # out
    cavities_out: CavityArrays,
):
    """Write V and p of a cavity; p is NaN for an impossible volume, so that the iteration rejects the point."""
    w, c = wp.tid()
    if active[w] == 0:
        return
    V = volume_of(cavities, w, c)
    p = real(0.0)
    if cavities.cavity_gas_ratio[c] == real(0.0) and wp.float64(cavities.cavity_least_volume[c]) < V:
        u = control[w, cavities.cavity_channel[c]]
        p = u * cavities.cavity_pressure[number_of(cavities, cavities.cavity_pressure, w, c)]
    elif real(0.0) < cavities.cavity_gas_ratio[c] and wp.float64(0.0) < V:
        outside = cavities.ambient_pressure[number_of(cavities, cavities.ambient_pressure, w, c)]
        p = real(energy_of_gas(cavities, control, w, c) / V - wp.float64(outside))
    else:
        p = real(wp.nan)
    k = w * cavities.cavity_runs.shape[0] + c
    cavities_out.volume[k] = V
    cavities_out.pressure[k] = p


@wp.func
def pressure_on(cavities: CavityArrays, w: int, e: int):
    """Gauge pressure p at a face."""
    return cavities.pressure[w * cavities.cavity_runs.shape[0] + cavities.cavity[e]]


@wp.func
def edge(cavities: CavityArrays, x: wp.array[_vec], u: wp.array[NODE], w: int, e: int, i: int):
    """Edge d_i of a face."""
    k = cavities.node[e]
    return span(cavities.place, x, u, w, k[0], k[i])


@wp.kernel
def force_kernel(
    # model
    cavities: CavityArrays,
    # state
    active: wp.array[int],
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    force_out: wp.array[_vec],
):
    """f_0 = f_1 = f_2 = p/6 d_1 x d_2."""
    w, e = wp.tid()
    if active[w] == 0:
        return
    p = pressure_on(cavities, w, e)
    f = p / real(6.0) * wp.cross(edge(cavities, x, u, w, e, 1), edge(cavities, x, u, w, e, 2))
    c = corner(cavities.place, w, 3 * e)
    for i in range(3):
        force_out[c + i] = f


@wp.kernel(enable_backward=False)
def stiffness_kernel(
    # model
    cavities: CavityArrays,
    # state
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    block_out: wp.array[NODE],
):
    """K -= df/du at constant p: column b for the corner k is -p/6 e_b x d_2 for k = 1, and -p/6 d_1 x e_b for k = 2."""
    w, e = wp.tid()
    p = pressure_on(cavities, w, e) / real(6.0)
    d1 = edge(cavities, x, u, w, e, 1)
    d2 = edge(cavities, x, u, w, e, 2)
    for b in range(3):
        t = _vec()
        t[b] = real(1.0)
        t1 = -p * wp.cross(t, d2)
        t2 = -p * wp.cross(d1, t)
        for i in range(3):
            add_block(cavities.place, w, 9 * e + 3 * i, b, -(t1 + t2), block_out)
            add_block(cavities.place, w, 9 * e + 3 * i + 1, b, t1, block_out)
            add_block(cavities.place, w, 9 * e + 3 * i + 2, b, t2, block_out)


def pressure_launches(cavities: CavityArrays, worlds: int, point: Point) -> list[tuple]:
    """Launches (kernel, dim, inputs) that write volumes and pressures of cavities at a point."""
    runs, count = cavities.cavity_run.shape[0], cavities.cavity_runs.shape[0]
    return [
        (part_kernel, (worlds, runs), [cavities, point.active, point.x, point.u, cavities]),
        (pressure_kernel, (worlds, count), [cavities, point.active, point.control, cavities]),
    ]


def _blocks(mesh: object) -> np.ndarray:
    return np.zeros((len(mesh.cavities), 3, 3))


def _forces(cavities: CavityArrays, model: object, point: Point) -> list[tuple]:
    inputs = [cavities, point.active, point.x, point.u, model.workspace.force]
    force = force_kernel, (model.worlds, cavities.place.count), inputs
    return [*pressure_launches(cavities, model.worlds, point), force]


def _stiffness(cavities: CavityArrays, model: object, point: Point) -> list[tuple]:
    inputs = [cavities, point.x, point.u, model.workspace.block]
    stiffness = stiffness_kernel, (model.worlds, cavities.place.count), inputs
    return [*pressure_launches(cavities, model.worlds, point), stiffness]


CAVITIES = Kind(
    name="cavities",
    arrays=CavityArrays,
    node=wp.vec3i,
    constant={
        "cavity": int,
        "cavity_run": wp.vec2i,
        "cavity_runs": wp.vec2i,
        "cavity_channel": int,
        "cavity_number": int,
        "cavity_gas_ratio": real,
        "cavity_least_volume": real,
    },
    evaluated={
        "part": (wp.float64, "cavity_run"),
        "volume": (wp.float64, "cavity_runs"),
        "pressure": (real, "cavity_runs"),
    },
    blocks=_blocks,
    forces=_forces,
    stiffness=_stiffness,
)
"""Faces around cavities."""
