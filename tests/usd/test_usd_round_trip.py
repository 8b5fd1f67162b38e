"""A scene that is written and read back is the same, to the last bit."""

import dataclasses
import math

import numpy as np
import pytest
from pxr import Usd
from usd_cases import ODD, SOLIDS, STATIC, differences, full_scene, simple_scene

from warpbots import usd
from warpbots.scene import (
    CONDITIONS,
    Box,
    Cable,
    CamClay,
    Cavity,
    DruckerPrager,
    Fibre,
    FibreReinforcement,
    Fluid,
    Material,
    MaxwellBranch,
    Muscle,
    Obstacle,
    PneumaticCell,
    Pressure,
    SceneError,
    SoftBody,
    Task,
    VonMises,
    walls,
)
from warpbots.usd.stage.exact_fields import SHAPES

PLASTIC = [VonMises(1234.5), VonMises(0.1, 7.7), DruckerPrager(33.3), CamClay(1234.5), CamClay(0.3, 1.1, 0.7, 7.7)]

EVERYWHERE = [(dim, name) for dim in (2, 3) for name in {**SOLIDS[dim], **STATIC[dim]}]


def there_and_back(scene, path):
    usd.write(path, scene)
    back = usd.read(path)
    assert not differences(back, scene)
    assert back == scene
    return back


@pytest.mark.parametrize("extension", ["usda", "usdc", "usd"])
@pytest.mark.parametrize("dim", [2, 3])
def test_everything_at_once(dim, extension, tmp_path):
    back = there_and_back(full_scene(dim), tmp_path / f"full.{extension}")
    assert back.source == str(tmp_path / f"full.{extension}")
    assert list(back.bodies[0].regions) == ["left leg", "all", "up"]  # in this order, too


def test_the_cases_have_every_shape():
    def kinds(shape):
        inner = getattr(shape, "shapes", None) or ([shape.shape] if hasattr(shape, "shape") else [])
        return {type(shape).__name__}.union(*map(kinds, inner))

    found = set().union(*(kinds(s) for cases in (SOLIDS, STATIC) for dim in cases for s in cases[dim].values()))
    assert found == set(SHAPES)


@pytest.mark.parametrize(("dim", "name"), EVERYWHERE, ids=[f"{n}-{d}d" for d, n in EVERYWHERE])
def test_each_shape(dim, name, tmp_path):
    shape = {**SOLIDS[dim], **STATIC[dim]}[name]
    scene = simple_scene(dim, obstacles=[Obstacle(shape, name=name)])
    body = dataclasses.replace(
        scene.bodies[0], regions={"all": shape}, shape=SOLIDS[dim].get(name, scene.bodies[0].shape)
    )
    there_and_back(dataclasses.replace(scene, bodies=[body]), tmp_path / "shape.usda")


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("law", ["neo_hookean", "fixed_corotated", "linear", "st_venant_kirchhoff", "my own law"])
def test_each_law(law, dim, tmp_path):
    body = simple_scene(dim).bodies[0]
    material = Material(1.0 / 3.0, -0.9, 1e-7, law, incompressibility=6)
    there_and_back(simple_scene(dim, bodies=[dataclasses.replace(body, material=material)]), tmp_path / "law.usda")


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_each_condition(condition, dim, tmp_path):
    obstacles = walls((-1.0,) * dim, (1.0,) * dim, condition, 0.3)
    there_and_back(simple_scene(dim, obstacles=obstacles), tmp_path / "condition.usda")


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize(
    "kind",
    ["pressure", "muscle", "fibre", "pneumatic cell", "cavity", "cavity with gas", "cable", "cable with rest length"],
)
def test_each_actuator(kind, dim, tmp_path):
    route = tuple(map(tuple, np.arange(3 * dim).reshape(3, dim) / 7.0))
    actuator = {
        "pressure": Pressure("a b", "all", 1e5 / 3),
        "muscle": Muscle("a b", "all", (1,) * dim, 1e5 / 3),
        "fibre": Fibre("a b", "all", (1,) * dim, 1e5 / 3, 1 / 3),
        "pneumatic cell": PneumaticCell("a b", "all", 1e5 / 3, 1 / 3),
        "cavity": Cavity("a b", "all", 1e4 / 3),
        "cavity with gas": Cavity("a b", "all", max_gas_ratio=4 / 3, ambient_pressure=1e5 / 3),
        "cable": Cable("a b", route, 1e3 / 7),
        "cable with rest length": Cable("a b", route, 1e3 / 7, 1 / 7),
    }[kind]
    there_and_back(simple_scene(dim, actuators=[actuator]), tmp_path / "actuator.usda")


