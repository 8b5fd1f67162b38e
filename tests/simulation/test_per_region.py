"""Parameters from values per region, for every solver: what elements of every kind say of where they are."""

import dataclasses

import numpy as np
import pytest
import torch
from cases import OWN, SOLVERS, block, busy, least

import warpbots as wb
from warpbots.scene import Box, HalfSpace, Material, SoftBody
from warpbots.scene.shapes import Sheet, Truss

PLACELESS = {"component", "axis", "obstacle", "oscillation", "cable", "world", "entry", "attachment point"}
"""What parameters of soft bodies count that has no place, the two points of an attachment being in two bodies."""


def two_blocks(**regions) -> wb.Scene:
    """Two cubes side by side, of which only the left one has regions."""
    left = SoftBody("left", Box((0, 0, 0), (0.25, 0.25, 0.25)), Material(1e4, 0.25), regions=regions)
    right = SoftBody("right", Box((0.25, 0, 0), (0.5, 0.25, 0.25)), Material(2e4, 0.25))
    return wb.Scene([left, right])


def simulation(scene: wb.Scene, solver) -> wb.Simulation:
    return wb.Simulation(scene, solver, 1e-4, 1, worlds=2, device="cpu")


@pytest.mark.parametrize("name", SOLVERS)
def test_every_parameter_has_values_per_region_or_no_place(name):
    """A region gets its value, the rest keeps the model's, in as many elements as the parameter has."""
    scene = busy(least(name), solver=name)
    sim = wb.Simulation(scene, SOLVERS[name](1 / 8), 1e-4, 1, worlds=2, device="cpu")
    placed = 0
    for parameter, spec in sim.parameters().items():
        own = sim.parameter(parameter)
        if spec.per in PLACELESS:
            assert sim.model.places(spec.per) is None
            continue
        places = sim.model.places(spec.per)
        assert len(places) == own.shape[1]
        assert np.nanmin(places.vertices) > 0.249 and np.nanmax(places.vertices) < 0.501
        region = "block" if spec.per == "surface" else "root"
        value = sim.per_region({region: 0.3 if spec.entry == "scalar" else [0.3] * own.shape[-1]}, parameter)
        inside = torch.as_tensor(places.members(scene, region))
        assert value.shape == own.shape and value.dtype == own.dtype
        assert (value[:, inside] == torch.tensor(0.3, dtype=own.dtype)).all() and inside.any()
        assert torch.equal(value[:, ~inside], own[:, ~inside])
        placed += 1
    assert placed >= 2


@pytest.mark.parametrize("name", [n for n in SOLVERS if n not in OWN and "springs" not in n])
def test_materials_of_regions_and_values_per_region_choose_the_same_elements(name):
    """The parameter of a scene with materials per region is that of a scene without, with values per region."""
    scene = block(least(name))
    body = scene.soft[0]
    regions = body.regions | {"tip": HalfSpace((0.44, *(0.0,) * (scene.dim - 1)), (-1.0, *(0.0,) * (scene.dim - 1)))}
    materials = {"root": dataclasses.replace(body.material, youngs_modulus=3e4),
                 "tip": dataclasses.replace(body.material, youngs_modulus=7e4)}  # fmt: skip
    plain = dataclasses.replace(scene, bodies=[dataclasses.replace(body, regions=regions)])
    mixed = dataclasses.replace(plain, bodies=[dataclasses.replace(plain.soft[0], region_materials=materials)])
    plain, mixed = simulation(plain, SOLVERS[name](1 / 16)), simulation(mixed, SOLVERS[name](1 / 16))
    E = plain.per_region({"root": 3e4, "tip": 7e4}, "youngs_modulus")
    assert torch.equal(E, mixed.parameter("youngs_modulus"))
    assert len(E.unique()) == 3


def test_of_regions_that_overlap_the_later_one_counts():
    half, all_of_it = Box((0, 0, 0), (0.125, 0.25, 0.25)), Box((0, 0, 0), (0.25, 0.25, 0.25))
    sim = simulation(two_blocks(half=half, whole=all_of_it), wb.ProjectiveDynamics(1 / 8))
    assert set(sim.per_region({"whole": 2.0, "half": 1.0}, "density").unique().tolist()) == {1.0, 2.0, 1000.0}
    assert set(sim.per_region({"half": 1.0, "whole": 2.0}, "density").unique().tolist()) == {2.0, 1000.0}


