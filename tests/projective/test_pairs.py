"""Contact of soft bodies with one another: distances, continuous detection, what it keeps apart, and its gradients."""

import numpy as np
import pytest
import torch
import warp as wp
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation
from soft_bodies import CELL

from warpbots.contact import signed_distance
from warpbots.numerics import precision, real, real_numpy, vector
from warpbots.scene import Box, Constraint, HalfSpace, Material, Posed, Scene, SoftBody, TriangleMesh, floor
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics
from warpbots.solvers.projective.contact import pair_geometry

vec3 = vector(3)
FACE, EDGES = 1, 2
TURNS = {
    "face": Rotation.from_euler("z", 20, degrees=True),
    "edge": Rotation.from_euler("yz", [45, 20], degrees=True),
    "corner": Rotation.from_euler("xyz", [40, 35, 20], degrees=True),
}
"""How the upper cube looks down."""


@wp.kernel(enable_backward=False, module="unique")
def measure_kernel(
    kind: int, near: real, x: wp.array2d[vec3], u: wp.array2d[vec3], gap_out: wp.array[vec3], time_out: wp.array[real]
):
    """Gap and time of collision of each pair."""
    i = wp.tid()
    gap_out[i] = pair_geometry.gap_of(kind, x[i, 0], x[i, 1], x[i, 2], x[i, 3])
    time_out[i] = pair_geometry.advance(
        kind, near, x[i, 0], x[i, 1], x[i, 2], x[i, 3], u[i, 0], u[i, 1], u[i, 2], u[i, 3]
    )