def test_channels_keep_their_order(tmp_path):
    names = ["z", "a", "m", "b"]
    scene = simple_scene(actuators=[Pressure(name, "all", 1.0) for name in names])
    usd.write(tmp_path / "first.usda", scene)
    back = usd.read(tmp_path / "first.usda")
    turned = dataclasses.replace(back, actuators=back.actuators[::-1])
    usd.write(tmp_path / "second.usda", turned)
    assert [a.name for a in usd.read(tmp_path / "second.usda").actuators] == names[::-1]


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize(
    "changes",
    [
        {"gravity": (0.0, 0.0, 0.0)},
        {"gravity": (0.1, 0.2, 0.3)},
        {"gravity": (0.0, 0.0, 9.81)},
        {"domain": ((-1.0, -2.0, -3.0), (1 / 3, 2 / 3, 0.7))},
        {"name": "robot"},
        {"name": "World"},
        {"name": "3 legs/é"},
        {"name": ""},
        {"task": Task(0.01, 0.02, 3, 4, (1.0, 0.0, 0.0))},
        {"task": Task(1 / 3, 1 / 7, 9, 10, (1 / 3, 2 / 3, 0.1), 11, clock=0.4)},
        {"task": Task(None, 0.02, 3, 4, (1.0, 0.0, 0.0))},
        {"fluid": Fluid(1.2)},
        {"fluid": Fluid(1e3 / 3, (1 / 3, 0.2, 0.1), ((-math.pi / 2, 0.1), (0.3, 1 / 3), (math.pi / 2, 0.0)), 1 / 7)},
        {"actuators": (), "obstacles": ()},
    ],
    ids=str,
)
def test_each_setting(changes, dim, tmp_path):
    if dim == 2:
        changes = {k: cut(v) for k, v in changes.items()}
    there_and_back(simple_scene(dim, **changes), tmp_path / "setting.usda")


def cut(value):
    """A three-dimensional setting as a two-dimensional one."""
    if isinstance(value, Task):
        return dataclasses.replace(value, direction=value.direction[:2])
    if isinstance(value, Fluid):
        return dataclasses.replace(value, velocity=value.velocity and value.velocity[:2])
    if isinstance(value, tuple) and value:
        return tuple(v[:2] for v in value) if isinstance(value[0], tuple) else value[1:]
    return value


@pytest.mark.parametrize("names", [["leg", "Leg", "leg 2", "leg_2", "2", "", "a/b", "a.b", "Bein größer"]])
def test_names_that_are_no_identifiers(names, tmp_path):
    body = simple_scene().bodies[0]
    bodies = [
        dataclasses.replace(body, name=name, regions=dict.fromkeys((*names, "all"), body.shape)) for name in names
    ]
    obstacles = [Obstacle(Box((0, 0, 0), (1, 1, 1)), name=name) for name in names]
    actuators = [Pressure(name, "all", 1.0) for name in names]
    there_and_back(simple_scene(bodies=bodies, obstacles=obstacles, actuators=actuators), tmp_path / "names.usda")


def test_particles_are_marked_for_newton(tmp_path):
    body = simple_scene().bodies[0]
    usd.write(tmp_path / "a.usda", simple_scene(bodies=[dataclasses.replace(body, shape=SOLIDS[3]["points"])]))
    stage = Usd.Stage.Open(str(tmp_path / "a.usda"))
    points = stage.GetPrimAtPath("/World/Bodies/block/Shape")
    assert points.GetPrimTypeInfo().GetAppliedAPISchemas() == ["NewtonPointsDeformableSimAPI"]


def test_plain_numbers_need_no_twins(tmp_path):
    """Numbers with short decimals are in the file once, in standard attributes."""
    usd.write(tmp_path / "plain.usda", simple_scene(obstacles=walls((0, 0, 0), (1, 1, 1), friction=0.3)))
    assert "warpbots:exact" not in (tmp_path / "plain.usda").read_text()


def test_writing_twice_gives_the_same_bytes(tmp_path):
    scene = full_scene(3)
    for name in ("one", "two"):
        usd.write(tmp_path / f"{name}.usda", scene)
    assert (tmp_path / "one.usda").read_bytes() == (tmp_path / "two.usda").read_bytes()