@pytest.mark.parametrize("solver", [wb.MPM(1 / 16), wb.MassSpring(1 / 8), wb.ProjectiveDynamics(1 / 8)])
def test_a_region_belongs_to_its_body(solver):
    """A region that reaches into a neighbour selects nothing of it; the neighbour itself has a name."""
    sim = simulation(two_blocks(everything=Box((-1, -1, -1), (2, 2, 2))), solver)
    parameter = "stiffness" if isinstance(solver, wb.MassSpring) else "youngs_modulus"
    per = sim.parameters()[parameter].per
    left, right = (torch.as_tensor(sim.model.places(per).body == k) for k in (0, 1))
    value = sim.per_region({"right": 6.0, "everything": 5.0}, parameter)
    assert (value[:, left] == 5.0).all() and (value[:, right] == 6.0).all() and bool((left | right).all())


def test_springs_at_an_attachment_keep_their_body():
    """Masses become one at an attachment; the springs that end there are parts of the body that they were parts of."""
    scene = dataclasses.replace(two_blocks(), attachments=[wb.Attachment("pin", "left", "right", [(0.25, 0.0, 0.0)])])
    free, pinned = (simulation(s, wb.MassSpring(1 / 8)) for s in (two_blocks(), scene))
    springs = [s.model.places("spring") for s in (free, pinned)]
    assert np.bincount(springs[0].body).tolist() == np.bincount(springs[1].body).tolist()
    x = springs[1].center[:, 0]
    assert set(springs[1].body[x > 0.26]) == {1} and set(springs[1].body[x < 0.24]) == {0}


def test_values_are_differentiable():
    """The gradient with respect to a value is the sum of those of its elements, in each world."""
    sim = simulation(two_blocks(low=Box((0, 0, 0), (0.25, 0.25, 0.125))), wb.ProjectiveDynamics(1 / 8))
    low = torch.tensor(3e4, requires_grad=True)
    right = torch.tensor([1e4, 2e4], requires_grad=True)
    E = sim.per_region({"low": low, "right": right}, "youngs_modulus")
    weight = torch.arange(float(E.numel())).view_as(E)
    (E * weight).sum().backward()
    members = [torch.as_tensor(sim.model.places("element").members(sim.scene, n)) for n in ("low", "right")]
    assert low.grad == weight[:, members[0]].sum()
    assert torch.equal(right.grad, weight[:, members[1]].sum(dim=1))
    assert torch.equal(E[:, members[1]], right.detach()[:, None].expand(2, int(members[1].sum())))


def test_elements_of_every_kind_of_projective_dynamics_have_a_place():
    """Tetrahedra, triangles and bars of one scene are elements of different numbers of vertices; held nodes are some."""
    left = {"low": HalfSpace((0, 0, 0.06), (0, 0, 1))}
    solid = SoftBody("solid", Box((0, 0, 0), (0.25, 0.25, 0.25)), Material(1e4, 0.3), regions=left)
    cloth = SoftBody("cloth", Sheet.rectangle((1, 0), (2, 1), 1e-3, (2, 2)), Material(1e5, 0.3), regions={
        "corner": Box((1, 0, -1), (1.5, 0.5, 1))})  # fmt: skip
    bars = SoftBody("bars", Truss([[0, 0, 2], [1, 0, 2], [0, 1, 2]], [[0, 1], [1, 2]], 0.01), Material(1e6, 0.3))
    sim = simulation(wb.Scene([solid, cloth, bars], constraints=[wb.Constraint("low")]),
                     wb.ProjectiveDynamics(1 / 8))  # fmt: skip
    counts = {"element": 48 + 8 + 2, "triangle": 8, "hinge": 8, "bar": 2, "fixed node": 9}
    for per, count in counts.items():
        assert len(sim.model.places(per)) == count, per
    center = sim.model.places("element").center
    np.testing.assert_allclose(center[-2:], [[0.5, 0, 2], [0.5, 0.5, 2]])
    assert np.isfinite(center).all()
    assert (sim.per_region({"corner": 2e-3}, "thickness") == 2e-3).sum() == 2 * 2
    assert (sim.per_region({"bars": 1.0, "cloth": 2.0}, "density") == 1.0).sum() == 2 * 2
    moved = sim.per_region({"low": torch.tensor([0.0, 0.0, 0.5])}, "anchor")
    assert torch.equal(moved, torch.tensor([0.0, 0.0, 0.5]).expand(2, 9, 3))
    with pytest.raises(ValueError, match=r"'low' selects none of the 8 values of 'bending', one per hinge"):
        sim.per_region({"low": 1.0}, "bending")


