"""Solids that are meshes under a design: distances against those to all triangles, accuracy of samples, and contact."""

import dataclasses

import numpy as np
import pytest
import torch
import trimesh
import warp as wp
from matplotlib.path import Path

import warpbots as wb
from warpbots.contact.mesh_distance import nearest_on_mesh
from warpbots.contact.solid import Solids, grid_of, solid_distance, solids_of
from warpbots.design import CagedBody, box_cage, designed_parameters, mesh_distance
from warpbots.scene import SceneError
from warpbots.scene.shapes import Box, Sphere, TriangleMesh, Union

SECTIONS = 24
PROFILE = np.array([(0, -0.03), (0.03, -0.03), (0.03, 0.02), (0.022, 0.02), (0.022, -0.02), (0, -0.02)])
"""Half of the section of a cup: radius and height [m]."""


def angle() -> tuple[np.ndarray, np.ndarray]:
    """An L, extruded: vertices [m] and faces."""
    ring = 0.01 * np.array([(0, 0), (3, 0), (3, 1), (1, 1), (1, 3), (0, 3)])
    vertices = np.concatenate([np.c_[ring, np.full(6, z)] for z in (0.0, 0.02)])
    caps = [(0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5)]
    sides = [f for i in range(6) for f in ((i, (i + 1) % 6, 6 + (i + 1) % 6), (i, 6 + (i + 1) % 6, 6 + i))]
    return vertices, np.array([f[::-1] for f in caps] + [tuple(6 + i for i in f) for f in caps] + sides)


def cup() -> tuple[np.ndarray, np.ndarray]:
    """A cup with sharp edges: vertices [m] and faces."""
    mesh = trimesh.creation.revolve(PROFILE, sections=SECTIONS)
    return np.array(mesh.vertices), np.array(mesh.faces)


def round_cup() -> tuple[np.ndarray, np.ndarray]:
    """A cup without edges, of many faces."""

    def arc(center: tuple[float, float], radius: float, start: float, end: float) -> np.ndarray:
        t = np.radians(np.linspace(start, end, 24))
        return np.array(center) + radius * np.c_[np.cos(t), np.sin(t)]

    outside = [[(0, -0.03)], arc((0.02, -0.02), 0.01, -90, 0), arc((0.026, 0.02), 0.004, 0, 180)]
    profile = np.concatenate([*outside, arc((0.014, -0.014), 0.008, 0, -90), [(0, -0.022)]])
    mesh = trimesh.creation.revolve(profile, sections=128)
    return np.array(mesh.vertices), np.array(mesh.faces)


def inside(name: str, x: np.ndarray) -> np.ndarray:
    """Which points are in a mesh, by its construction."""
    if name == "angle":
        x, y, z = 100.0 * x.T
        return (x > 0) & (y > 0) & (z > 0) & (z < 2) & (((x < 3) & (y < 1)) | ((x < 1) & (y < 3)))
    sector = 2.0 * np.pi / SECTIONS  # of a prism, whose faces are closer to the axis in their middle
    turn = np.mod(np.arctan2(x[:, 1], x[:, 0]), sector) - sector / 2.0
    radius = np.hypot(x[:, 0], x[:, 1]) * np.cos(turn) / np.cos(sector / 2.0)
    return Path(PROFILE).contains_points(np.c_[radius, x[:, 2]])


