"""Parameters baked into a scene: the same solver has them, and moves as before, to the last bit."""

import dataclasses
import warnings
from collections import OrderedDict

import numpy as np
import pytest
import torch
from cases import fields_of
from designs import DESIGNS, designed, varied

import warpbots as wb
from warpbots.meshing import ftetwild
from warpbots.numerics.parameters import parameters_of
from warpbots.scene import Field, Material, Scene, SceneError, Sheet, SoftBody
from warpbots.simulation import Simulation
from warpbots.solvers import MPM, ProjectiveDynamics
from warpbots.solvers.articulated.model import ArticulatedModel
from warpbots.solvers.mass_spring.model import MassSpringModel
from warpbots.solvers.mpm.model import MPMModel
from warpbots.solvers.projective.model import SKELETON, ProjectiveModel

designs = pytest.mark.parametrize("name", DESIGNS)


def again(sim: Simulation, scene, worlds: int = 1) -> Simulation:
    return Simulation(scene, sim.solver, sim.dt, sim.substeps, worlds=worlds)


def test_the_designs_have_every_parameter():
    """A new parameter of a solver must be in one of them, and so in all tests of this file."""

    def found(solver: str) -> set[str]:
        return set().union(*(designed(name).parameters() for name in DESIGNS if name.startswith(solver)))

    assert found("mpm") == set(parameters_of(MPMModel))
    assert found("springs") == set(parameters_of(MassSpringModel))
    assert found("projective") == {*parameters_of(ProjectiveModel), *SKELETON}
    assert found("articulated") == set(parameters_of(ArticulatedModel))


@designs
def test_parameters_and_motion_are_the_same_to_the_last_bit(name):
    """Of the second of two worlds, whose parameters differ from those of the first."""
    sim = designed(name, worlds=2)
    values = varied(sim)
    control = torch.linspace(-0.5, 0.5, 3 * sim.channels).reshape(3, sim.channels)
    scene = sim.scene_with(world=1, **values)
    same = again(sim, scene)
    for n, value in values.items():
        assert torch.equal(same.parameter(n)[0], value[1]), n
    before, after = sim.rollout(control, 3, **values).final, same.rollout(control, 3).final
    for n, value in fields_of(before).items():
        assert torch.equal(fields_of(after)[n][0], value[1]), n
    assert same.scene_with() == scene  # nothing is lost by baking again


@designs
def test_a_scene_begins_where_it_was_told_to(name):
    """The start is the state of the second of two worlds; the motion continues to the same bits."""
    sim = designed(name, worlds=2)
    control = torch.linspace(-0.5, 0.5, 2 * 2 * sim.channels).reshape(2, 2, sim.channels)
    moved = sim.rollout(control, 2).final
    scene = sim.scene_with(world=1, start=moved)
    same = again(sim, scene)
    before, after = sim.rollout(control, 2, moved).final, same.rollout(control[1:], 2).final
    for n, value in fields_of(before).items():
        assert torch.equal(fields_of(same.state())[n][0], fields_of(moved)[n][1]), n
        assert torch.equal(fields_of(after)[n][0], value[1]), n
    assert same.scene_with() == scene  # and stays there
    rested = same.scene_with(start=designed(name).state())
    assert not any(field.name.startswith("initial_") for field in rested.fields)


def test_who_cannot_begin_there_says_so():
    sim = designed("mpm")
    scene = sim.scene_with(start=sim.rollout(None, 1).final)
    names = [field.name for field in scene.fields]
    assert names == ["initial_position", "initial_velocity", "initial_velocity_gradient", "initial_deformation"]
    with pytest.raises(SceneError, match="initial_position.*another mesh, lattice or set of particles"):
        Simulation(scene, MPM(sim.solver.dx / 2), sim.dt)
    other = dataclasses.replace(sim.scene, fields=[Field("initial_q", [0.0], recorded=[0.0])])
    with pytest.raises(SceneError, match="initial_q.*a state of .*MPM has no 'q' for this scene, but position"):
        again(sim, other)
    with pytest.raises(ValueError, match="scene_with: start must be"):
        sim.scene_with(start={"position": 0.0})
    with pytest.raises(ValueError, match="scene_with: start is one of another simulation: field 'position'"):
        sim.scene_with(start=dataclasses.replace(sim.state(), position=torch.zeros(1, 3, 2)))


@designs
def test_records_can_stay_as_they_are(name):
    """All parameters are in fields then, and the simulation is the same to the last bit."""
    sim = designed(name)
    values = varied(sim)
    scene = sim.scene_with(records=False, **values)
    assert dataclasses.replace(scene, fields=()) == sim.scene
    same = again(sim, scene)
    assert all(torch.equal(same.parameter(n), value) for n, value in values.items())


