"""Signed distances of solids on the device, which have a pose and a velocity: against closed forms and differences."""

import numpy as np
import pytest
import trimesh
import warp as wp

from warpbots.contact import signed_distance
from warpbots.contact.moving_frames import MovingPoses, carried_velocity
from warpbots.contact.solid import Solids, solid_curvature, solid_distance, solid_frame
from warpbots.contact.solid_forms import closed_form, linear_samples, solid_arrays, solids_of
from warpbots.numerics import real, vector
from warpbots.scene import Box, Capsule, Cylinder, DistanceGrid, HalfSpace, Posed, Sphere, TriangleMesh
from warpbots.solvers.mass_spring.obstacle_contact import contact_with_obstacle

BALL = trimesh.creation.icosphere(2, 0.4)
TILT = ((0.6, 0.0, 0.8), (0.0, 1.0, 0.0), (-0.8, 0.0, 0.6))
SHAPES = {
    "plane": HalfSpace((0.1, 0.0, 0.2), (0.3, -0.5, 0.8)),
    "sphere": Sphere((0.1, 0.2, -0.1), 0.5),
    "box": Posed(Box((-0.3, -0.2, -0.5), (0.4, 0.3, 0.1)), (0.1, 0.0, 0.0), TILT),
    "capsule": Capsule((-0.3, 0.1, 0.0), (0.2, 0.3, 0.4), 0.3),
    "cylinder": Cylinder((-0.3, 0.1, 0.0), (0.2, 0.3, 0.4), 0.3),
    "line": HalfSpace((0.1, 0.2), (0.6, 0.8)),
    "disc": Sphere((0.1, 0.2), 0.5),
    "rectangle": Posed(Box((-0.3, -0.2), (0.4, 0.3)), (0.1, 0.0), ((0.6, -0.8), (0.8, 0.6))),
    "stadium": Capsule((-0.3, 0.1), (0.2, 0.3), 0.3),
    "tilted rectangle": Cylinder((-0.3, 0.1), (0.2, 0.3), 0.3),
    "rectangle along x": Cylinder((-0.3, 0.1), (0.4, 0.1), 0.3),
    "rectangle along -y": Cylinder((0.1, 0.3), (0.1, -0.4), 0.3),
}
"""Shapes with a closed form, in space and in a plane."""

WAVES = {
    dim: DistanceGrid(np.sin(np.indices((9,) * dim).T @ np.arange(1.0, dim + 1.0)) / 5.0, (-1.0,) * dim, 0.25)
    for dim in (2, 3)
}
"""Samples without a symmetry."""

KINDS = [*SHAPES, "linear 2D", "linear 3D", "rounded box", "rounded cylinder", "splines"]


def dimension(name: str) -> int:
    """2 or 3."""
    shape = WAVES[int(name[-2])] if name.startswith("linear") else SHAPES.get(name)
    return 3 if shape is None else len(shape.bounds[0])


def solid(name: str) -> Solids:
    """A solid of a kind, on a body."""
    if name.startswith("linear"):
        wave = WAVES[int(name[-2])]
        form = linear_samples(wave, *wave.bounds, 0.2, name)
        return solid_arrays([form], [0], 0.0, wp.get_device("cpu"))
    if name == "splines":
        return solids_of([(0, TriangleMesh(BALL.vertices, BALL.faces))], 12, 0.0, wp.get_device("cpu"), 0.5)
    shape = SHAPES[name.removeprefix("rounded ")]
    return solid_arrays([closed_form(shape)], [0], 0.3 * ("rounded" in name), wp.get_device("cpu"))


