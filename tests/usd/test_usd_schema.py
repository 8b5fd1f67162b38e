"""The table of attributes is complete, and attributes in a file mean what the table says."""

import dataclasses
import math

import numpy as np
import pytest
from pxr import Gf, Sdf, Usd, UsdGeom
from usd_cases import ODD, SOLIDS, STATIC, blob, full_scene, moving_scene, octahedron, rigid_scene, simple_scene

from warpbots import usd
from warpbots.materials import CONSTANTS
from warpbots.scene import (
    JOINTS,
    Box,
    CamClay,
    DruckerPrager,
    ElementaryJoint,
    FibreReinforcement,
    Fluid,
    Inertia,
    Joint,
    JointKind,
    Material,
    MaxwellBranch,
    Obstacle,
    Points,
    Posed,
    PrescribedMotion,
    RigidBody,
    Scene,
    SceneError,
    SoftBody,
    Task,
    VonMises,
)
from warpbots.usd.geometry import gprim_reader
from warpbots.usd.stage.applied_schemas import GEOMETRY_TYPES, PLASTICITY
from warpbots.usd.stage.exact_fields import EXACT, JOINT_FIELDS, RIGID_FIELDS, SHAPE_FIELDS, SHAPES
from warpbots.usd.stage.prim_roles import part_classes
from warpbots.usd.stage.schema import TABLE

LINKS = {"warpbots:regions"}
AXES = ("linear", "angular", "transX", "transY", "transZ", "rotX", "rotY", "rotZ")


OTHERS = ("xformOp:", "inputs:", "outputs:")  # the last two are defined by the kinds of shaders


def ours(prim):
    """Names of the authored properties of `prim` that the released schemas do not have."""
    known = set(prim.GetPrimDefinition().GetPropertyNames())
    return {name for name in prim.GetAuthoredPropertyNames() if name not in known and not name.startswith(OTHERS)}


@pytest.fixture(scope="module", params=[2, 3])
def written(request, tmp_path_factory):
    folder, stages = tmp_path_factory.mktemp("schema"), []
    cloth = SoftBody("cloth", SOLIDS[3]["odd sheet"], ODD)
    scenes = {
        "full": full_scene(request.param),
        "moving in the other dimension": moving_scene(5 - request.param),
        "rigid": rigid_scene(),
        "cloth": simple_scene(bodies=[cloth], actuators=()),
    }
    for plasticity in (VonMises(1e3, 2e3), DruckerPrager(30.0), CamClay(1e3)):
        flesh = dataclasses.replace(ODD, law="hencky", incompressibility=0, plasticity=plasticity)
        body = SoftBody("body", SOLIDS[3]["odd box"], flesh)
        scenes[type(plasticity).__name__] = simple_scene(bodies=[body], actuators=())
    composite = dataclasses.replace(
        ODD, fibres=[FibreReinforcement((1, 0, 0), 1e3)], branches=[MaxwellBranch(1e3, 1.0)]
    )
    scenes["composite"] = simple_scene(bodies=[SoftBody("body", SOLIDS[3]["odd box"], composite)], actuators=())
    rubber = dataclasses.replace(ODD, law="gent", constants={"locking_invariant": 100.0 / 3})
    scenes["rubber"] = simple_scene(bodies=[SoftBody("body", SOLIDS[3]["odd box"], rubber)], actuators=())
    for name, scene in scenes.items():
        usd.write(folder / f"{name}.usda", scene)
        stages.append(Usd.Stage.Open(str(folder / f"{name}.usda")))
    with pytest.MonkeyPatch.context() as patch:
        turns = [ElementaryJoint("revolute", axis) for axis in "zxz"]
        patch.setitem(JOINTS, "wrist", JointKind(tuple(turns)))
        joints = [Joint("wrist", "wrist", None, "hand")]
        hand = Scene([RigidBody("hand", Box((0, 0, 0), (1, 1, 1)))], joints=joints, contacts=())
        usd.write(folder / "wrist.usda", hand)
    return [*stages, Usd.Stage.Open(str(folder / "wrist.usda"))]


