"""Shape as a parameter: gradients with respect to design numbers, and shaped bodies beside bodies built that way."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from cases import block

import warpbots as wb
from warpbots.morphology import Affine, Composition, FreeForm, Stretch, jacobian, shaped
from warpbots.numerics import precision
from warpbots.scene import Box, Constraint, Points, Scene, SoftBody
from warpbots.scene.shapes import TetMesh

DX = 0.125
SOLVERS = {
    "mpm": lambda dx: wb.MPM(dx),
    "springs": lambda dx: wb.MassSpring(dx / 2),
    "springs-random": lambda dx: wb.MassSpring(dx / 2, "random"),
    "projective": lambda dx: wb.ProjectiveDynamics(dx, tolerance=1e-13 if precision == "float64" else None),
}
CORNER = (0.25, 0.25, 0.25)
solvers = pytest.mark.parametrize("solver", SOLVERS)
exact = pytest.mark.skipif(precision != "float64", reason="central differences need float64")


def simulation(solver: str, size: float = 1.0, **changes) -> wb.Simulation:
    """A block with a clamped end under gravity; `size` scales it, and its cells, about `CORNER`."""
    scene = block(3, damping=1e-3, **changes)
    scale = lambda box: Box(*(np.array(CORNER) + size * (np.array(c) - CORNER) for c in (box.lower, box.upper)))
    body = scene.soft[0]
    clamp = Box((0.25,) * 3, (0.3, 0.5, 0.5))
    body = SoftBody(body.name, scale(body.shape), body.material, regions={"root": scale(clamp)})
    held = () if solver == "mpm" and size != 1.0 else (Constraint("root"),)
    scene = Scene((body,), gravity=(0.0, 0.0, -9.81), constraints=held, domain=((0.0,) * 3, (1.0,) * 3))
    return wb.Simulation(scene, SOLVERS[solver](DX * size), 4e-3, 1 if solver == "projective" else 32)


def design(numbers: torch.Tensor):
    """Five numbers: two entries of a matrix, a stretch of the outer half, two coordinates of a handle."""
    first = torch.stack(
        [numbers[0], 0.1 * numbers[1], *torch.zeros(2), torch.ones(()), *torch.zeros(3), torch.ones(())]
    )
    matrix = first.reshape(3, 3)
    handles = torch.zeros(2, 2, 3, 3, dtype=torch.float64)
    handles = handles.index_put([torch.tensor(i) for i in (1, 0, 2)], torch.stack([0 * numbers[3], *numbers[3:]]))
    free = FreeForm(handles, (0.2, 0.2, 0.2), (0.8, 0.8, 0.8))
    return Composition((Affine(matrix, CORNER), Stretch(numbers[2], 0, 0.37, 0.8), free))


START = torch.tensor([1.05, 0.5, 1.08, 0.02, -0.03], dtype=torch.float64)


def loss(sim: wb.Simulation, numbers: torch.Tensor) -> torch.Tensor:
    """Of where matter is after a few steps, weighted so that nothing cancels."""
    state, parameters = shaped(sim, design(numbers))
    x = sim.rollout(None, 2, state, **parameters).final.position
    weight = torch.sin(torch.arange(x.numel(), dtype=x.dtype)).reshape(x.shape)
    return (weight * x).sum() + x.square().sum()


@exact
@pytest.mark.verification
@solvers
def test_gradients_are_central_differences(solver):
    """For each design number, to 1e-6 of it; and the Taylor remainder is of second order."""
    sim = simulation(solver)
    numbers = START.clone().requires_grad_()
    loss(sim, numbers).backward()
    with torch.no_grad():
        for k, g in enumerate(numbers.grad):
            h = 1e-5 * torch.eye(5, dtype=torch.float64)[k]
            difference = (loss(sim, START + h) - loss(sim, START - h)) / 2e-5
            assert g.item() == pytest.approx(difference.item(), rel=1e-6), k
        along = torch.tensor([0.3, -0.5, 0.2, 0.1, 0.1], dtype=torch.float64)
        at, slope = loss(sim, START), numbers.grad @ along
        rest = [abs(loss(sim, START + h * along) - at - h * slope).item() for h in (2e-2, 1e-2)]
    assert rest[0] / rest[1] == pytest.approx(4.0, rel=0.1)


@solvers
def test_a_map_that_moves_nothing_changes_nothing(solver):
    """All parameters and the state are the model's own, to rounding."""
    sim = simulation(solver)
    state, parameters = shaped(sim, Stretch(1.0, 0, 0.0, 1.0))
    for name, value in parameters.items():
        torch.testing.assert_close(
            value, sim.parameter(name), rtol={"float32": 1e-6, "float64": 1e-13}[precision], atol=0
        )
    torch.testing.assert_close(state.position, sim.state().position, rtol=0, atol=0)


