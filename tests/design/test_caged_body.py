"""Bodies in cages as parameters of articulated bodies: the same as a scene built anew, and gradients of the chain."""

import numpy as np
import pytest
import torch
import trimesh

import warpbots as wb
from warpbots.design import CagedBody, CageMap, box_cage, designed_parameters, surface_points

LONG, WIDE = 0.06, 0.02


def link(name: str, points: int = 0) -> CagedBody:
    """A capsule along x in a box cage."""
    mesh = trimesh.creation.capsule(LONG - 2 * 0.009, 0.009, count=(12, 12))
    mesh.apply_transform(trimesh.transformations.rotation_matrix(np.pi / 2, (0, 1, 0)))
    mesh.apply_translation(np.array([LONG / 2, 0, 0]) - mesh.bounds.mean(axis=0))
    return CagedBody(name, mesh.vertices, mesh.faces, box_cage((0, -WIDE / 2, -WIDE / 2), (LONG, WIDE / 2, WIDE / 2)),
                     1000.0, points)  # fmt: skip


NEAR, FAR = link("near"), link("far", points=24)
JOINTS = {"tip": (NEAR, (LONG, 0.0, 0.0))}


def finger(near: torch.Tensor | None = None, far: torch.Tensor | None = None) -> wb.Simulation:
    """Two links on a wall, whose end comes down on a floor."""
    near, far = (body.rest if h is None else h.detach() for body, h in ((NEAR, near), (FAR, far)))
    end = NEAR.carried([[LONG, 0.0, 0.0]], near)[0].tolist()
    bodies = [NEAR.rigid_body(near), FAR.rigid_body(far, position=end)]
    joints = [
        wb.Joint("root", "revolute", None, "near", axis=(0, 1, 0), damping=1e-4),
        wb.Joint("tip", "revolute", "near", "far", position=end, axis=(0, 1, 0), damping=1e-4),
    ]
    motors = [wb.actuators.Torque("root", "root", 0.01), wb.actuators.Torque("tip", "tip", 0.005)]
    law = wb.Contact("far", "floor", 1e6, 1e3, 0.5, 1e4)
    scene = wb.Scene(bodies, motors, [wb.floor(-0.03)], joints=joints, contacts=[law])
    return wb.Simulation(scene, wb.Articulated(), 1.5e-3, 1)


def handles(body: CagedBody, rng: np.random.Generator, size: float = 0.002) -> torch.Tensor:
    """Handles moved at random."""
    return body.rest + size * torch.as_tensor(rng.uniform(-1, 1, tuple(body.rest.shape)))


def test_parameters_are_those_of_a_scene_that_is_built_in_the_new_shape(rng):
    """And so is the motion, with contact."""
    near, far = handles(NEAR, rng), handles(FAR, rng)
    sim, anew = finger(), finger(near, far)
    found = designed_parameters(sim, {NEAR: near, FAR: far}, JOINTS)
    assert set(found) == {"mass", "center_of_mass", "inertia", "joint_position", "contact_point", "contact_area"}
    for name, value in found.items():
        own = anew.parameter(name)
        torch.testing.assert_close(value, own, rtol=1e-9, atol=1e-9 * own.abs().max().item(), msg=name)
    control = torch.full((100, 2), 0.1)
    a, b = sim.rollout(control, 100, **found).final, anew.rollout(control, 100).final
    torch.testing.assert_close(a.q, b.q, rtol=0, atol=1e-8)
    assert (b.q - anew.state().q).abs().max() > 0.1


def test_gradients_of_the_whole_chain(rng):
    """From the handles of both links through mesh, mass, contact and motion, against central differences, 1e-6."""
    sim = finger()
    start = {NEAR: handles(NEAR, rng), FAR: handles(FAR, rng)}
    control = torch.as_tensor(rng.uniform(-0.1, 0.3, (100, 2)))

    def loss(near: torch.Tensor, far: torch.Tensor) -> torch.Tensor:
        final = sim.rollout(control, 100, **designed_parameters(sim, {NEAR: near, FAR: far}, JOINTS)).final
        return (final.q * torch.tensor([1.0, -2.0])).sum() + 0.1 * final.qd.sum()

    leaves = [h.clone().requires_grad_() for h in start.values()]
    gradients = torch.autograd.grad(loss(*leaves), leaves)
    touching = sim.sense(sim.rollout(control, 100).final).contact_force
    assert touching.abs().max() > 1e-3
    for k, gradient in enumerate(gradients):
        d = torch.as_tensor(rng.normal(size=tuple(gradient.shape)))
        h = 1e-7
        with torch.no_grad():
            up, down = (loss(*(v + s * h * d if i == k else v for i, v in enumerate(start.values()))) for s in (1, -1))
        slope = (gradient * d).sum().item()
        print(f"{slope:.6e}, off by {abs((up - down).item() / (2 * h) / slope - 1):.1e}")
        assert slope == pytest.approx((up - down).item() / (2 * h), rel=1e-6)