def written_names(row):
    """Names of the attributes of a row: one for each axis of a joint or constant of a law, if the row has them."""
    constants = {constant.name for of_law in CONSTANTS.values() for constant in of_law}
    return {row.name.format(axis=axis, constant=constant) for axis in AXES for constant in constants}


def test_every_geometric_type_has_a_reader():
    """Every type that is geometry in the inventory can be read as a shape, and no other type."""
    assert set(GEOMETRY_TYPES) == set(gprim_reader._READ)


def test_every_attribute_that_is_written_is_in_the_table(written):
    names = set().union(*map(written_names, TABLE))
    names |= {EXACT + name for name in names} | {EXACT + "gravity"} | LINKS
    names |= {EXACT + field for field in (*RIGID_FIELDS, *JOINT_FIELDS)}
    for fields in SHAPE_FIELDS.values():
        names |= {EXACT + field + end for field in fields for end in ("", ":size")}
    names |= {"material:binding", "material:binding:physics", "primvars:displayColor:indices"}
    for prim in (prim for stage in written for prim in stage.TraverseAll()):
        assert ours(prim) <= names, prim.GetPath()


def test_every_row_of_the_table_is_written_with_its_type(written):
    found = {}
    for prim in (prim for stage in written for prim in stage.TraverseAll()):
        for attribute in prim.GetAuthoredAttributes():
            found.setdefault(attribute.GetName(), attribute)
    for row in TABLE:
        if row.sets == "order":
            continue  # only where the file does not have it anyway
        names = sorted(written_names(row) & found.keys())
        assert bool(names) == row.written, row
        for name in names:
            assert str(found[name].GetTypeName()) == row.type, row
            assert not found[name].IsCustom(), row


def test_defaults_are_those_of_the_scene():
    for row in TABLE:
        cls, _, field = row.sets.partition(".")
        if cls in ("Material", "SoftBody", "Obstacle", "Task", "Fluid", "VonMises") and row.default not in (..., None):
            classes = {"Material": ODD, "Obstacle": Obstacle, "Task": Task, "Fluid": Fluid, "VonMises": VonMises}
            classes["SoftBody"] = simple_scene().bodies[0]
            fields = {f.name: f.default for f in dataclasses.fields(classes[cls])}
            assert fields[field] == row.default, row


def test_the_table_has_every_field_of_every_shape():
    for name, cls in SHAPES.items():
        assert set(SHAPE_FIELDS[cls]) == {f.name for f in dataclasses.fields(cls)} - {"shape", "shapes"}, name


def part_classes_of_warpbots() -> list[type]:
    """Actuators, constraints and other parts that warpbots defines, without those of tests."""
    return [cls for cls in part_classes().values() if cls.__module__.startswith("warpbots.")]


def test_every_field_of_a_scene_is_read_and_written():
    """A new field of the scene is either in the table or stored in another way: names, prims below, bound materials."""
    otherwise = {
        "Scene": {
            "bodies",
            "actuators",
            "obstacles",
            "constraints",
            "loads",
            "attachments",
            "joints",
            "contacts",
            "fields",
            "gravity",
            "task",
            "fluid",
            "name",
            "source",
        },
        "Material": {"fibres", "branches"},
        "SoftBody": {"name", "shape", "material", "regions", "region_materials"},
        "Obstacle": {"name", "shape", "motion"},
        "Constraint": {"name", "region", "motion"},
        "RigidBody": {"name", "shape", "inertia", *RIGID_FIELDS}
        - {"center", "moments", "cloud:positions", "cloud:areas"},
        "Inertia": {"moments"},
        "Joint": {"name", "kind", "parent", "child", *JOINT_FIELDS},
    }
    matter, parts = (Material, *PLASTICITY.values(), FibreReinforcement, MaxwellBranch), part_classes_of_warpbots()
    for cls in (
        Scene,
        Task,
        Fluid,
        *matter,
        SoftBody,
        Obstacle,
        RigidBody,
        Inertia,
        Joint,
        PrescribedMotion,
        *parts,
    ):
        name = cls.__name__
        table = {row.sets.removeprefix(f"{name}.") for row in TABLE if row.sets.startswith(f"{name}.")}
        table -= {"gravity direction", "gravity magnitude", "diagonal", "axes"}
        fields = {f.name for f in dataclasses.fields(cls)}
        besides = otherwise.get(name, fields & {"name", "region"} if cls in parts else set())
        assert table | besides == fields, name