def finger() -> wb.Scene:
    """Two links: a base that can slide and a tip on a hinge, with a motor."""
    base = wb.RigidBody("base", Box((0, 0, 0), (0.1, 0.1, 0.1)), position=(0.0, 0.0, 1.0))
    tip = wb.RigidBody("tip", Box((0, 0, 0), (0.1, 0.1, 0.3)), position=(0.0, 0.0, 1.1),
                       rotation=[[0, -1, 0], [1, 0, 0], [0, 0, 1]], points=2)  # fmt: skip
    slide = wb.Joint("slide", "planar", None, "base", position=(0.0, 0.0, 1.0))
    hinge = wb.Joint("hinge", "revolute", "base", "tip", position=(0.05, 0.0, 1.1), axis=(0.0, 1.0, 0.0))
    ground = wb.Contact("tip", "floor", 1e6)
    return wb.Scene([tip, base], [wb.actuators.Torque("motor", "hinge", 1.0)], [wb.floor(friction=0.0)], joints=[slide, hinge],
                    contacts=[ground])  # fmt: skip


def test_parts_of_robots_have_places():
    """Bodies, joints, velocities, motors and points are those of a body, wherever it stands in the scene."""
    sim = wb.Simulation(finger(), wb.Articulated(), 1e-3, device="cpu")
    assert sim.per_region({"base": 7.0}, "mass").tolist() == [[sim.parameter("mass")[0, 0].item(), 7.0]]
    assert sim.per_region({"tip": 0.1}, "mass")[0, 0].item() == 0.1  # in double precision, which torch would round
    damping = sim.per_region({"tip": 0.5, "base": torch.tensor(0.25, dtype=torch.float64)}, "joint_damping")
    robot = sim.model.robot
    assert damping[0, robot.velocities["hinge"]].tolist() == [0.5]
    assert damping[0, robot.velocities["slide"]].tolist() == [0.25, 0.25]
    np.testing.assert_allclose(sim.model.places("motor").vertices, [[[0.05, 0.0, 1.1]]])
    points = sim.model.places("point")
    assert set(points.body.tolist()) == {0}  # of the tip alone, which a quarter turn about z moves to negative x
    assert (points.center.min(axis=0) > [-0.1001, -1e-9, 1.0999]).all()
    assert (points.center.max(axis=0) < [1e-9, 0.1001, 1.4001]).all() and points.center[:, 0].min() < -0.01
    assert sim.model.places("contact") is sim.model.places("world") is None


def test_bones_are_bodies_of_the_whole_scene():
    """The parts of a skeleton have the numbers that their bodies have in the scene, behind the soft body."""
    soft = SoftBody("flesh", Box((0, 0, 0), (0.25, 0.25, 0.5)), Material(1e4, 0.3))
    bone = wb.RigidBody("bone", Box((0.0, 0.0, 0), (0.25, 0.25, 0.25)), density=2e3)
    sim = wb.Simulation(wb.Scene([soft, bone]), wb.ProjectiveDynamics(1 / 8, collisions=True), 1e-3, device="cpu")
    assert sim.model.places("body").body.tolist() == [1]
    assert sim.per_region({"bone": 3.0}, "mass").tolist() == [[3.0]]
    assert sim.per_region({"flesh": 0.25}, "body_friction")[0, 0] == 0.25


def test_faults_are_one_sentence():
    sim = simulation(two_blocks(low=Box((0, 0, 0), (0.25, 0.25, 0.125))), wb.ProjectiveDynamics(1 / 8))
    with pytest.raises(ValueError, match=r"'gravity' is one value per component, which has no place .*shape \(2, 3\)"):
        sim.per_region({"low": 1.0}, "gravity")
    with pytest.raises(
        KeyError, match=r"no region or body 'leg'; the scene has the regions low and the bodies left, r"
    ):
        sim.per_region({"leg": 1.0}, "youngs_modulus")
    with pytest.raises(KeyError, match=r"no parameter 'stiffness'; the model has youngs_modulus, "):
        sim.per_region({"low": 1.0}, "stiffness")
    with pytest.raises(ValueError, match=r"the value of 'low' must have shape \(2,\) or one that broadcasts"):
        sim.per_region({"low": torch.zeros(3)}, "youngs_modulus")