def test_springs_keep_their_energy_per_volume():
    """Of a random lattice under a uniform scale s: l by s, m by s^3, and k, damping by s."""
    sim = simulation("springs-random")
    _, parameters = shaped(sim, Affine(1.2 * torch.eye(3, dtype=torch.float64), CORNER))
    for name, power in {"rest_length": 1, "mass": 3, "drag": 3, "stiffness": 1, "damping": 1}.items():
        torch.testing.assert_close(parameters[name], 1.2**power * sim.parameter(name))


@pytest.mark.parametrize("solver", ["mpm", "springs", "projective"])
def test_a_shaped_body_is_one_built_at_that_size(solver):
    """Scaled by 1.2 together with the cells: positions and masses at rest, and the motion where the grid is the same."""
    s = 1.2
    sim, large = simulation(solver), simulation(solver, s)
    state, parameters = shaped(sim, Affine(s * torch.eye(3, dtype=torch.float64), CORNER))
    close = {"float32": 2e-6, "float64": 1e-12}[precision]
    for name, value in parameters.items():
        if name != "anchor":
            torch.testing.assert_close(value, large.parameter(name), rtol=20 * close, atol=close)
    torch.testing.assert_close(state.position, large.state().position, rtol=close, atol=close)
    if solver != "mpm":  # whose grid is finer under the shaped body
        ours = sim.rollout(None, 5, state, **parameters).final.position
        theirs = large.rollout(None, 5).final.position
        assert (theirs - large.state().position).abs().max() > 1e-4
        torch.testing.assert_close(ours, theirs, rtol=20 * close, atol=20 * close)


def test_projective_dynamics_equals_a_mesh_of_moved_nodes():
    """A map that is not affine: the same tetrahedra, built from the moved nodes, have the same trajectory."""
    sim = simulation("projective")
    state, parameters = shaped(sim, design(START))
    mesh, body = sim.model.matter, sim.scene.soft[0]
    moved = TetMesh(design(START)(torch.as_tensor(mesh.position)).numpy(), mesh.tets)
    clamp = Box(np.array(CORNER) - 0.1, CORNER + np.array([0.02, 0.5, 0.5]))
    scene = Scene((SoftBody("block", moved, body.material, regions={"root": clamp}),), gravity=sim.scene.gravity,
                  constraints=(Constraint("root"),))  # fmt: skip
    built = wb.Simulation(scene, sim.solver, sim.dt, 1)
    assert (built.model.tables["fixed node"] == sim.model.tables["fixed node"]).all()
    close = {"float32": 1e-5, "float64": 1e-11}[precision]
    ours, theirs = sim.rollout(None, 5, state, **parameters).final, built.rollout(None, 5).final
    torch.testing.assert_close(ours.position, theirs.position, rtol=0.0, atol=close)