def by_all_triangles(vertices: np.ndarray, faces: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Distances of points to the nearest of all triangles [m], by planes and edges, without a sign."""
    a, b, c = vertices[faces].transpose(1, 0, 2)
    n = np.cross(b - a, c - a)
    n /= np.linalg.norm(n, axis=1)[:, None]
    found = []
    for p in x:
        height = ((p - a) * n).sum(1)
        foot = p - height[:, None] * n
        over = np.min([(np.cross(v - u, foot - u) * n).sum(1) for u, v in ((a, b), (b, c), (c, a))], axis=0) >= 0.0
        least = np.abs(height)[over].min(initial=np.inf)
        for u, v in ((a, b), (b, c), (c, a)):
            t = (((p - u) * (v - u)).sum(1) / ((v - u) ** 2).sum(1)).clip(0.0, 1.0)
            least = min(least, np.linalg.norm(u + t[:, None] * (v - u) - p, axis=1).min())
        found.append(least)
    return np.array(found)


MESHES = {"angle": angle, "cup": cup}
meshes = pytest.mark.parametrize("name", MESHES)


def places(name: str, rng: np.random.Generator) -> np.ndarray:
    """Points all around a mesh, and close to its faces, edges and vertices [m]."""
    vertices, faces = MESHES[name]()
    lower, upper = vertices.min(0), vertices.max(0)
    corner = vertices[faces[rng.integers(len(faces), size=100)]]
    on = {"vertex": corner[:, 0], "edge": 0.3 * corner[:, 0] + 0.7 * corner[:, 1], "face": corner.mean(axis=1)}
    near = [p + d * rng.normal(size=p.shape) for p in on.values() for d in (1e-3, 1e-5, 1e-8, 1e-11)]
    around = rng.uniform(lower - 0.01, upper + 0.01, (600, 3))
    return np.concatenate([around, 20.0 * around[:50], *near])


@meshes
def test_distance_is_that_to_the_nearest_of_all_triangles(name, rng):
    """In double precision, with the sign of inside: also a nanometre beside an edge, or in a concave corner."""
    vertices, faces = MESHES[name]()
    x = places(name, rng)
    found = nearest_on_mesh(vertices, faces, x)
    exact = by_all_triangles(vertices, faces, x)
    error = np.abs(np.abs(found.distance) - exact)
    print(f"{error.max():.1e} m")
    assert (error <= 1e-16 + 1e-14 * np.abs(x).max(axis=1)).all()
    clear = exact > 1e-14  # nearer, rounding decides on which side a point is
    assert (found.distance < 0.0)[clear].tolist() == inside(name, x)[clear].tolist()
    assert (found.distance < 0.0).sum() > 100
    foot = (found.barycentric[..., None] * vertices[faces[found.face]]).sum(1)
    assert found.barycentric.min() >= 0.0
    np.testing.assert_allclose(np.linalg.norm(x - foot, axis=1), exact, rtol=0, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(found.normal, axis=1), 1.0, rtol=1e-12)
    far = exact > 1e-7
    ways = (x - foot)[far] / found.distance[far, None]
    np.testing.assert_allclose(found.normal[far], ways, atol=1e-7)


@meshes
def test_points_on_the_surface(name, rng):
    """Their distance is zero, and its gradient is the normal of a face that they are on."""
    vertices, faces = MESHES[name]()
    corner = vertices[faces]
    n = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    n /= np.linalg.norm(n, axis=1)[:, None]
    x = torch.tensor(np.concatenate([vertices, corner.mean(axis=1), corner[:, :2].mean(axis=1)]), requires_grad=True)
    d = mesh_distance(x, torch.tensor(vertices), torch.tensor(faces))
    assert d.abs().max() < 1e-17
    (slope,) = torch.autograd.grad(d.sum(), x)
    middles = slope[len(vertices) : len(vertices) + len(faces)]
    np.testing.assert_allclose(middles, n, atol=1e-12)
    assert (np.abs(slope[:, None].numpy() - n).max(-1).min(1) < 1e-12).all()


@meshes
def test_derivatives_of_a_distance(name, rng):
    """By vertices and points, against central differences, at points with one nearest point."""
    vertices, faces = (torch.tensor(a) for a in MESHES[name]())
    x = torch.as_tensor(places(name, rng)[:600])
    weight = torch.as_tensor(rng.normal(size=len(x)))
    ways = [torch.as_tensor(rng.normal(size=tuple(a.shape))) for a in (x, vertices)]

    def ahead(s: float) -> torch.Tensor:
        return mesh_distance(x + s * ways[0], vertices + s * ways[1], faces)

    h = 1e-8
    leaves = [a.clone().requires_grad_() for a in (x, vertices)]
    d = mesh_distance(*leaves, faces)
    quotient = (ahead(h) - ahead(-h)) / (2 * h)
    bend = (ahead(h) + ahead(-h) - 2 * ahead(0.0)).abs() / h
    one = bend < 1e-3  # where the nearest point does not jump
    assert one.float().mean() > 0.99
    slopes = torch.autograd.grad((weight * d)[one].sum(), leaves, create_graph=True)
    slope = sum((s * w).sum() for s, w in zip(slopes, ways, strict=True))
    assert slope.item() == pytest.approx((weight * quotient)[one].sum().item(), rel=1e-6)
    with pytest.raises(NotImplementedError, match="mesh_distance has first derivatives only"):
        torch.autograd.grad((slopes[1] ** 2).sum(), leaves[1])


@wp.kernel(enable_backward=False)
def measure_kernel(
    solids: Solids, x: wp.array[wp.vec3d], distance_out: wp.array[wp.float64], slope_out: wp.array[wp.vec3d]
):
    """Distance and slope of the first solid."""
    i = wp.tid()
    d, n, _C = solid_distance(solids, 0, 0, x[i] - solids.position[0])
    distance_out[i] = d
    slope_out[i] = n


def measured(solids: Solids, x: np.ndarray) -> list[np.ndarray]:
    """Distance and slope of the first solid [m] and [1]."""
    out = [wp.zeros(len(x), dtype=t, device="cpu") for t in (wp.float64, wp.vec3d)]
    wp.launch(measure_kernel, len(x), [solids, wp.array(x, dtype=wp.vec3d, device="cpu")], out, device="cpu")
    return [a.numpy() for a in out]


def errors(mesh: tuple[np.ndarray, np.ndarray], samples: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Errors of the distance [m] and of the normal [deg] of a sampled mesh."""
    solids = solids_of([(-1, TriangleMesh(*mesh))], samples, 0.0, wp.get_device("cpu"))
    d, n = measured(solids, x)
    exact = nearest_on_mesh(*mesh, x)
    cosine = (n * exact.normal).sum(1) / np.linalg.norm(n, axis=1)
    return np.abs(d - exact.distance), np.degrees(np.arccos(cosine.clip(-1.0, 1.0)))


def contact_zone(mesh: tuple[np.ndarray, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Points at depths of up to a millimetre in a mesh."""
    surface = trimesh.sample.sample_surface(trimesh.Trimesh(*mesh, process=False), 4000, seed=0)[0]
    x = np.array(surface) + rng.uniform(-1e-3, 1e-3, surface.shape) / np.sqrt(3.0)
    return x[nearest_on_mesh(*mesh, x).distance < 0.0]


def orders(counts: list[int], found: list[float]) -> np.ndarray:
    """Orders of convergence with the spacing of samples."""
    return -np.diff(np.log(found)) / np.diff(np.log(np.array(counts) - 1.0))


def test_samples_of_a_rounded_cup_converge(rng):
    """The distance with the third order; the normal until the angle between faces, three degrees, is seen."""
    mesh = round_cup()
    x = contact_zone(mesh, rng)
    counts = [16, 24, 36]
    found = np.array([[e.max() for e in errors(mesh, n, x)] for n in counts])
    print(found, orders(counts, found[:, 0]))
    assert (orders(counts, found[:, 0]) > 2.5).all()
    assert found[2, 0] < 5e-5
    assert (found[:, 1] < [13.0, 7.0, 6.0]).all()


def test_orders_of_distance_and_normal(rng):
    """Three and two, for a solid without faces: a ball, in the samples of a box around it."""
    radius = 0.02
    around = trimesh.creation.box([2.0 * radius] * 3)
    n = rng.normal(size=(1000, 3))
    n /= np.linalg.norm(n, axis=1)[:, None]
    depth = rng.uniform(-1e-3, 0.0, 1000)
    counts, found = [16, 24, 36], []
    for count in counts:
        solids = solids_of([(-1, TriangleMesh(around.vertices, around.faces))], count, 0.0, wp.get_device("cpu"))
        grid = grid_of(solids, 0)
        exact = np.linalg.norm(grid.positions, axis=1) - radius
        solids.sample = wp.array(grid.coefficients(exact).reshape(1, -1), dtype=wp.float64, device="cpu")
        d, slope = measured(solids, (radius + depth)[:, None] * n)
        found.append((np.abs(d - depth).max(), np.linalg.norm(slope - n, axis=1).max()))
    by_distance, by_normal = (orders(counts, errors) for errors in zip(*found, strict=True))
    print(found, by_distance, by_normal)
    assert (by_distance > 2.7).all()
    assert (by_normal > 1.7).all()


@meshes
def test_samples_beside_edges(name, rng):
    """Edges are rounded over about a sample; two samples away from them a twentieth of one is left."""
    mesh = MESHES[name]()
    x = contact_zone(mesh, rng)
    spacing = np.ptp(mesh[0], axis=0).max() / 47
    solid = trimesh.Trimesh(*mesh, process=False)
    ends = solid.vertices[solid.face_adjacency_edges[solid.face_adjacency_angles > 0.5]]
    along = ends[:, 1] - ends[:, 0]
    t = (((x[:, None] - ends[:, 0]) * along).sum(-1) / (along**2).sum(-1)).clip(0.0, 1.0)
    away = np.linalg.norm(ends[:, 0] + t[..., None] * along - x[:, None], axis=-1).min(1) > 2.0 * spacing
    d, n = errors(mesh, 48, x)
    print(d.max() / spacing, d[away].max() / spacing, n[away].max(), away.mean())
    assert away.mean() > 0.3
    assert d.max() < 0.25 * spacing
    assert d[away].max() < 0.05 * spacing
    assert n[away].max() < 10.0


CUP = CagedBody("cup", *cup(), box_cage((-0.031, -0.031, -0.031), (0.031, 0.031, 0.021)))
BALL = wb.RigidBody("ball", Sphere((0, 0, 0), 0.012), 1000.0, position=(0.004, 0.002, -0.004), points=60)
ROOM = 0.002


def held(handles: torch.Tensor | None = None, samples: int = 16, room: float = ROOM, worlds: int = 1) -> wb.Simulation:
    """A ball falls into a cup, which hangs on a spring."""
    hang = wb.Joint("hang", "prismatic", None, "cup", axis=(0, 0, 1), stiffness=100.0, damping=2.0)
    law = wb.Contact("ball", "cup", 1e7, 2e8, 0.5, 1e4)
    scene = wb.Scene([CUP.rigid_body(handles), BALL], joints=[hang], contacts=[law])
    return wb.Simulation(scene, wb.Articulated(samples=samples, room=room), 1e-3, 1, worlds=worlds)


def moved(rng: np.random.Generator) -> torch.Tensor:
    """Handles of the cup, moved at random by up to a millimetre."""
    return CUP.rest + 1e-3 * torch.as_tensor(rng.uniform(-1, 1, tuple(CUP.rest.shape)))


def test_samples_are_the_distances_to_the_moved_mesh(rng):
    """Coefficients are those that SciPy finds for exact distances at the samples; at rest they are the model's."""
    sim, handles = held(), moved(rng)
    at = sim.model.places("sample")
    assert len(at) == sim.parameter("solid_distance").shape[1]
    assert (at.body == 0).all()
    grid = grid_of(sim.model.solids, 0)
    exact = nearest_on_mesh(CUP.deformed(handles).numpy(), CUP.faces.numpy(), at.center).distance
    found = designed_parameters(sim, {CUP: handles})["solid_distance"]
    np.testing.assert_allclose(found[0], grid.coefficients(exact).ravel(), atol=1e-14)
    same = designed_parameters(sim, {CUP: CUP.rest})["solid_distance"]
    np.testing.assert_allclose(same, sim.parameter("solid_distance"), atol=3e-8)
    assert (found - same).abs().max() > 5e-4


def test_motion_is_that_of_a_scene_in_the_new_shape(rng):
    """To the single precision of its distances on one grid; on another one to a twentieth of the spacing."""
    handles = moved(rng)
    sim, anew = held(samples=24), held(handles, samples=24)
    end = anew.rollout(None, 300).final.q
    touching = anew.sense(anew.rollout(None, 300).final).contact_normal
    assert touching.max() > 1e-3
    same_grid = anew.rollout(None, 300, **designed_parameters(anew, {CUP: handles})).final.q
    torch.testing.assert_close(same_grid, end, rtol=0, atol=1e-6)
    other_grid = sim.rollout(None, 300, **designed_parameters(sim, {CUP: handles})).final.q
    undesigned = sim.rollout(None, 300).final.q
    spacing = grid_of(sim.model.solids, 0).spacing
    off, unmoved = ((q - end)[:, :4].norm().item() for q in (other_grid, undesigned))
    print(off / spacing, unmoved / spacing)
    assert off < 0.05 * spacing
    assert unmoved > 3.0 * off


def test_gradients_of_the_whole_chain(rng):
    """From handles through mesh, samples, contact and motion of cup and ball, against central differences, 1e-6."""
    sim, start = held(), moved(rng)

    def loss(handles: torch.Tensor) -> torch.Tensor:
        final = sim.rollout(None, 60, **designed_parameters(sim, {CUP: handles})).final
        return (final.q * torch.tensor([1.0, 2.0, -1.0, 0.5, 0.3, -0.2, 0.1, 0.0])).sum() + 0.01 * final.qd.sum()

    leaf = start.clone().requires_grad_()
    value = loss(leaf)
    (slope,) = torch.autograd.grad(value, leaf)
    d = torch.as_tensor(rng.normal(size=tuple(start.shape)))
    along = (slope * d).sum().item()
    with torch.no_grad():
        h = 1e-7
        quotient = (loss(start + h * d) - loss(start - h * d)).item() / (2 * h)
        steps = 4e-5 * 0.5 ** np.arange(4)
        left = [abs((loss(start + e * d) - value).item() - e * along) for e in steps]
    print(along, along / quotient - 1.0, left)
    assert along == pytest.approx(quotient, rel=1e-6)
    assert np.log2(left[-2] / left[-1]) > 1.8  # Taylor: the remainder is of second order


def test_gradient_of_readings_with_respect_to_samples(rng):
    """Of forces and of accelerations, too, in each world by its own samples."""
    sim = held(worlds=2)
    state = dataclasses.replace(sim.state(), q=sim.rollout(None, 300).final.q)
    rest = sim.parameter("solid_distance")
    d = torch.as_tensor(rng.normal(size=tuple(rest.shape)))

    def loss(samples: torch.Tensor, world: int) -> torch.Tensor:
        force = sim.sense(state, solid_distance=samples).contact_force[world]
        return force.sum() + sim.dynamics(state, solid_distance=samples).acceleration[world].sum()

    for world in range(2):
        leaf = rest.clone().requires_grad_()
        (slope,) = torch.autograd.grad(loss(leaf, world), leaf)
        h = 1e-9
        quotient = (loss(rest + h * d, world) - loss(rest - h * d, world)).item() / (2 * h)
        assert (slope * d).sum().item() == pytest.approx(quotient, rel=1e-6)
        assert slope[world].abs().max() > 0.0
        assert slope[1 - world].abs().max() == 0.0


def test_worlds_have_samples_of_their_own():
    """A cup that is a millimetre thicker in one of two worlds holds its ball higher; as built they share memory."""
    sim = held(worlds=2)
    assert sim.model.solid_distance.strides[0] == 0
    samples = sim.parameter("solid_distance")
    samples[1] -= 1e-3
    a, b = sim.rollout(None, 300, solid_distance=samples).final.q[:, 3]
    assert 4e-4 < b - a < 1.2e-3  # the ball has points, and rolls from one to the next
    assert held().rollout(None, 300).final.q[0, 3] == a


def test_scenes_without_samples_have_no_such_parameter():
    floor = wb.Scene([BALL], obstacles=[wb.floor(-0.1)], contacts=[wb.Contact("ball", "floor", 1e7, 1e7)])
    sim = wb.Simulation(floor, wb.Articulated(), 1e-3, 1)
    assert "solid_distance" not in sim.parameters()
    assert len(sim.model.places("sample")) == 0


def test_samples_are_kept_in_a_scene(rng):
    """`scene_with` keeps them to the last bit; a scene with another mesh refuses them."""
    sim = held()
    values = designed_parameters(sim, {CUP: moved(rng)})
    scene = sim.scene_with(**values)
    again = wb.Simulation(scene, sim.solver, 1e-3, 1)
    assert torch.equal(again.parameter("solid_distance"), values["solid_distance"])
    bodies = [CUP.rigid_body(moved(rng)), *scene.bodies[1:]]
    with pytest.raises(SceneError, match="'solid_distance': it was baked into other records of this scene, which have"):
        wb.Simulation(dataclasses.replace(scene, bodies=bodies), sim.solver, 1e-3, 1)


def test_a_mesh_that_leaves_its_samples():
    """It is refused, and what is advised helps."""
    wide = CUP.rest * torch.tensor([1.2, 1.0, 1.0])
    words = (
        r"CagedBody 'cup': its handles move its mesh by 0.00\d+ m out of the samples of its solid, which were laid when "
        r"the simulation was made; use Articulated\(room=(0.0\d+)\) or more \[m\], or change the design less"
    )
    for room in (0.0, ROOM):
        with pytest.raises(ValueError, match=words) as fault:
            designed_parameters(held(room=room), {CUP: wide})
        advised = float(str(fault.value).split("room=")[1].split(")")[0])
        assert room < advised < 0.01
        designed_parameters(held(room=advised), {CUP: wide})
    little = CUP.rest * torch.tensor([1.01, 1.0, 1.0])
    designed_parameters(held(room=0.0), {CUP: little})


@pytest.mark.parametrize(
    "shape", [Box((-0.03, -0.03, -0.03), (0.03, 0.03, 0.02)), Union((Sphere((0, 0, 0), 0.02), TriangleMesh(*cup())))]
)
def test_solids_that_do_not_follow_their_handles(shape):
    scene = held().scene
    bodies = [dataclasses.replace(scene.bodies[0], shape=shape), BALL]
    sim = wb.Simulation(dataclasses.replace(scene, bodies=bodies), wb.Articulated(samples=16), 1e-3, 1)
    with pytest.raises(ValueError, match="'cup': contacts have it as a solid, .* which does not follow its handles; use"):
        designed_parameters(sim, {CUP: CUP.rest})


def test_walls_that_become_too_thin():
    """Between the samples there would be nothing left of them."""
    flat = CUP.rest * torch.tensor([1.0, 1.0, 0.03])
    with pytest.raises(SceneError, match="TriangleMesh of 'cup': .* of its surface cannot be in contact, .*samples="):
        designed_parameters(held(), {CUP: flat})


def test_bad_room():
    with pytest.raises(ValueError, match=r"Articulated: room must be at least 0 \[m\], got -0.1"):
        wb.Articulated(room=-0.1)