def edit(path, prim_path, **values):
    """Set attributes and save, as another program does."""
    stage = Usd.Stage.Open(str(path))
    for name, value in values.items():
        assert stage.GetPrimAtPath(prim_path).GetAttribute(name).Set(value)
    stage.Save()


def material_of(path, **values):
    edit(path, "/World/Bodies/block/PhysicsMaterial", **values)
    return usd.read(path).bodies[0].material


def test_the_standard_value_counts_when_another_program_changes_it(tmp_path):
    body = dataclasses.replace(simple_scene().bodies[0], material=ODD)
    path = tmp_path / "a.usda"
    usd.write(path, simple_scene(bodies=[body]))
    assert usd.read(path).bodies[0].material == ODD
    changed = material_of(path, **{"newton:mpm:youngsModulus": 7e4, "physics:density": 0.3})
    assert changed == dataclasses.replace(ODD, youngs_modulus=7e4, density=0.3)


def test_single_precision_is_read_as_the_decimal_it_prints_as(tmp_path):
    path = tmp_path / "a.usda"
    usd.write(path, simple_scene())
    material = material_of(
        path, **{"newton:mpm:poissonsRatio": np.float32(0.45).item(), "newton:mpm:youngsModulus": 1.1e6}
    )
    assert (material.poissons_ratio, material.youngs_modulus) == (0.45, 1.1e6)


def shape_of(path):
    return usd.read(path).obstacles[0].shape


def moved_by_another_program(shape, tmp_path, move=(1.0, 2.0, 3.0), scale=None):
    """The shape after another program has moved its obstacle and everything in it."""
    path = tmp_path / "shape.usda"
    usd.write(path, simple_scene(3 if len(shape.bounds[0]) == 3 else 2, obstacles=[Obstacle(shape)]))
    stage = Usd.Stage.Open(str(path))
    obstacle = UsdGeom.Xformable(stage.GetPrimAtPath("/World/Obstacles/floor"))
    obstacle.AddTranslateOp().Set(Gf.Vec3d(*move))
    if scale:
        obstacle.AddScaleOp().Set(Gf.Vec3f(*scale))
    stage.Save()
    return shape_of(path)


EVERY_3D = {**SOLIDS[3], **STATIC[3]}


# Posed(Heightfield(...)).bounds multiplies 0 by infinity
@pytest.mark.filterwarnings("ignore:invalid value encountered in matmul")
@pytest.mark.parametrize("name", EVERY_3D)
def test_a_shape_that_is_moved_is_moved(name, tmp_path):
    moved = moved_by_another_program(EVERY_3D[name], tmp_path)
    expected = np.array(EVERY_3D[name].bounds) + [1.0, 2.0, 3.0]
    if name == "terrain":
        assert moved == Posed(EVERY_3D[name], (1.0, 2.0, 3.0), np.eye(3))
        return
    np.testing.assert_allclose(moved.bounds, expected, rtol=1e-6, atol=1e-6)


def test_a_silhouette_that_is_moved_is_moved_and_keeps_its_pixels(tmp_path):
    moved = moved_by_another_program(blob(), tmp_path, (1.0, 0.0, 3.0))
    assert moved == Posed(blob(), (1.0, 3.0), ((1, 0), (0, 1)))


@pytest.mark.parametrize("name", ["box", "sphere", "capsule", "cylinder", "mesh", "points", "posed", "union"])
def test_a_shape_that_is_scaled_is_scaled(name, tmp_path):
    scaled = moved_by_another_program(EVERY_3D[name], tmp_path, (0, 0, 0), (2, 2, 2))
    np.testing.assert_allclose(scaled.bounds, 2 * np.array(EVERY_3D[name].bounds), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["terrain", "distance grid"])