def test_a_body_with_many_regions_of_other_materials(tmp_path):
    body = simple_scene().bodies[0]
    regions = {f"r{k}": Box((0, 0, k), (1, 1, k + 1)) for k in range(5)}
    materials = {name: dataclasses.replace(ODD, density=1.0 + k) for k, name in enumerate(regions)}
    body = SoftBody("b", body.shape, ODD, regions=regions, region_materials=materials)
    there_and_back(simple_scene(bodies=[body], actuators=()), tmp_path / "regions.usda")


def test_what_is_written_says_its_units_and_axes(tmp_path):
    usd.write(tmp_path / "scene.usda", simple_scene())
    stage = Usd.Stage.Open(str(tmp_path / "scene.usda"))
    said = {k: stage.GetMetadata(k) for k in ("upAxis", "metersPerUnit", "kilogramsPerUnit", "timeCodesPerSecond")}
    assert said == {"upAxis": "Z", "metersPerUnit": 1.0, "kilogramsPerUnit": 1.0, "timeCodesPerSecond": 60.0}
    world = stage.GetDefaultPrim()
    assert (world.GetName(), world.GetTypeName(), Usd.ModelAPI(world).GetKind()) == ("World", "Xform", "component")
    assert stage.GetRootLayer().customLayerData["creator"].startswith("warpbots ")


@pytest.mark.parametrize("plasticity", PLASTIC, ids=repr)
def test_plasticity(plasticity, tmp_path):
    """In units of the stage, of a body and of its regions; a material that is written over loses its old one."""
    scene = simple_scene(2)
    material = dataclasses.replace(scene.bodies[0].material, law="hencky", incompressibility=0)
    plastic = dataclasses.replace(material, plasticity=plasticity)
    body = dataclasses.replace(scene.bodies[0], material=plastic, region_materials={})
    there_and_back(dataclasses.replace(scene, bodies=[body]), tmp_path / "plastic.usda")
    there_and_back(
        dataclasses.replace(scene, bodies=[dataclasses.replace(body, material=material)]), tmp_path / "plastic.usda"
    )


@pytest.mark.parametrize("dim", [2, 3])
def test_fibres_and_branches(dim, tmp_path):
    """In units of the stage, with directions in the frame of the body; a material that is written over loses them."""
    scene = simple_scene(dim)
    fibres = [FibreReinforcement((0.3, 0.2, 0.7)[3 - dim :], 1234.5), FibreReinforcement((1, 2, 3)[:dim], 0.1)]
    material = dataclasses.replace(scene.bodies[0].material, fibres=fibres, branches=[MaxwellBranch(0.3, 1.7)])
    body = dataclasses.replace(scene.bodies[0], material=material, region_materials={})
    there_and_back(dataclasses.replace(scene, bodies=[body]), tmp_path / "composite.usda")
    plain = dataclasses.replace(body, material=scene.bodies[0].material)
    there_and_back(dataclasses.replace(scene, bodies=[plain]), tmp_path / "composite.usda")
    usd.write(tmp_path / "composite.usda", dataclasses.replace(scene, bodies=[body]))
    text = (tmp_path / "composite.usda").read_text()
    assert "warpbots:relaxationTimes = [1.7]" in text
    (tmp_path / "composite.usda").write_text(text.replace("relaxationTimes = [1.7]", "relaxationTimes = [1.7, 2]"))
    words = "arrays of its branches must have the same number of entries, got warpbots:branchModuli 1, .*Times 2"
    with pytest.raises(SceneError, match=words):
        usd.read(tmp_path / "composite.usda")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"VonMises"', '"Tresca"', "warpbots:plasticity must be one of VonMises, DruckerPrager, CamClay, got 'Tresca'"),
        ("double warpbots:yieldStress = 1234.5", "double other = 1.0", "warpbots:yieldStress is missing"),
        ("warpbots:yieldStress = 1234.5", "warpbots:yieldStress = -1", "yield_stress must be positive .* got -1"),
    ],
)
def test_plasticity_that_is_no_such(old, new, words, tmp_path):
    scene = simple_scene(2)
    material = dataclasses.replace(scene.bodies[0].material, law="hencky", incompressibility=0, plasticity=PLASTIC[0])
    body = dataclasses.replace(scene.bodies[0], material=material, region_materials={})
    usd.write(tmp_path / "plastic.usda", dataclasses.replace(scene, bodies=[body]))
    text = (tmp_path / "plastic.usda").read_text()
    assert old in text
    (tmp_path / "plastic.usda").write_text(text.replace(old, new))
    with pytest.raises(SceneError, match=words):
        usd.read(tmp_path / "plastic.usda")
