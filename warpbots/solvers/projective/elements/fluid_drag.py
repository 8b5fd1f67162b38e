"""Drag and thrust of a fluid on the faces of bodies (Min et al. 2019, "SoftCon"; Qiao et al. 2021).

With the area A and the outward normal n of a face at the end of a step, its velocity v = mean(u) / h - v_fluid, and the
sine s = n . v / |v| of the angle of attack,

    f = -1/2 rho A (C_d(s) |v| v + C_t(s) |v|^2 n),   f_0 = f_1 = f_2 = f / 3.

C_d and C_t are linear in s between the entries of their tables. The force has no energy.

The force adds nothing to the matrix of the global step; Anderson's acceleration makes up for this. A matrix scaled by
(1 + r) / 2, with the ratio r of the resistance of the fluid to the inertia m / h of a node, was tried: the iteration
takes up to twice as many steps, and converges in no additional case.
"""

import numpy as np
import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.scene import Scene, SceneError
from warpbots.solvers.projective.elements.cavity_surface import dry
from warpbots.solvers.projective.elements.element import Kind, Place, Point, add_block, at, corner, span

__all__ = ["FACES", "FaceArrays", "force_kernel", "stiffness_kernel", "wetted"]

_vec, _line = vector(3), vector(2)


@wp.struct
class FaceArrays:
    """Faces that are wetted by a fluid; arrays that may differ between worlds hold all worlds in one row.

    place: Location of these elements among the elements of all kinds.
    node: Nodes of the corners, counter-clockwise seen from outside, shape (count,).
    fluid_density: Density rho of the fluid [kg/m^3], shape (worlds,).
    fluid_velocity: Velocity of the fluid [m/s], shape (worlds,).
    drag: Coefficients C_d [1], shape (worlds * entries,).
    thrust: Coefficients C_t [1], shape (worlds * entries,).
    drag_at: Values of s in the table of drag [1], shape (entries,).
    thrust_at: Values of s in the table of thrust [1], shape (entries,).
    nominal: Stiffness of a face in the matrix of the global step [N/m], always 0, shape (count,).
    """

    place: Place
    node: wp.array[wp.vec3i]
    fluid_density: wp.array[real]
    fluid_velocity: wp.array[_vec]
    drag: wp.array[real]
    thrust: wp.array[real]
    drag_at: wp.array[real]
    thrust_at: wp.array[real]
    nominal: wp.array[real]


@wp.func
def velocity(faces: FaceArrays, h: real, u: wp.array[NODE], w: int, e: int):
    """Velocity v of a face relative to the fluid."""
    k = faces.node[e]
    m = w * faces.place.stride
    return (at(u, m + k[0]) + at(u, m + k[1]) + at(u, m + k[2])) / (real(3.0) * h) - faces.fluid_velocity[w]


@wp.func
def incidence(d1: _vec, d2: _vec, v: _vec):
    """Sine s of the angle of attack; 0 for a face without area or without flow."""
    n = wp.cross(d1, d2)
    size = wp.length(n) * wp.length(v)
    s = real(0.0)
    if size > real(0.0):
        s = wp.dot(n, v) / size
    return s


@wp.func
def entry(place: wp.array[real], s: real):
    """Index of the interval of a table that contains s; a function, as Warp's adjoint code replays no loops."""
    k = int(0)
    for i in range(1, place.shape[0] - 1):
        if s >= place[i]:
            k = i
    return k


@wp.func
def line_at(table: wp.array[real], place: wp.array[real], w: int, s: real):
    """Linear function that a table follows around s: its value at 0 and its slope."""
    n = place.shape[0]
    k = entry(place, s)
    slope = (table[w * n + k + 1] - table[w * n + k]) / (place[k + 1] - place[k])
    return _line(table[w * n + k] - slope * place[k], slope)


@wp.func
def resistance(d1: _vec, d2: _vec, v: _vec, rho: real, drag: _line, thrust: _line):
    """Force on each corner of a face with the edges d_1 and d_2: a third of the force on the face."""
    f = _vec()
    n = wp.cross(d1, d2)
    size = wp.length(n)
    speed = wp.length(v)
    if size * speed > real(0.0):
        s = wp.dot(n, v) / (size * speed)
        c_d = drag[0] + drag[1] * s
        c_t = thrust[0] + thrust[1] * s
        f = -(rho * speed / real(12.0)) * (c_d * size * v + c_t * speed * n)
    return f