@wp.kernel
def pass_kernel(
    solids: Solids,
    R: wp.array[wp.mat33d],
    p: wp.array[wp.vec3d],
    linear: wp.array[wp.vec3d],
    angular: wp.array[wp.vec3d],
    x: wp.array[wp.vec3d],
    v: wp.array[wp.vec3d],
    distance_out: wp.array[wp.float64],
    slope_out: wp.array[wp.vec3d],
    rate_out: wp.array[wp.float64],
):
    """Distance of points, its slope and its rate, to a solid on a body with a pose and a velocity."""
    i = wp.tid()
    Q, q = solid_frame(solids, 0, R[0], p[0])
    d, n = solid_distance(solids, 0, 0, Q, q, x[i])
    distance_out[i] = d
    slope_out[i] = n
    rate_out[i] = wp.dot(n, v[i] - carried_velocity(p[0], linear[0], wp.skew(angular[0]), x[i]))


TYPES = {"R": wp.mat33d, "p": wp.vec3d, "linear": wp.vec3d, "angular": wp.vec3d, "x": wp.vec3d, "v": wp.vec3d}


def passing(solids: Solids, values: dict[str, np.ndarray], weights: list[np.ndarray] | None = None):
    """Distances [m], slopes and rates [m/s] of points; with weights, gradients of their weighted sum by name."""
    arrays = {n: wp.array(values[n], dtype=t, device="cpu", requires_grad=True) for n, t in TYPES.items()}
    solids.sample = wp.array(values["sample"], dtype=wp.float64, device="cpu", requires_grad=True)
    count = len(values["x"])
    types = (wp.float64, wp.vec3d, wp.float64)
    outs = [wp.zeros(count, dtype=t, device="cpu", requires_grad=True) for t in types]
    with wp.Tape() as tape:
        wp.launch(pass_kernel, count, [solids, *arrays.values()], outs, device="cpu")
    if weights is None:
        return [a.numpy() for a in outs]
    tape.backward(grads={o: wp.array(w, dtype=o.dtype, device="cpu") for o, w in zip(outs, weights, strict=True)})
    return {n: a.grad.numpy() for n, a in (arrays | {"sample": solids.sample}).items()}


def turned(w: np.ndarray) -> np.ndarray:
    """The rotation about w by |w|."""
    angle = np.linalg.norm(w)
    K = np.cross(np.eye(3), w / angle)
    return np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K


def motion(name: str, rng: np.random.Generator, count: int = 400) -> tuple[Solids, dict[str, np.ndarray]]:
    """A solid with a pose and a velocity, and moving points inside, outside and around its edges."""
    solids, flat = solid(name), dimension(name) == 2
    spin, turn = rng.normal(size=(2, 3)) * ((0.0, 0.0, 1.0) if flat else 1.0)
    plane = np.array((1.0, 1.0, 0.0) if flat else (1.0, 1.0, 1.0))
    R, p = turned(turn), plane * (0.2, -0.3, 0.4)
    values = {"R": R[None], "p": p[None], "linear": plane * rng.normal(size=(1, 3)), "angular": spin[None]}
    values["x"] = p + plane * rng.uniform(-0.6, 0.6, (count, 3)) @ R.T
    values["v"] = plane * rng.normal(size=(count, 3))
    return solids, values | {"sample": solids.sample.numpy()}


def smooth(solids: Solids, values: dict[str, np.ndarray]) -> np.ndarray:
    """Whether points are away from the medial axis and seams, where the slope of the distance or of samples jumps."""
    ways = 2e-3 * np.concatenate([np.eye(3), -np.eye(3)])
    slopes = np.array([passing(solids, values | {"x": values["x"] + w})[1] for w in ways])
    bends = slopes[:3] - 2.0 * passing(solids, values)[1] + slopes[3:]
    return np.abs(bends).max(axis=(0, 2)) < 1e-3