def test_records_hold_what_they_can():
    """Records have short decimals, not those of single precision."""
    sim = designed("mpm")
    tip = sim.region("tip")
    E = torch.where(tip, 3e4, 1e4)
    scene = sim.scene_with(youngs_modulus=E, friction=[0.7, 0.0], gravity=[0.1, -1.6])
    (body,) = scene.bodies
    assert scene.fields == ()
    assert (body.material.youngs_modulus, body.region_materials["tip"].youngs_modulus) == (1e4, 3e4)
    assert (scene.obstacles[0].friction, scene.gravity) == (0.7, (0.1, -1.6))
    assert scene.obstacles[1] == sim.scene.obstacles[1]
    unchanged = dataclasses.replace(scene, bodies=sim.scene.bodies, obstacles=sim.scene.obstacles, gravity=None)
    assert unchanged == dataclasses.replace(sim.scene, gravity=None)


def test_joints_and_bodies_are_where_the_parameters_say():
    """A moved joint takes along all bodies below it, also in the records; readings agree."""
    sim = designed("articulated")
    elbow = sim.model.robot.body("arm")
    position = sim.parameter("joint_position")
    position[0, elbow] += torch.tensor([0.1, 0.0, 0.2])
    mass = sim.parameter("mass") * 2.0
    scene = sim.scene_with(joint_position=position, mass=mass)
    before, after = ({b.name: b for b in s.rigid} for s in (sim.scene, scene))
    for name, shift in {"stone": 0.0, "arm": 1.0, "tip": 1.0, "flap": 0.0}.items():
        moved = np.subtract(after[name].position, before[name].position)
        np.testing.assert_allclose(moved, shift * np.array([0.1, 0.0, 0.2]), atol=1e-12)
    assert after["tip"].inertia.mass == 0.6
    placed = sim.sense(sim.state(), joint_position=position, mass=mass).position[0]
    np.testing.assert_array_equal(again(sim, scene).sense(sim.state()).position[0], placed)


def linear(x):
    return 1e4 * (1.0 + x[:, 0] + 2.0 * x[:, -1])


@pytest.mark.parametrize("other", [lambda: MPM(1 / 12), lambda: ProjectiveDynamics(1 / 12)], ids=["mpm", "projective"])
def test_a_stiffness_is_carried_over_to_other_elements(other):
    """Linear interpolation reproduces a linear field, except in the outermost elements; the error is reported."""
    sim = Simulation(designed("own").scene, MPM(1 / 8), 1e-3, 50)
    scene = sim.scene_with(youngs_modulus=linear(sim.model.places("particle").center))
    with pytest.warns(UserWarning, match=r"Field 'youngs_modulus': .* differ by [0-9.]+ % \(root mean square\)"):
        carried = Simulation(scene, other(), 1e-3, 50)
    places = carried.model.places(carried.parameters()["youngs_modulus"].per)
    E, exact = carried.parameter("youngs_modulus")[0].numpy(), linear(places.center)
    lower, upper = (f(sim.model.matter.position, axis=0) for f in (np.min, np.max))
    inside = ((places.center > lower + 1e-9) & (places.center < upper - 1e-9)).all(axis=1)
    assert inside.any()
    np.testing.assert_allclose(E[inside], exact[inside], rtol=1e-5)
    assert np.abs(E / exact - 1.0).max() < 0.15  # the nearest value, where there is none around


def test_a_thickness_is_carried_over_in_the_plane_of_a_sheet():
    """Elements of a sheet have neighbours only in its plane, for any direction of the plane."""

    def cloth(count):
        flat = Sheet.rectangle((0.0, 0.0), (0.3, 0.2), 1e-3, count)
        turned = flat.vertices @ np.array([[0.6, 0.0, 0.8], [0.0, 1.0, 0.0], [-0.8, 0.0, 0.6]])
        sheet = Sheet(turned, flat.faces, 1e-3)
        return Scene([SoftBody("cloth", sheet, Material(1e5))], gravity=(0.0, 0.0, 0.0))

    def thick(x):
        return 1e-3 * (1.0 + x[:, 1] + x[:, 2])

    sim = Simulation(cloth((6, 4)), ProjectiveDynamics(0.1), 1e-2)
    fields = sim.scene_with(thickness=thick(sim.model.places("triangle").center)).fields
    with pytest.warns(UserWarning, match="Field 'thickness': .* differ by"):
        other = Simulation(dataclasses.replace(cloth((5, 7)), fields=fields), ProjectiveDynamics(0.1), 1e-2)
    found, exact = other.parameter("thickness")[0].numpy(), thick(other.model.places("triangle").center)
    assert (np.abs(found / exact - 1.0) < 1e-5).mean() > 0.5
    assert np.abs(found / exact - 1.0).max() < 0.05


def test_bodies_do_not_mix():
    """Where a soft body touches a stiff one, neither gets values between."""
    scene = designed("mpm").scene
    (body,) = scene.bodies
    lower, upper = (np.array(c) for c in body.shape.bounds)
    width = np.array([upper[0] - lower[0], 0.0])
    second = dataclasses.replace(
        body, name="second", shape=type(body.shape)(lower + width, upper + width), regions=None
    )
    scene = dataclasses.replace(scene, bodies=[body, second], actuators=(), obstacles=())
    sim = Simulation(scene, MPM(1 / 8), 1e-3, 50)
    first = torch.as_tensor(sim.model.matter.body == 0)
    E = torch.where(first, 1e4, 1e6) * torch.linspace(1.0, 1.1, len(first))
    with pytest.warns(UserWarning, match="differ by"):
        finer = Simulation(sim.scene_with(youngs_modulus=E), MPM(1 / 14), 1e-3, 50)
    E, first = finer.parameter("youngs_modulus")[0].numpy(), finer.model.matter.body == 0
    assert E[first].max() <= 1.1e4 * (1 + 1e-6)
    assert E[~first].min() >= 1e6 * (1 - 1e-6)


