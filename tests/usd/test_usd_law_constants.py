"""Constants of laws in stages that are not in metres and kilograms, and in units that only the law says."""

import dataclasses

import pytest
from pxr import Usd, UsdGeom, UsdPhysics
from usd_cases import simple_scene

from warpbots import usd
from warpbots.materials import LAWS, LawConstant, gent, with_constants
from warpbots.scene import Material, SceneError

UNITS = [(0.01, 0.001, "Y"), (0.0254, 0.45359237, "Z")]
"""Metres and kilograms per unit, and the axis that is up."""

DECLARED = (
    LawConstant("second_modulus", "K", "Pa", "modulus of the quadratic term", lower=0.0, upper=1e6),
    LawConstant("exponent", "m", "1", "exponent of the stretches", lower=1.0),
    LawConstant("line_tension", "T", "N/m", "tension of a surface", default=0.25),
)


@pytest.fixture
def law(monkeypatch):
    """A registered law with constants in Pa, 1 and N/m."""

    @with_constants(*DECLARED)
    def definition(dim):
        return gent.law(dim)

    monkeypatch.setitem(LAWS, "in_units", definition)
    return "in_units"


def with_material(material: Material):
    scene = simple_scene(actuators=())
    return dataclasses.replace(scene, bodies=[dataclasses.replace(scene.bodies[0], material=material)])


def in_units(path, meters: float, kilograms: float, up: str, **numbers: float) -> None:
    """Change the units of a file and set constants to numbers in these units, as another program does."""
    stage = Usd.Stage.Open(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, meters)
    UsdPhysics.SetStageKilogramsPerUnit(stage, kilograms)
    UsdGeom.SetStageUpAxis(stage, up)
    for name, value in numbers.items():
        attribute_of(stage, name).Set(value)
    stage.Save()


def attribute_of(stage: Usd.Stage, name: str) -> Usd.Attribute:
    named = f"warpbots:constants:{name}"
    (found,) = (p.GetAttribute(named) for p in stage.Traverse() if p.GetAttribute(named).HasAuthoredValue())
    return found


@pytest.mark.parametrize(("meters", "kilograms", "up"), UNITS)
def test_constants_are_in_the_units_of_the_stage(law, meters, kilograms, up, tmp_path):
    """1 Pa = 1 kg/(m s^2) and 1 N/m = 1 kg/s^2; a dimensionless constant is the same in all units."""
    path = tmp_path / "a.usda"
    usd.write(path, with_material(Material(1e5, law=law, constants={"second_modulus": 5e3, "exponent": 1.7})))
    in_units(path, meters, kilograms, up, second_modulus=300.0, exponent=2.5)
    scene = usd.read(path)
    read = scene.bodies[0].material.constants
    assert read == {"second_modulus": pytest.approx(300.0 * kilograms / meters, rel=1e-12), "exponent": 2.5}

    changed = {"second_modulus": 4e3 / 3.0, "exponent": 10.0 / 3.0, "line_tension": 0.7}
    material = dataclasses.replace(scene.bodies[0].material, constants=changed)
    body = dataclasses.replace(scene.bodies[0], material=material)
    written = tmp_path / "b.usda"
    usd.write(written, dataclasses.replace(scene, bodies=[body]))
    stage = Usd.Stage.Open(str(written))
    assert (UsdGeom.GetStageMetersPerUnit(stage), UsdPhysics.GetStageKilogramsPerUnit(stage)) == (meters, kilograms)
    assert attribute_of(stage, "second_modulus").Get() == pytest.approx(4e3 / 3.0 * meters / kilograms, rel=1e-12)
    assert attribute_of(stage, "exponent").Get() == 10.0 / 3.0
    assert attribute_of(stage, "line_tension").Get() == pytest.approx(0.7 / kilograms, rel=1e-12)
    again = usd.read(written).bodies[0].material
    assert again.constants == changed
    assert again.youngs_modulus == material.youngs_modulus


def test_the_range_is_in_si_units_whatever_the_stage_is_in(law, tmp_path):
    """9e6 g/(cm s^2) are 9e5 Pa, below the upper limit of 1e6 Pa; 2e7 are above it."""
    path = tmp_path / "a.usda"
    usd.write(path, with_material(Material(1e5, law=law, constants={"second_modulus": 5e3, "exponent": 1.7})))
    in_units(path, 0.01, 0.001, "Z", second_modulus=9e6)
    assert usd.read(path).bodies[0].material.constants["second_modulus"] == pytest.approx(9e5)
    in_units(path, 0.01, 0.001, "Z", second_modulus=2e7)
    with pytest.raises(SceneError, match=r"constants\['second_modulus'\] = 2e\+06: .* must be in \(0, 1e\+06\) Pa"):
        usd.read(path)


def test_a_unit_that_no_file_can_hold_is_refused(law, tmp_path, monkeypatch):
    @with_constants(LawConstant("rate", "a", "Pa/s", "rate of ageing"))
    def ageing(dim):
        return gent.law(dim)

    monkeypatch.setitem(LAWS, law, ageing)
    with pytest.raises(
        SceneError, match="constant 'rate' has the unit 'Pa/s', which cannot be converted to units of a"
    ):
        usd.write(tmp_path / "a.usda", with_material(Material(1e5, law=law, constants={"rate": 1.0})))