@wp.kernel
def force_kernel(
    # model
    faces: FaceArrays,
    # state
    h: real,
    active: wp.array[int],
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    force_out: wp.array[_vec],
):
    """f_0 = f_1 = f_2 = -1/6 rho A (C_d |v| v + C_t |v|^2 n)."""
    w, e = wp.tid()
    if active[w] == 0:
        return
    k = faces.node[e]
    d1 = span(faces.place, x, u, w, k[0], k[1])
    d2 = span(faces.place, x, u, w, k[0], k[2])
    v = velocity(faces, h, u, w, e)
    s = incidence(d1, d2, v)
    drag = line_at(faces.drag, faces.drag_at, w, s)
    thrust = line_at(faces.thrust, faces.thrust_at, w, s)
    f = resistance(d1, d2, v, faces.fluid_density[w], drag, thrust)
    c = corner(faces.place, w, 3 * e)
    for i in range(3):
        force_out[c + i] = f


@wp.func
def work(d1: _vec, d2: _vec, v: _vec, rho: real, drag: _line, thrust: _line, t: _vec):
    """t . f; its gradients are a row of the derivative of the force."""
    return wp.dot(t, resistance(d1, d2, v, rho, drag, thrust))


@wp.kernel(enable_backward=False)
def stiffness_kernel(
    # model
    faces: FaceArrays,
    # state
    h: real,
    x: wp.array[_vec],
    u: wp.array[NODE],
    # out
    block_out: wp.array[NODE],
):
    """K -= (df/du)^T: the adjoint needs the transpose, and df/du is not symmetric."""
    w, e = wp.tid()
    k = faces.node[e]
    d1 = span(faces.place, x, u, w, k[0], k[1])
    d2 = span(faces.place, x, u, w, k[0], k[2])
    v = velocity(faces, h, u, w, e)
    s = incidence(d1, d2, v)
    drag = line_at(faces.drag, faces.drag_at, w, s)
    thrust = line_at(faces.thrust, faces.thrust_at, w, s)
    for b in range(3):
        t = _vec()
        t[b] = real(1.0)
        g1, g2, g, _rho, _d, _t, _ = wp.grad(work)(d1, d2, v, faces.fluid_density[w], drag, thrust, t)
        g = g / (real(3.0) * h)
        for i in range(3):
            add_block(faces.place, w, 9 * e + i, b, g1 + g2 - g, block_out)
            add_block(faces.place, w, 9 * e + 3 + i, b, -(g1 + g), block_out)
            add_block(faces.place, w, 9 * e + 6 + i, b, -(g2 + g), block_out)


def wetted(scene: Scene, faces: np.ndarray, sheets: np.ndarray, cavities: np.ndarray) -> dict[str, np.ndarray]:
    """Fields of `Mesh` for the faces that a fluid wets: surfaces of solids, and both sides of sheets.

    Args:
        scene: The scene.
        faces: Nodes of the faces of every body, shape (n, 3).
        sheets: Nodes of the triangles of sheets, which are also among `faces`, shape (n, 3).
        cavities: Nodes of the faces around cavities, counter-clockwise seen from outside of the cavity, shape (n, 3);
            cavities contain air, so that no fluid wets their walls.

    Raises:
        SceneError: The scene has a fluid and no surface that it wets.
    """
    if scene.fluid is None:
        return {"faces": np.zeros((0, 3), dtype=int), "drag_at": np.zeros(0), "thrust_at": np.zeros(0)}
    faces = np.concatenate([faces, sheets[:, ::-1]])
    faces = faces[~dry(faces, cavities)]
    if not len(faces):
        raise SceneError("Fluid: it acts on surfaces, and bars of trusses have none; leave Scene.fluid out")
    at = {f"{name}_at": np.sin([angle for angle, _ in getattr(scene.fluid, name)]) for name in ("drag", "thrust")}
    return {"faces": faces, **at}


def _blocks(mesh: object) -> np.ndarray:
    return np.zeros((len(mesh.faces), 3, 3))


def _forces(faces: FaceArrays, model: object, point: Point) -> list[tuple]:
    inputs = [faces, point.h, point.active, point.x, point.u, model.workspace.force]
    return [(force_kernel, (model.worlds, faces.place.count), inputs)]


def _stiffness(faces: FaceArrays, model: object, point: Point) -> list[tuple]:
    inputs = [faces, point.h, point.x, point.u, model.workspace.block]
    return [(stiffness_kernel, (model.worlds, faces.place.count), inputs)]


FACES = Kind(
    name="faces",
    arrays=FaceArrays,
    node=wp.vec3i,
    constant={"drag_at": real, "thrust_at": real},
    blocks=_blocks,
    forces=_forces,
    stiffness=_stiffness,
)
"""Faces that are wetted by a fluid."""