def field(name="youngs_modulus", n=3, dim=2, **changes):
    return Field(**{"name": name, "values": np.ones(n), "places": np.zeros((n, 1, dim))} | changes)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: field(places=None), "Field 'youngs_modulus': it needs either places, for elements, or recorded"),
        (lambda: field(values=np.ones(4)), r"with n >= 1 as many as values; got places of shape \(3, 1, 2\)"),
        (lambda: field(values=[1.0, np.nan, 1.0]), "values must be finite, got nan at index"),
        (lambda: field(places=None, recorded=np.ones(2)), r"must have one shape, got \(3,\) and \(2,\)"),
    ],
)
def test_fields_that_are_wrong_in_themselves(make, words):
    with pytest.raises(SceneError, match=words):
        make()


def test_fields_that_do_not_fit_the_scene():
    scene = designed("mpm").scene
    with pytest.raises(SceneError, match="Field 'E' is 3D in a 2D scene"):
        dataclasses.replace(scene, fields=[field("E", dim=3)])
    with pytest.raises(SceneError, match="2 fields are named 'E'"):
        dataclasses.replace(scene, fields=[field("E"), field("E")])
    cases = {
        "has no such parameter for this scene, but youngs_modulus, poissons_ratio": field("stiffness"),
        r"it was designed for another mesh of SoftBody 'block', from \[0.0, 0.0\] to \[0.0, 0.0\] m": field(),
        r"depends on the elements and cannot be carried over": field("volume"),
        r"it belongs to no elements, and the parameter of MPM to some \(one per particle\)": field(
            places=None, recorded=np.ones(3)
        ),
        "an element has a value of shape": field(values=np.ones((3, 2))),
    }
    for words, wrong in cases.items():
        with pytest.raises(SceneError, match=words):
            Simulation(dataclasses.replace(scene, fields=[wrong]), MPM(1 / 8), 1e-3)


def test_a_value_that_a_design_cannot_have_is_refused():
    sim = designed("mpm")
    places = sim.model.matter.position[:, None]
    scene = dataclasses.replace(sim.scene, fields=[Field("poissons_ratio", np.full(len(places), 0.7), places)])
    with pytest.raises(SceneError, match=r"parameter 'poissons_ratio' must be in \(-1, 0.5\)"):
        again(sim, scene)


def test_records_that_changed_since_they_were_baked():
    """The pose of a joint in a field is not used for a joint that was moved afterwards."""
    sim = designed("articulated")
    scene = sim.scene_with(joint_rotation=varied(sim)["joint_rotation"])
    assert "joint_rotation" in {f.name for f in scene.fields}
    joints = [dataclasses.replace(j, rotation=np.eye(3)[[1, 2, 0]]) for j in scene.joints]
    with pytest.raises(SceneError, match="it was baked into other records of this scene, which have changed since"):
        again(sim, dataclasses.replace(scene, joints=joints))


def test_worlds_that_are_not_there():
    with pytest.raises(ValueError, match="world must be from 0 to 0, got 1"):
        designed("mpm").scene_with(world=1)


def test_a_mesh_that_is_never_made_twice_goes_with_its_scene(tmp_path, monkeypatch):
    """On another machine, where fTetWild would make other tetrahedra, a ball keeps those of its design."""
    pytest.importorskip("pytetwild")
    ball = wb.SoftBody("ball", wb.shapes.Sphere((0.0, 0.0, 0.1), 0.05), wb.Material(2e4))
    scene, solver = wb.Scene([ball], obstacles=[wb.floor(0.045)]), wb.ProjectiveDynamics(0.025)
    sim = wb.Simulation(scene, solver, 5e-3)
    E = torch.linspace(1e4, 4e4, sim.parameter("youngs_modulus").shape[1], dtype=sim.parameter("youngs_modulus").dtype)
    final = sim.rollout(None, 3, youngs_modulus=E).final
    wb.usd.write(tmp_path / "design.usdc", sim.scene_with(youngs_modulus=E))
    wb.usd.write(tmp_path / "plain.usdc", sim.scene_with())
    monkeypatch.setattr(ftetwild, "_known", OrderedDict())
    monkeypatch.setenv("WARPBOTS_CACHE", str(tmp_path / "other"))
    with warnings.catch_warnings(action="error"):
        again = wb.Simulation(wb.usd.read(tmp_path / "design.usdc"), solver, 5e-3)
        plain = wb.Simulation(wb.usd.read(tmp_path / "plain.usdc"), solver, 5e-3)
    assert torch.equal(again.rollout(None, 3).final.position, final.position)
    assert torch.equal(plain.rollout(None, 3, youngs_modulus=E).final.position, final.position)
    assert not torch.equal(plain.rollout(None, 3).final.position, final.position)