def swimming_bar(shape, turns: float = 2000.0, bone_end: float = 0.375) -> wb.Simulation:
    """A bar in a stream with a bone in its root, which a motor turns; about x = 0.125 the bar is soft."""
    body = SoftBody("bar", shape, wb.Material(1e5, 0.3, 1000.0))
    bone = wb.RigidBody("bone", Box((0.125, 0.125, 0.125), (bone_end, 0.25, 0.25)), 1000.0)
    joint = wb.Joint("root", "revolute", None, "bone", (0.125, 0.1875, 0.1875), axis=(0.0, 1.0, 0.0))
    fluid = wb.Fluid(1000.0, (0.2, 0.1, 0.3))
    scene = Scene(
        (body, bone), [wb.actuators.Torque("motor", "root", turns)], joints=[joint], gravity=(0.0,) * 3, fluid=fluid
    )
    solver = wb.ProjectiveDynamics(DX, tolerance=1e-12 if precision == "float64" else None, collisions=False)
    return wb.Simulation(scene, solver, 0.02, 1)


BAR = Box((0.125, 0.0, 0.0), (0.875, 0.375, 0.375))


def longer(numbers: torch.Tensor):
    """The part beyond the bone stretched along x, and the half of that along z."""
    return Composition((Stretch(numbers[0], 0, 0.5, 0.875), lambda x: x * (1 + wide(numbers[1], x))))