@pytest.mark.verification
def test_a_soft_finger_in_a_cage(rng):
    """The same cage shapes matter under MPM, and its handles have gradients there, against central differences."""
    lower, upper = (0.1, 0.1, 0.1), (0.3, 0.15, 0.15)
    body = wb.SoftBody(
        "finger", wb.shapes.Box(lower, upper), wb.Material(2e4), {"root": wb.shapes.Box(lower, (0.12, 0.15, 0.15))}
    )
    scene = wb.Scene([body], constraints=[wb.Constraint("root")], domain=((0.0, 0.0, 0.0), (0.4, 0.25, 0.25)))
    sim = wb.Simulation(scene, wb.MPM(dx=0.025), 5e-3, None)
    cage = box_cage((0.09, 0.09, 0.09), (0.31, 0.16, 0.16))
    rest = torch.tensor(cage.handles)

    def sag(handles: torch.Tensor) -> torch.Tensor:
        state, parameters = wb.morphology.shaped(sim, CageMap(cage, handles))
        final = sim.rollout(None, 8, state, **parameters).final
        return (state.position - final.position)[0, :, 2].double().mean()

    leaf = rest.clone().requires_grad_()
    (slope,) = torch.autograd.grad(sag(leaf), leaf)
    d, h = torch.as_tensor(rng.normal(size=(14, 3))), 1e-6
    with torch.no_grad():
        up, down = (sag(rest + s * h * d).item() for s in (1.0, -1.0))
    assert slope.abs().max() > 0.0
    assert (slope * d).sum().item() == pytest.approx((up - down) / (2 * h), rel=1e-5)


def test_contact_points_on_a_part_of_the_mesh(rng):
    """Those of the end alone, with the area of the end, move with the handles."""
    vertices, faces = FAR.vertices.numpy(), FAR.faces.numpy()
    end = faces[vertices[faces].mean(axis=1)[:, 0] > 0.8 * LONG]
    body = CagedBody("far", vertices, faces, FAR.cage, points=surface_points(vertices, end, 10))
    moved = body.deformed(handles(body, rng))
    for shape in (body.vertices, moved):
        assert 1 < len(body.contacts.positions(shape)) <= 10
        area = trimesh.Trimesh(shape.numpy(), end, process=False).area
        assert body.contacts.areas(shape).sum().item() == pytest.approx(area, rel=1e-12)
    assert body.contacts.positions(body.vertices)[:, 0].min() > 0.75 * LONG
    assert len(body.rigid_body().points.positions) == len(body.contacts.face)


def test_bad_input(rng):
    inside_out = NEAR.rest.clone()
    inside_out[[1, 3, 5, 7, 9], 0] = -0.08
    with pytest.raises(
        ValueError, match=r"'near': its handles turn it inside out, the mesh encloses -.*; handle \d+ at .*less"
    ):
        NEAR.deformed(inside_out)
    with pytest.raises(ValueError, match=r"'near': handles must have shape \(14, 3\), got \(3, 3\)"):
        NEAR.deformed(torch.zeros(3, 3))
    small = box_cage((0, -0.005, -0.005), (LONG, 0.005, 0.005))
    with pytest.raises(ValueError, match="'thick': Cage: .* points are outside of it"):
        CagedBody("thick", NEAR.vertices, NEAR.faces, small)
    with pytest.raises(ValueError, match="'inverted': its mesh encloses -.* m.3, which must be positive"):
        CagedBody("inverted", NEAR.vertices, NEAR.faces.flip(1), NEAR.cage)
    sim = finger()
    with pytest.raises(KeyError, match="there is no joint 'elbow'; the scene has root, tip"):
        designed_parameters(sim, {NEAR: NEAR.rest}, {"elbow": (NEAR, (LONG, 0, 0))})
    with pytest.raises(ValueError, match="the parent of joint 'tip' is 'near', not 'far'"):
        designed_parameters(sim, {FAR: FAR.rest}, {"tip": (FAR, (0.0, 0, 0))})