def measure(kind: int, near: float, x: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n = len(x)
    arrays = [wp.array(a.astype(real_numpy), dtype=vec3, device="cpu") for a in (x, u)]
    out = [wp.zeros(n, dtype=vec3, device="cpu"), wp.zeros(n, dtype=real, device="cpu")]
    wp.launch(measure_kernel, n, [kind, real(near), *arrays], out, device="cpu")
    return out[0].numpy().astype(np.float64), out[1].numpy().astype(np.float64)


def distance(kind: int, x: np.ndarray) -> float:
    """By bounded minimisation over the places on both sides."""
    a, b, c, d = x
    if kind == FACE:  # (s, t) on a square that covers the triangle twice: s (1 - t) and s t
        point = lambda p: a - (b + p[0] * (1 - p[1]) * (c - b) + p[0] * p[1] * (d - b))
    else:
        point = lambda p: a + p[0] * (b - a) - c - p[1] * (d - c)
    starts = [(0.3, 0.3), (0.7, 0.7), (0.9, 0.1), (0.1, 0.9)]
    best = [minimize(lambda p: float((point(p) ** 2).sum()), s, bounds=[(0, 1)] * 2, tol=1e-16) for s in starts]
    return np.sqrt(min(r.fun for r in best))


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("kind", [FACE, EDGES])
def test_gaps_are_shortest(kind, rng):
    """Against a minimisation by SciPy, whose own error is the tolerance."""
    x = rng.uniform(-1, 1, (60, 4, 3))
    gap, _ = measure(kind, 0.0, x, np.zeros_like(x))
    expected = [distance(kind, p) for p in x]
    np.testing.assert_allclose(np.linalg.norm(gap, axis=1), expected, rtol=0, atol=1e-5)


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("kind", [FACE, EDGES])
def test_the_time_of_collision_is_never_late(kind, rng):
    """No gap before it is below what is near, and a way that is said to be free is so; sampled at 400 points.

    Nor is it early, by more than a tenth of what is near.
    """
    x, u, near = rng.uniform(-1, 1, (200, 4, 3)), rng.uniform(-2, 2, (200, 4, 3)), 0.05
    _, time = measure(kind, near, x, u)
    hits = 0
    for p, v, t in zip(x, u, time, strict=True):
        free = np.linspace(0.0, min(t, 1.0), 400)
        gap, _ = measure(kind, near, p + free[:, None, None] * v, np.zeros((400, 4, 3)))
        assert np.linalg.norm(gap, axis=1)[: -1 if t <= 1.0 else None].min() > (1.0 - 1e-5) * near or t == 0.0
        if t <= 1.0:
            hits += 1
            gap, _ = measure(kind, near, (p + t * v)[None], v[None])
            assert np.linalg.norm(gap) < 1.11 * near
    assert 10 < hits < 190


def pile(turn: str, speed: float, height: float, friction: float = 0.5, dt: float = 0.005, **options) -> Simulation:
    """A cube of 8 cm above a slab of 16 cm that stands fast, thrown at it."""
    material = Material(5e4, 0.3, 1000.0, "corotated")
    slab = SoftBody(
        "slab", Box((0, 0, 0), (0.16, 0.16, 0.08)), material, regions={"foot": HalfSpace((0, 0, 1e-6), (0, 0, 1))},
        friction=friction,
    )  # fmt: skip
    cube = Posed(Box((-0.04,) * 3, (0.04,) * 3), (0.08, 0.07, height), TURNS[turn].as_matrix())
    thrown = SoftBody("cube", cube, material, velocity=(0.4 * speed, 0.0, -speed), friction=friction)
    scene = Scene((slab, thrown), constraints=(Constraint("foot"),))
    return Simulation(scene, ProjectiveDynamics(CELL, **options), dt)


def clearance(sim: Simulation, position: np.ndarray) -> float:
    """Smallest signed distance of a vertex of one body from the other [m]."""
    a, b = sim.model.matter.meshes
    x, y = position[a.nodes], position[b.nodes]
    return min(
        signed_distance(TriangleMesh(x, a.faces), y).min(),
        signed_distance(TriangleMesh(y, b.faces), x[np.unique(a.faces)]).min(),
    )


@pytest.mark.parametrize(("turn", "speed", "dt"), [("edge", 1.0, 0.005), ("corner", 5.0, 0.005), ("edge", 2.0, 0.005)])
def test_nothing_goes_in(turn, speed, dt):
    """At 5 m/s a step is half a tetrahedron long, and faster than sound in it; bodies keep a hundredth of an edge, and come apart again."""
    sim = pile(turn, speed, 0.17, dt=dt)
    state, edge, met = sim.state(), sim.model.matter.edge, 0
    for _ in range(round(0.25 / dt)):
        state = sim.step(state, torch.zeros(0))
        gap = clearance(sim, state.position[0].cpu().double().numpy())
        assert gap > 0.008 * edge
        met += gap < 0.011 * edge
    assert met >= 2
    assert clearance(sim, state.position[0].cpu().double().numpy()) > 0.02 * edge or turn == "edge"


def test_without_collisions_they_pass_through():
    sim = pile("corner", 1.0, 0.17, collisions=False)
    final = sim.rollout(None, 20).final
    assert clearance(sim, final.position[0].cpu().double().numpy()) < -0.5 * CELL
    assert "body_friction" not in sim.parameters()


def test_momentum_goes_from_one_to_the_other():
    """Two cubes in free flight: momentum to rounding, angular momentum to the clearance as a lever of friction."""
    material = Material(5e4, 0.3, 1000.0, "corotated")
    rotated = Posed(Box((-0.04,) * 3, (0.04,) * 3), (0.1, 0.02, 0.03), TURNS["corner"].as_matrix())
    bodies = (
        SoftBody("one", Box((-0.04,) * 3, (0.04,) * 3), material),
        SoftBody("two", rotated, material, velocity=(-1.0, 0.0, 0.0)),
    )
    sim = Simulation(Scene(bodies, gravity=(0, 0, 0)), ProjectiveDynamics(CELL), 0.005)
    mesh, state = sim.model.matter, sim.state()
    m = torch.as_tensor(mesh.density * mesh.volume)[:, None]
    first = torch.as_tensor(mesh.body == 0)

    def momenta(state):
        x, p = state.position[0].cpu().double(), m * state.velocity[0].cpu().double()
        return p.sum(dim=0), torch.linalg.cross(x, p).sum(dim=0), p[first].sum(dim=0)

    before, spin, _ = momenta(state)
    for _ in range(30):
        state = sim.step(state, torch.zeros(0))
    after, spun, gained = momenta(state)
    tolerance = {"float32": 1e-3, "float64": 1e-6}[precision]
    assert gained[0] < -0.3 * m[first].sum()
    assert (after - before).norm() < tolerance * before.norm()
    assert (spun - spin).norm() < 0.02 * CELL * before.norm() + tolerance


def test_cubes_that_fall_on_one_another_in_line_have_a_gradient():
    """Their edges are nearly parallel: a plane that two of them span turns so fast that no adjoint would converge."""
    material = Material(1e5, 0.4, 1000.0)
    low = [np.array([0.0, 0.0, 0.02 + 0.12 * k]) for k in range(2)]
    bodies = [
        SoftBody(f"cube {k}", Box(tuple(c), tuple(c + 0.1)), material, velocity=(0.1, 0.0, -1.0), friction=0.5)
        for k, c in enumerate(low)
    ]
    sim = Simulation(Scene(bodies, obstacles=[floor(friction=0.5)]), ProjectiveDynamics(0.034), 0.01)
    rest, upper = sim.state(), torch.as_tensor(sim.model.matter.body == 1)

    def end(push: torch.Tensor) -> torch.Tensor:
        """Mean position of the upper cube for a change of its velocity."""
        pushed = sim.state(velocity=rest.velocity + push * upper[:, None])
        return sim.rollout(None, 6, pushed).final.position[0, upper].mean(dim=0)

    push = torch.zeros(3, requires_grad=True)
    slopes, step = torch.stack([torch.autograd.grad(end(push)[k], push)[0][[0, 2]] for k in (0, 2)]), 1e-3
    with torch.no_grad():
        sides = [end(step * e) - end(-step * e) for e in torch.eye(3)[[0, 2]]]
    differences = torch.stack(sides, dim=1)[[0, 2]] / (2.0 * step)
    np.testing.assert_allclose(slopes, differences, rtol=1e-3, atol=2e-5)
    assert float(slopes[0, 0]) > 0.05


@pytest.mark.verification
@pytest.mark.parametrize(("turn", "height", "friction"), [("edge", 0.139, 0.3), ("corner", 0.15, 0.3)])
def test_gradients_are_those_of_differences(turn, height, friction, rng):
    """Relative 1e-4 along a random direction of every input, through contacts of vertices, faces and edges."""
    sim = pile(turn, 1.0, height, friction, tolerance=1e-10)
    inputs = {n: sim.parameter(n) for n in sim.parameters()}
    rest, kinds = sim.state(), set()

    def noise(value: torch.Tensor, scale: float) -> torch.Tensor:
        return scale * torch.as_tensor(rng.uniform(-1, 1, value.shape))

    for name in ("youngs_modulus", "poissons_ratio", "density"):
        inputs[name] = inputs[name] * (1.0 + noise(inputs[name], 0.1))
    inputs["load"] = noise(inputs["load"], 0.02)
    inputs["position"] = rest.position + noise(rest.position, 2e-4)
    inputs["velocity"] = rest.velocity + noise(rest.velocity, 0.05)
    by_x, by_v = (
        torch.as_tensor(rng.normal(size=rest.position.shape)),
        torch.as_tensor(rng.normal(size=rest.position.shape)),
    )

    def loss(values: dict) -> torch.Tensor:
        state = sim.state(position=values["position"], velocity=values["velocity"])
        for _ in range(3):
            state = sim.step(state, torch.zeros(0), **{n: values[n] for n in sim.parameters()})
            count = int(sim.model.workspace.contact.search.count.numpy()[0])
            kinds.update(sim.model.workspace.contact.search.kind.numpy()[:count].tolist())
        return (by_x * state.position).sum() + 0.01 * (by_v * state.velocity).sum()

    leaves = {n: v.clone().requires_grad_() for n, v in inputs.items()}
    loss(leaves).backward()
    assert kinds >= ({FACE, EDGES} if turn == "edge" else {EDGES})
    for name, value in inputs.items():
        direction = torch.as_tensor(rng.normal(size=value.shape))
        scale = float(value.abs().mean()) or 1.0
        slopes = []
        for step in (1e-4, 1e-5, 1e-6):
            with torch.no_grad():
                there, back = (loss(inputs | {name: value + s * step * scale * direction}) for s in (1.0, -1.0))
            slopes.append(float(there - back) / (2.0 * step * scale))
        slope = float((leaves[name].grad * direction).sum())
        assert slope != 0.0, name
        assert min(abs(slope - s) for s in slopes) < 1e-4 * abs(slope), (name, slope, slopes)