def test_what_only_numbers_say_cannot_be_scaled_from_outside(name, tmp_path):
    body = dataclasses.replace(simple_scene().bodies[0], shape=octahedron(), regions={"all": EVERY_3D[name]})
    usd.write(tmp_path / "a.usda", simple_scene(bodies=[body]))
    stage = Usd.Stage.Open(str(tmp_path / "a.usda"))
    UsdGeom.Xformable(stage.GetPrimAtPath("/World/Bodies/block/Regions")).AddScaleOp().Set((2, 2, 2))
    stage.Save()
    with pytest.raises(SceneError, match="another program has scaled or reshaped it"):
        usd.read(tmp_path / "a.usda")


def test_points_that_are_moved_one_by_one(tmp_path):
    path = tmp_path / "a.usda"
    usd.write(path, simple_scene(obstacles=[Obstacle(Points(np.full((2, 3), 1 / 3), np.ones(2)))]))
    edit(path, "/World/Obstacles/floor/Shape", points=[(1, 2, 3), (4, 5, 6)])
    assert shape_of(path).positions.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_a_box_that_is_resized(tmp_path):
    path = tmp_path / "a.usda"
    usd.write(path, simple_scene(obstacles=[Obstacle(SOLIDS[3]["odd box"])]))
    edit(path, "/World/Obstacles/floor/Shape", size=4.0)
    lower, upper = (np.array(c) for c in SOLIDS[3]["odd box"].bounds)
    np.testing.assert_allclose(shape_of(path).bounds, [1.5 * lower - 0.5 * upper, 1.5 * upper - 0.5 * lower])


def test_a_box_with_one_odd_corner_that_is_moved_beyond_it(tmp_path):
    """Otherwise the odd number alone would stay behind, and the box would be turned inside out."""
    odd = Box((0.0, 0.0, 0.0), (1.0 / 3.0, 1.0, 1.0))
    moved = moved_by_another_program(odd, tmp_path, (9.0, 9.0, 9.0))
    np.testing.assert_allclose(moved.bounds, [[9, 9, 9], [9 + 1 / 3, 10, 10]])


def test_gravity_of_another_program(tmp_path):
    path = tmp_path / "a.usda"
    usd.write(path, simple_scene(gravity=(0.1, 0.2, 0.3)))
    edit(path, "/World/PhysicsScene", **{"physics:gravityMagnitude": 1.62, "physics:gravityDirection": (0, 0, 0)})
    assert usd.read(path).gravity == (0.0, 0.0, -1.62)  # no direction is down
    edit(path, "/World/PhysicsScene", **{"physics:gravityMagnitude": -math.inf})
    assert usd.read(path).gravity == (0.0, 0.0, -9.81)
    stage = Usd.Stage.Open(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, 0.01)
    stage.Save()
    assert usd.read(path).gravity == (0.0, 0.0, -9.81)  # that of the earth, in whatever unit
    stage.GetPrimAtPath("/World/PhysicsScene").AddAppliedSchema("NewtonSceneAPI")
    enabled = Sdf.ValueTypeNames.Bool
    stage.GetPrimAtPath("/World/PhysicsScene").CreateAttribute("newton:gravityEnabled", enabled).Set(False)
    stage.Save()
    assert usd.read(path).gravity == (0.0, 0.0, 0.0)


def test_a_region_of_a_box_by_hand_has_no_numbers_twice(tmp_path):
    """The common scene of boxes stays a text that one can edit."""
    regions = {f"r{k}": Box((round(0.1 * k, 3), 0.1, 0.2), (round(0.1 * k + 0.07, 3), 0.3, 0.7)) for k in range(99)}
    body = dataclasses.replace(simple_scene().bodies[0], regions=regions)
    usd.write(tmp_path / "a.usda", simple_scene(bodies=[body], actuators=()))
    assert EXACT not in (tmp_path / "a.usda").read_text()
