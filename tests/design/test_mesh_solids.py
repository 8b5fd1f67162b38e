"""Solids that are meshes under a design: samples and contact follow, with gradients; what cannot follow is refused."""

import dataclasses

import numpy as np
import pytest
import torch
from concave_meshes import cup

import warpbots as wb
from warpbots.contact.mesh_distance import nearest_on_mesh
from warpbots.contact.solid_forms import grid_of
from warpbots.design import Assembly, CagedBody, Section, box_cage, chain, designed_parameters, joint, palm, tip
from warpbots.scene import SceneError
from warpbots.scene.shapes import Box, Sphere, TriangleMesh, Union

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
        steps = 1e-6 * 0.5 ** np.arange(4)  # the cubic remainder is as large as the quadratic one at 1e-5
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
    ground, law = wb.floor(-0.1, friction=0.0), wb.Contact("ball", "floor", 1e7, 1e7)
    sim = wb.Simulation(wb.Scene([BALL], obstacles=[ground], contacts=[law]), wb.Articulated(), 1e-3, 1)
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
    words = (
        r"body .cup.: the design moves its mesh by 0.00\d+ m out of the samples of its solid, which were laid when "
        r"the simulation was made; use Articulated\(room=(0.0\d+)\) or more \[m\], or change the design less"
    )
    for room, factor in ((0.0, 1.2), (ROOM, 1.2), (0.0021, 1.25)):  # the last of which rounding to samples spares most
        wide = CUP.rest * torch.tensor([factor, 1.0, 1.0])
        with pytest.raises(ValueError, match=words) as fault:
            designed_parameters(held(room=room), {CUP: wide})
        advised = float(str(fault.value).split("room=")[1].split(")")[0])
        assert room < advised < 0.01
        designed_parameters(held(room=advised), {CUP: wide})
    little = CUP.rest * torch.tensor([1.01, 1.0, 1.0])
    designed_parameters(held(room=0.0), {CUP: little})


@pytest.mark.filterwarnings("ignore:.* deep in 'cup'")
@pytest.mark.parametrize(
    "shape", [Box((-0.03, -0.03, -0.03), (0.03, 0.03, 0.02)), Union((Sphere((0, 0, 0), 0.02), TriangleMesh(*cup())))]
)
def test_solids_that_do_not_follow_their_handles(shape):
    scene = held().scene
    bodies = [dataclasses.replace(scene.bodies[0], shape=shape), BALL]
    sim = wb.Simulation(dataclasses.replace(scene, bodies=bodies), wb.Articulated(samples=16), 1e-3, 1)
    with pytest.raises(ValueError, match="body 'cup': contacts have it as a solid, whose shape .* does not follow a"):
        designed_parameters(sim, {CUP: CUP.rest})


def test_links_of_an_assembly_as_solids(rng):
    """Every mesh of a link has the samples of a scene that is built anew; their gradients are those of differences."""
    finger = Assembly(
        chain(
            palm(Section(0.026, 0.026), points=0),
            joint(points=(0, 0)),
            tip(points=0),
        ),
        constant=["palm.*"],
    )
    ball = wb.RigidBody("ball", wb.shapes.Sphere((0.03, 0.0, 0.03), 0.01), points=30, friction=0.0)

    def made(factors: torch.Tensor) -> wb.Simulation:
        joints = [wb.Joint("wall", "fixed", None, "palm"), *finger.joints(factors, damping=0.01)]
        laws = [wb.Contact("ball", link.name, 1e6) for link in finger.links[1:]]
        scene = wb.Scene([*finger.bodies(factors), ball], joints=joints, contacts=laws)
        return wb.Simulation(scene, wb.Articulated(samples=24, room=0.006), 1e-3, 1)

    sim, factors = made(finger.rest), torch.as_tensor(rng.uniform(0.85, 1.15, len(finger.names)))
    found = finger.model_parameters(sim, finger.shape(factors))["solid_distance"]
    assert found.shape == sim.parameter("solid_distance").shape
    anew = made(factors)
    same = finger.model_parameters(anew, finger.shape(factors))["solid_distance"]
    torch.testing.assert_close(same, anew.parameter("solid_distance"), rtol=0, atol=2e-8)
    weights = torch.as_tensor(rng.normal(size=tuple(found.shape)))

    def weighted(factors: torch.Tensor) -> torch.Tensor:
        return (weights * finger.model_parameters(sim, finger.shape(factors))["solid_distance"]).sum()

    leaf, d, h = factors.clone().requires_grad_(), torch.as_tensor(rng.normal(size=len(factors))), 1e-7
    (slope,) = torch.autograd.grad(weighted(leaf), leaf)
    with torch.no_grad():
        difference = (weighted(factors + h * d) - weighted(factors - h * d)).item() / (2.0 * h)
    assert (slope * d).sum().item() == pytest.approx(difference, rel=1e-5)


def test_walls_that_become_too_thin():
    """Between the samples there would be nothing left of them."""
    flat = CUP.rest * torch.tensor([1.0, 1.0, 0.03])
    with pytest.raises(SceneError, match="TriangleMesh of 'cup': .* of its surface cannot be in contact, .*samples="):
        designed_parameters(held(), {CUP: flat})


def test_bad_room():
    with pytest.raises(ValueError, match=r"Articulated: room must be at least 0 \[m\], got -0.1"):
        wb.Articulated(room=-0.1)
