"""Room for contacts follows from what touches: surfaces face to face, and motions that outgrow what there was."""

import numpy as np
import pytest
import torch
import warp as wp
from cases import to_numpy
from scipy.spatial.transform import Rotation

import warpbots as wb
from warpbots.numerics import precision
from warpbots.solvers.projective import build

pytestmark = pytest.mark.verification(float32=True)

Box = wb.shapes.Box


def stack(gap: float, gravity: float = 0.0, upper: float = 0.1) -> wb.Scene:
    """A cube of 10 cm over another one, of as many cells."""
    matter = wb.Material(8e4, 0.35, 1100.0)
    cubes = Box((0, 0, 0), (0.1, 0.1, 0.1)), Box((0, 0, 0.1 + gap), (upper, upper, 0.1 + gap + upper))
    bodies = [wb.SoftBody(name, cube, matter) for name, cube in zip("ab", cubes, strict=True)]
    constraints = [] if gravity == 0.0 else [wb.Constraint("floor")]
    regions = {"floor": Box((-1, -1, -1), (1, 1, 1e-6))}
    if constraints:
        bodies[0] = wb.SoftBody("a", cubes[0], matter, regions)
    return wb.Scene(bodies, constraints=constraints, gravity=(0, 0, -gravity))


@pytest.mark.parametrize("gap", [0.0, 1e-8, 1e-6, 3e-5, 3e-4])
@pytest.mark.parametrize("turned", [False, True])
def test_surfaces_that_touch_face_to_face_are_parted_along_their_normals(gap, turned):
    """Cubes face to face, node on node, at any gap from none on, also where rounding has turned them a little.

    They keep the clearance of a hundredth of an edge, and nothing pushes them to the side.
    """
    sim = wb.Simulation(stack(gap), wb.ProjectiveDynamics(0.05), dt=4e-3)
    start, Q = sim.state(), np.eye(3)
    if turned:
        Q = Rotation.from_rotvec((0.4, -0.7, 0.2)).as_matrix()
        turn = torch.as_tensor(Q, dtype=start.position.dtype)
        start = sim.state(position=start.position @ turn.T + torch.tensor([0.2, 0.5, -0.3]))
    end = sim.step(start, torch.zeros(1, 0))
    assert sim.report().shorter_steps[0] == 0
    upper = sim.model.matter.body == 1
    moved = to_numpy(end.position - start.position)[0].astype(float) @ Q
    apart = moved[upper].mean(axis=0) - moved[~upper].mean(axis=0)
    clearance = 0.01 * sim.model.matter.edge
    small = {"float32": 3e-6, "float64": 1e-7}[precision]
    assert 0.2 * (clearance - gap) < apart[2] < 2.0 * clearance
    assert np.abs(apart[:2]).max() < small


def test_cloth_that_lies_on_a_solid_without_a_gap_stays_on_its_outside():
    """The sheet has no outside, the solid has: the sheet begins in its upper face and ends above it."""
    n, side = 5, 0.1
    g = np.linspace(0.0, side, n)
    x, y = np.meshgrid(g, g, indexing="ij")
    corners = np.stack([x.ravel(), y.ravel(), np.full(n * n, side)], axis=1)
    faces = [f for i in range(n - 1) for k in range(n - 1) for a in [i * n + k]
             for f in ((a, a + n + 1, a + n), (a, a + 1, a + n + 1))]  # fmt: skip
    matter = wb.Material(1e5, 0.3, 500.0)
    sheet = wb.SoftBody("sheet", wb.shapes.Sheet(corners, faces, 1e-3), matter)
    block = wb.SoftBody("block", Box((0, 0, 0), (side, side, side)), matter)
    sim = wb.Simulation(wb.Scene([block, sheet], gravity=(0, 0, 0)), wb.ProjectiveDynamics(0.05), dt=4e-3)
    end = to_numpy(sim.step(sim.state(), torch.zeros(1, 0)).position)[0]
    of_sheet = sim.model.matter.body == 1
    top = ~of_sheet & (sim.model.matter.position[:, 2] > side - 1e-6)
    assert end[of_sheet, 2].min() > end[top, 2].max()


def falling(room: int, monkeypatch, worlds: int = 1) -> wb.Simulation:
    """A cube that falls on another one, with this room for contacts in each world at first."""
    with monkeypatch.context() as patch:
        patch.setattr(build, "_room", lambda *_: room)
        scene = stack(4e-3, gravity=9.81, upper=0.08)
        return wb.Simulation(scene, wb.ProjectiveDynamics(0.05), dt=5e-3, worlds=worlds, device="cpu")


def motion(sim: wb.Simulation, speed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Where bodies are after some steps of different downward speeds, and the gradient of a sum by Young's modulus."""
    start = sim.state()
    upper = torch.as_tensor(sim.model.matter.body == 1)
    velocity = start.velocity.clone()
    velocity[:, upper, 2] = -speed[:, None].to(velocity.dtype)
    youngs_modulus = sim.parameter("youngs_modulus").requires_grad_()
    end = sim.rollout(None, 9, sim.state(velocity=velocity), youngs_modulus=youngs_modulus).final
    (end.position.double() ** 2).sum().backward()
    return end.position.detach(), youngs_modulus.grad


@pytest.mark.parametrize("worlds", [1, 3])
def test_a_room_that_grows_gives_the_same_bits_as_one_that_was_large(worlds, monkeypatch):
    """Contacts that come during a rollout, in one of three worlds, and its gradient through recomputed segments."""
    speed = torch.tensor([0.7, 0.4, 0.0][:worlds])
    small, large = falling(4, monkeypatch, worlds), falling(400, monkeypatch, worlds)
    ends, gradients = zip(*(motion(sim, speed) for sim in (small, large)), strict=True)
    assert torch.equal(*ends)
    assert torch.equal(*gradients)
    assert gradients[0].abs().max() > 0.0
    step = [sim.step(sim.state(), torch.zeros(worlds, 0)) for sim in (small, large)]
    assert torch.equal(step[0].position, step[1].position)
    assert 4 < small.report().room < 400
    assert large.report().room == 400


def test_an_equilibrium_finds_the_room_that_it_needs(monkeypatch):
    """A cube that comes to rest on another one, with its gradient."""
    ends = []
    for room in (4, 400):
        sim = falling(room, monkeypatch)
        load = sim.parameter("gravity").requires_grad_()
        ends.append(sim.equilibrium(dt=0.05, steps=400, tolerance=1e-4, gravity=load).position)
    assert torch.equal(*ends)


def test_a_bare_step_without_room_says_so(monkeypatch):
    """Steps of the solver without a `Simulation` are lost, and the message says where there is more room."""
    sim = falling(4, monkeypatch)
    solver, model = sim.solver, sim.model
    before, after = solver.state(model), solver.state(model)
    velocity = before.velocity.numpy()
    velocity[:, model.matter.body == 1, 2] = -2.0
    before.velocity.assign(velocity)
    solver.step(model, before, wp.zeros((1, 0), dtype=model.scalar, device=model.device), after, 5e-3)
    fields = [{n: a.numpy() for n, a in vars(s).items()} for s in (before, after)]
    assert fields[1]["lost"].all()
    assert "there is room for 4; the model of ProjectiveDynamics.grown has more" in solver.diagnose(
        model, *fields, 5e-3
    )
    while model := solver.grown(model):
        solver.step(model, before, wp.zeros((1, 0), dtype=model.scalar, device=model.device), after, 5e-3)
    assert not after.lost.numpy().any()