def wide(factor: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.stack([0 * x[:, 0], 0 * x[:, 0], (factor - 1) * (x[:, 0] - 0.5).clamp(min=0)], dim=1)


def test_matter_beyond_bones_follows_in_a_fluid():
    """The same tetrahedra, built from the moved nodes, have the same motion of soft matter and of the bone."""
    sim, numbers = swimming_bar(BAR), torch.tensor([1.2, 1.3], dtype=torch.float64)
    state, parameters = shaped(sim, longer(numbers))
    whole = wb.meshing.tetrahedra(BAR, DX)
    built = swimming_bar(TetMesh(longer(numbers)(torch.tensor(whole.vertices)).numpy(), whole.tets))
    np.testing.assert_array_equal(built.model.matter.tets, sim.model.matter.tets)
    np.testing.assert_array_equal(built.model.matter.bone, sim.model.matter.bone)
    close = {"float32": 1e-5, "float64": 1e-10}[precision]
    control = 0.5 * torch.ones(5, 1)
    ours, theirs = sim.rollout(control, 5, state, **parameters).final, built.rollout(control, 5).final
    assert (ours.position - state.position).abs().max() > 1e-2
    torch.testing.assert_close(ours.position, theirs.position, rtol=0.0, atol=close)
    torch.testing.assert_close(ours.q, theirs.q, rtol=0.0, atol=close)


@exact
@pytest.mark.verification
def test_gradients_beyond_bones_are_central_differences():
    """Of a motion in a fluid with respect to length and width of what a bone drives, to 1e-6."""
    sim, start = swimming_bar(BAR), torch.tensor([1.2, 1.3], dtype=torch.float64)

    def end(numbers: torch.Tensor) -> torch.Tensor:
        state, parameters = shaped(sim, longer(numbers))
        x = sim.rollout(0.5 * torch.ones(4, 1), 4, state, **parameters).final.position
        return (torch.sin(torch.arange(x.numel(), dtype=x.dtype)).reshape(x.shape) * x).sum()

    numbers = start.clone().requires_grad_()
    end(numbers).backward()
    with torch.no_grad():
        for g, h in zip(numbers.grad, 1e-5 * torch.eye(2, dtype=torch.float64), strict=True):
            assert g.item() == pytest.approx((end(start + h) - end(start - h)).item() / 2e-5, rel=1e-6)


def test_bones_cannot_be_moved():
    """Nor may the matter at them, by the bone's name; a shape of bodies on joints alone is refused as before."""
    with pytest.raises(
        wb.SceneError, match=r"moves node \d+ at .* m by 0\.0\d+ m, and it is bound to RigidBody 'bone'"
    ):
        shaped(swimming_bar(BAR), Stretch(1.2, 0, 0.125, 0.875))


def test_mpm_equals_particles_that_were_moved():
    """The same particles, built where the map puts them with the volumes that it gives them, have the same motion."""
    sim = simulation("mpm")
    state, parameters = shaped(sim, design(START))
    position, J = jacobian(design(START), torch.as_tensor(sim.model.matter.position))
    points = Points(position.detach().numpy(), torch.linalg.det(J).detach().numpy() * sim.model.matter.volume)
    body = SoftBody("block", points, sim.scene.soft[0].material, regions={"root": Box((0.2,) * 3, (0.33, 0.6, 0.6))})
    held = (Constraint("root"),)
    scene = Scene((body,), gravity=sim.scene.gravity, constraints=held, domain=sim.scene.domain)
    built = wb.Simulation(scene, sim.solver, sim.dt, sim.substeps)
    assert (built.model.matter.regions["root"] == sim.model.matter.regions["root"]).all()
    close = {"float32": 1e-5, "float64": 1e-12}[precision]
    ours, theirs = sim.rollout(None, 3, state, **parameters).final, built.rollout(None, 3).final
    assert (ours.position - state.position).abs().max() > 1e-4
    torch.testing.assert_close(ours.position, theirs.position, rtol=0.0, atol=close)


@pytest.mark.parametrize("solver", ["mpm", "springs"])
def test_mass_is_density_times_the_new_volume(solver):
    """Of the outer half alone, stretched by 1.2: the block has 1.1 times its volume."""
    sim = simulation(solver)
    _, parameters = shaped(sim, Stretch(1.2, 0, 0.375, 0.5))
    found = parameters["mass"] if solver != "mpm" else parameters["volume"] * sim.parameter("density")
    assert found.sum().item() == pytest.approx(1000.0 * 1.1 * 0.25**3, rel=2e-6)


def test_jacobians_are_those_of_autograd():
    """And a map's own algebra: the stretch of a point within, and beyond what is stretched."""
    points = torch.as_tensor(np.random.default_rng(0).uniform(0.25, 0.6, (5, 3)))
    moved, J = jacobian(design(START), points)
    whole = torch.autograd.functional.jacobian(design(START), points)
    for p in range(5):
        torch.testing.assert_close(J[p], whole[p, :, p])
    torch.testing.assert_close(moved, design(START)(points))
    ends = torch.tensor([[0.5, 1.0], [3.0, 1.0], [-1.0, 1.0]], dtype=torch.float64)
    expected = torch.tensor([[1.0, 1.0], [4.0, 1.0], [-1.0, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(Stretch(2.0, 0, 0.0, 1.0)(ends), expected)


def test_handles_that_move_as_one_carry_their_box():
    """Partition of unity, and linear precision: handles moved by an affine map move points by it."""
    points = torch.as_tensor(np.random.default_rng(0).uniform(0.0, 1.0, (5, 2)))
    A = torch.tensor([[0.2, 0.1], [-0.3, 0.4]], dtype=torch.float64)
    t = torch.linspace(0.0, 1.0, 4, dtype=torch.float64)
    handles = torch.stack(torch.meshgrid(t, t, indexing="ij"), dim=-1) @ A.T + 0.1
    torch.testing.assert_close(FreeForm(handles, (0, 0), (1, 1))(points), points + points @ A.T + 0.1)


@solvers
def test_inverted_elements_are_refused(solver):
    """With the kind of the element and the determinant, which is that of the map."""
    mirror = Affine(torch.diag(torch.tensor([1.0, 1.0, -0.5], dtype=torch.float64)), (0.375,) * 3)
    with pytest.raises(
        ValueError, match=r"(particle|cell of the lattice|tetrahedron) \d+ is turned inside out.*-0\.5 "
    ):
        shaped(simulation(solver), mirror)


def test_what_cannot_follow_is_refused():
    """By name: actuators that were placed on the body, matter torn apart or pressed close to a clamp, bad maps."""
    same = Stretch(1.0, 0, 0.0, 1.0)
    cable = wb.actuators.Cable("tendon", ((0.3,) * 3, (0.4,) * 3), 100.0)
    with pytest.raises(wb.SceneError, match="actuator 'tendon' cannot follow"):
        shaped(wb.Simulation(block(3, actuators=(cable,)), wb.MPM(DX), 1e-3, 8), same)
    lattice = wb.Simulation(block(3, obstacles=(wb.floor(),)), wb.MassSpring(DX / 2, contact_stiffness=1e5), 1e-3, 16)
    with pytest.raises(wb.SceneError, match="stiffness of contact"):
        shaped(lattice, same)
    body = SoftBody("bar", Box((0, 0, 0), (1.0, 0.2, 0.2)), wb.Material(1e4), {"root": Box((0, 0, 0), (0.1, 0.2, 0.2))})
    long = wb.Simulation(Scene((body,), constraints=(Constraint("root"),)), wb.MPM(0.1), 1e-3, 1)
    with pytest.raises(ValueError, match="close to matter that constraint 'clamp'"):
        shaped(long, Stretch(0.2, 0, 0.1, 0.9))
    mpm = simulation("mpm")
    with pytest.raises(ValueError, match="fall apart"):
        shaped(mpm, Stretch(2.5, 0, 0.25, 0.5))
    with pytest.raises(ValueError, match="outside of the box"):
        shaped(mpm, FreeForm(torch.zeros(2, 2, 2, 3), (0.3,) * 3, (0.8,) * 3))
    with pytest.raises(ValueError, match="not finite"):
        shaped(mpm, lambda x: x / 0.0)
    with pytest.raises(ValueError, match="no gradient with respect to points"):
        shaped(mpm, lambda x: x.detach())
    with pytest.raises(ValueError, match="returned"):
        shaped(mpm, lambda x: x[:, :2])
    with pytest.raises(ValueError, match="greater than start"):
        Stretch(1.0, 0, 1.0, 1.0)
    with pytest.raises(ValueError, match="at least 2 handles"):
        FreeForm(torch.zeros(1, 2, 2), (0, 0), (1, 1))
    with pytest.raises(ValueError, match="below upper"):
        FreeForm(torch.zeros(2, 2, 2), (0, 1), (1, 1))


def test_the_page_on_shape_finds_the_length_and_keeps_it(tmp_path, monkeypatch):
    """Its examples, as they stand: the bar sags by a hundredth of a metre, neither as it was nor on a bound."""
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).resolve().parents[2] / "docs" / "morphology.md").read_text()
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(compile(code, "morphology.md", "exec"), names)
    assert names["history"].loss[-1] < 1e-4
    assert 0.55 < names["factor"].item() < 0.95
    kept = wb.Simulation(wb.usd.read("bar.usdz"), wb.ProjectiveDynamics(0.05), dt=0.05, substeps=1).state()
    end, length = kept.position[..., 0].max().item(), 0.02 + 0.18 * names["factor"].item()
    assert end == pytest.approx(length, abs=1e-6)


@solvers
def test_a_scene_keeps_a_shape(solver, tmp_path):
    """Undeformed in the new shape, and through a file, too; without its start it would be the old shape, strained."""
    sim = simulation(solver)
    state, parameters = shaped(sim, design(START))
    wb.usd.write(tmp_path / "shaped.usda", sim.scene_with(start=state, **parameters))
    same = wb.Simulation(wb.usd.read(tmp_path / "shaped.usda"), sim.solver, sim.dt, sim.substeps)
    assert torch.equal(same.state().position, state.position)
    assert torch.equal(same.rollout(None, 2).final.position, sim.rollout(None, 2, state, **parameters).final.position)