@pytest.mark.parametrize("name", SHAPES)
def test_distance_of_a_shape_in_a_pose(name, rng):
    """It equals the distance on the host, in the frame of the body, inside and outside; in 2D and 3D."""
    solids, values = motion(name, rng)
    dim = dimension(name)
    own = ((values["x"] - values["p"]) @ values["R"][0])[:, :dim]
    exact = signed_distance(SHAPES[name], own)
    assert (exact < 0.0).sum() > 10
    assert (exact > 0.0).sum() > 20
    d, n, _rate = passing(solids, values)
    np.testing.assert_allclose(d, exact, rtol=0, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(n, axis=1), 1.0, rtol=1e-14)
    assert not n[:, dim:].any()


@pytest.mark.parametrize("dim", [2, 3])
def test_linear_samples_go_on_as_at_their_edge(dim, rng):
    """The distance of the host where it is known, with a sample on every one of it; beyond, that of the nearest point."""
    wave = WAVES[dim]
    solids = solid_arrays([linear_samples(wave, *wave.bounds, 0.25, "wave")], [-1], 0.0, wp.get_device("cpu"))
    x = np.zeros((200, 3))
    x[:, :dim] = rng.uniform(-1.3, 1.3, (200, dim))
    still = {n: np.zeros((1, 3)) for n in ("p", "linear", "angular")} | {"R": np.eye(3)[None], "v": 0.0 * x, "x": x}
    d, _n, _rate = passing(solids, still | {"sample": solids.sample.numpy()})
    np.testing.assert_allclose(d, signed_distance(wave, x[:, :dim].clip(-1.0, 1.0)), rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", KINDS)
def test_gradients_by_point_pose_velocity_and_samples(name, rng):
    """Of distance, slope and rate, against central differences."""
    solids, values = motion(name, rng)
    away = smooth(solids, values)
    assert away.mean() > 0.5
    values |= {n: values[n][away] for n in ("x", "v")}
    count = len(values["x"])
    weights = [rng.normal(size=count), rng.normal(size=(count, 3)), rng.normal(size=count)]
    found = passing(solids, values, weights)
    for n, value in values.items():
        if not value.size:
            continue
        way, h = rng.normal(size=value.shape), 1e-6
        ahead, back = (passing(solids, values | {n: value + s * h * way}) for s in (1, -1))
        slope = sum((w * (a - b)).sum() for w, a, b in zip(weights, ahead, back, strict=True)) / (2.0 * h)
        assert (found[n] * way).sum() == pytest.approx(slope, rel=1e-6, abs=1e-7), n
    if name == "linear 3D":  # beyond the samples the distance is constant along their axes, and the slope is not
        far = values | {"x": values["p"] + np.array([[0.1, 2.0, 0.2]]) @ values["R"][0].T, "v": values["v"][:1]}
        one = [np.ones(1), np.zeros((1, 3)), np.zeros(1)]
        assert (passing(solids, far, one)["x"] @ values["R"][0])[0, 1] == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("name", KINDS)
def test_rate_of_a_moving_solid(name, rng):
    """d' = n . (v - u) of points that pass a solid that moves and turns, against its distances in time."""
    solids, values = motion(name, rng)
    away = smooth(solids, values)
    values |= {n: values[n][away] for n in ("x", "v")}
    h = 1e-6

    def at(t: float) -> np.ndarray:
        R = turned(t * values["angular"][0]) @ values["R"]
        moved = {"R": R, "p": values["p"] + t * values["linear"], "x": values["x"] + t * values["v"]}
        return passing(solids, values | moved)[0]

    _d, _n, rate = passing(solids, values)
    assert np.abs(rate).max() > 0.5
    np.testing.assert_allclose((at(h) - at(-h)) / (2.0 * h), rate, rtol=0, atol=1e-7)


@wp.kernel(enable_backward=False)
def bend_kernel(solids: Solids, x: wp.array[wp.vec3d], slope_out: wp.array[wp.vec3d], bend_out: wp.array[wp.mat33d]):
    """Slope and curvature in the frame of the body."""
    i = wp.tid()
    _d, n, C = solid_curvature(solids, 0, 0, solids.rotation[0], solids.position[0], x[i])
    slope_out[i] = n
    bend_out[i] = C


@pytest.mark.parametrize("name", KINDS)
def test_curvature_is_the_derivative_of_the_slope(name, rng):
    solids, values = motion(name, rng)
    away = smooth(solids, values)
    x = (values["x"][away] - values["p"]) @ values["R"][0]

    def bend(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        outs = [wp.zeros(len(x), dtype=t, device="cpu") for t in (wp.vec3d, wp.mat33d)]
        wp.launch(bend_kernel, len(x), [solids, wp.array(x, dtype=wp.vec3d, device="cpu")], outs, device="cpu")
        return tuple(a.numpy() for a in outs)

    h, dim = 1e-6, dimension(name)
    slope = np.stack([(bend(x + h * e)[0] - bend(x - h * e)[0]) / (2.0 * h) for e in np.eye(3)], axis=2)
    np.testing.assert_allclose(bend(x)[1][:, :dim, :dim], slope[:, :dim, :dim], rtol=0, atol=1e-6)


def meeting_kernel(dim: int) -> wp.Kernel:
    """Kernel over masses: their velocities after contact with a solid that moves."""
    vec, meet = vector(dim), contact_with_obstacle(dim)

    @wp.kernel(module="unique")
    def meet_solid(
        solids: Solids, poses: MovingPoses, condition: int, x: wp.array[vec], v: wp.array[vec], v_out: wp.array[vec]
    ):
        i = wp.tid()
        allowed, _depth = meet(
            solids, poses, 0, 0, condition, real(0.3), real(0.1), real(0.0), real(0.0), real(1e-3), real(1.0), x[i],
            v[i],
        )  # fmt: skip
        v_out[i] = allowed

    return meet_solid


@pytest.mark.parametrize("condition", range(4))
@pytest.mark.parametrize("name", ["disc", "sphere"])
def test_a_mass_meets_a_moving_obstacle_as_its_own_frame_does_one_at_rest(name, condition, rng):
    """v' - u equals the result for v - u at a solid at rest, for every condition; u rotates with the solid."""
    solids, shape, dim = solid(name), SHAPES[name], dimension(name)
    x = (np.array(shape.center) + rng.uniform(-0.5, 0.5, (100, dim))).astype(np.float32)
    v = rng.normal(size=(100, dim)).astype(np.float32)
    linear, angular = np.zeros((2, 3))
    linear[:dim], angular[2] = rng.normal(size=dim), 1.3
    around = np.append(x, np.zeros((100, 3 - dim)), axis=1) - solids.position.numpy()[0]
    u = (linear + np.cross(angular, around))[:, :dim]
    kernel = meeting_kernel(dim)

    def after(v: np.ndarray, linear: np.ndarray, angular: np.ndarray) -> np.ndarray:
        poses = MovingPoses()
        poses.rotation, poses.position = solids.rotation.reshape((1, -1)), solids.position.reshape((1, -1))
        poses.linear, poses.belt = (wp.array(a[None, None], dtype=wp.vec3d) for a in (linear, 0.0 * linear))
        spin = np.cross(angular, np.eye(3)).T
        poses.spin = wp.array(spin[None, None], dtype=wp.mat33d)
        out = wp.zeros(100, dtype=vector(dim), device="cpu")
        places = [wp.array(a, dtype=vector(dim), device="cpu") for a in (x, v)]
        wp.launch(kernel, 100, [solids, poses, condition, *places], [out], device="cpu")
        return out.numpy()

    found = after(v, linear, angular)
    still = np.zeros(3)
    touching = signed_distance(shape, x.astype(float)) < -1e-6
    assert touching.sum() > 20
    np.testing.assert_allclose((found - u)[touching], after(v - u, still, still)[touching], atol=3e-6)
    np.testing.assert_array_equal(found[~touching], v[~touching])
    assert np.abs(found - after(v, still, still)).max() > 0.1
