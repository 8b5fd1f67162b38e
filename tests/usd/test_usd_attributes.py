"""An attribute of a file is declared in one place: the recipe of CONTRIBUTING, and the columns of the table."""

import importlib.util
import inspect
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from pxr import Usd, UsdGeom
from usd_cases import full_scene, rigid_scene, simple_scene

from warpbots import scene, usd
from warpbots.scene import SceneError, StressActuator
from warpbots.scene.record import direction, record
from warpbots.usd.stage import ledger, schema, schema_rows
from warpbots.usd.stage.codecs import CODECS
from warpbots.usd.stage.exact_fields import EXACT
from warpbots.usd.stage.schema import KINDS, OWN, TABLE, Row, declare

DOCS = Path(__file__).resolve().parents[2] / "docs"


@record
class Twist(StressActuator):
    """A twist of a region about an axis.

    Attributes:
        name: Its name.
        region: Its region.
        torque: Torque at u = 1 [N m], positive.
        axis: Its axis, shape (dim,).
        speed: Largest speed of the matter [m/s].
    """

    torque: float
    axis: tuple[float, ...]
    speed: float = 2.0

    def __post_init__(self):
        if not self.torque > 0.0:
            raise SceneError(f"Twist.torque must be positive [N m], got {self.torque:g}; leave it out")
        object.__setattr__(self, "axis", direction(self.axis, "Twist.axis"))


@pytest.fixture
def twist(monkeypatch):
    """The recipe: a row for each field."""
    table = [*TABLE]
    for module in (schema, schema_rows):
        monkeypatch.setattr(module, "TABLE", table)
    monkeypatch.setattr(schema_rows, "_ROWS", {**schema_rows._ROWS})
    declare(
        "stage.actuators_and_loads",
        Row("Twist.torque", "warpbots:torque", "double", "number", "N m", "WarpbotsTwistAPI", OWN),
        Row("Twist.axis", "warpbots:axis", "double3", "vector", "1", "WarpbotsTwistAPI", OWN),
        Row("Twist.speed", "warpbots:speed", "float", "number", "m/s", "WarpbotsTwistAPI", OWN, Twist.speed),
    )
    return Twist("twist", "all", torque=1 / 3, axis=(0.0, 3.0, 4.0), speed=0.7)


@pytest.fixture
def file(twist, tmp_path):
    path = tmp_path / "twist.usda"
    usd.write(path, simple_scene(actuators=[twist]))
    return path


def prim_of(path):
    stage = Usd.Stage.Open(str(path))
    (prim,) = (p for p in stage.Traverse() if "WarpbotsTwistAPI" in p.GetPrimTypeInfo().GetAppliedAPISchemas())
    return stage, prim


def test_a_declared_attribute_is_written_and_read_to_the_last_bit(twist, file):
    _, prim = prim_of(file)
    said = {name: prim.GetAttribute(f"warpbots:{name}") for name in ("torque", "axis", "speed")}
    assert [str(a.GetTypeName()) for a in said.values()] == ["double", "double3", "float"]
    assert said["torque"].Get() == 1 / 3 and said["speed"].Get() == np.float32(0.7)
    assert usd.read(file).actuators == (twist,)


def test_a_declared_attribute_has_its_unit_and_its_default(twist, file):
    """In centimetres a torque of 1 is 1 kg cm^2/s^2, which is 1e-4 N m; with y up, an axis along y is along z."""
    stage, prim = prim_of(file)
    UsdGeom.SetStageMetersPerUnit(stage, 0.01)
    UsdGeom.SetStageUpAxis(stage, "Y")
    prim.GetAttribute("warpbots:torque").Set(5.0)
    prim.GetAttribute("warpbots:axis").Set((0.0, 1.0, 0.0))
    prim.GetAttribute("warpbots:speed").Set(30.0)
    stage.Save()
    (found,) = usd.read(file).actuators
    assert (found.torque, found.axis, found.speed) == (pytest.approx(5e-4), (0.0, 0.0, 1.0), pytest.approx(0.3))
    prim.RemoveProperty("warpbots:speed")
    stage.Save()
    assert usd.read(file).actuators[0].speed == Twist.speed


def test_a_declared_attribute_is_validated(file):
    stage, prim = prim_of(file)
    prim.GetAttribute("warpbots:torque").Set(-1.0)
    stage.Save()
    with pytest.raises(SceneError, match=rf"{prim.GetPath()}: Twist.torque must be positive \[N m\], got -1"):
        usd.read(file)
    prim.RemoveProperty("warpbots:torque")
    stage.Save()
    with pytest.raises(SceneError, match="a prim with WarpbotsTwistAPI needs the attributes warpbots:torque"):
        usd.read(file)


def test_a_declared_attribute_is_on_the_page(twist, monkeypatch):
    pytest.importorskip("sphinx")
    spec = importlib.util.spec_from_file_location("usd_attributes", DOCS / "_extension" / "usd_attributes.py")
    page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(page)
    (line,) = (line for line in page.markdown() if "Twist.torque" in line)
    assert [cell.strip() for cell in line.strip("|").split("|")] == [
        "`warpbots:torque`", "double", "N m", "Twist.torque", "must be given", "WarpbotsTwistAPI", "warpbots",
        "stage.actuators_and_loads",
    ]  # fmt: skip
    assert "```{usd-attributes}" in (DOCS / "usd_attributes.md").read_text()


def test_a_field_without_a_row_is_not_lost(twist, tmp_path):
    del schema_rows._ROWS["Twist.speed"]
    with pytest.raises(SceneError, match=r"Twist\.speed: no attribute of a file holds it; declare a Row"):
        usd.write(tmp_path / "lost.usda", simple_scene(actuators=[twist]))


def test_every_kind_has_a_codec():
    assert {*KINDS} == {*CODECS, "local"}


WRONG_ROWS = {
    "kind": ({"kind": "scalar"}, r"kind must be one of text, integer, number, .*, got 'scalar'"),
    "unit": ({"unit": "Nm"}, r"unit must be one of 1, s, 1/s, .*, kg/m\^dim, got 'Nm'; add yours to UNITS"),
    "type": ({"type": "int"}, r"type of the kind 'number' must be one of double, float, got 'int'"),
    "unknown type": ({"type": "doubl"}, r"type of the kind 'number' must be one of double, float, got 'doubl'"),
    "again": (
        {"sets": "Twist.torque", "name": "warpbots:torque", "unit": "N"},
        r"already holds Twist.torque; declare it",
    ),
    "attribute": ({"name": "warpbots:axis"}, r"warpbots:axis of WarpbotsTwistAPI already holds Twist.axis; give it an"),
}


@pytest.mark.parametrize("fault", WRONG_ROWS)
def test_a_wrong_row_is_refused(twist, fault):
    values, message = WRONG_ROWS[fault]
    row = Row("Twist.power", "warpbots:power", "double", "number", "N m", "WarpbotsTwistAPI", OWN)._replace(**values)
    before = [*schema_rows.TABLE], {**schema_rows._ROWS}
    with pytest.raises(SceneError, match=f"^Row {row.sets!r}, {row.name}: .*{message}"):
        declare("stage.actuators_and_loads", row)
    assert before == (schema_rows.TABLE, schema_rows._ROWS)


def test_a_row_may_be_declared_again(twist):
    """A cell of a notebook runs twice."""
    (row,), before = schema_rows.rows("Twist.torque"), len(schema_rows.TABLE)
    declare(row.reader, row._replace(reader="", writer=""))
    assert (schema_rows.rows("Twist.torque"), len(schema_rows.TABLE)) == ((row,), before)


@pytest.mark.parametrize(
    ("field", "values", "cause"),
    [
        ("torque", {"type": "int", "kind": "integer"}, r"0\.333.* int .*'integer' \(it is no integer\)"),
        ("torque", {"type": "double3", "kind": "vector"}, r"0\.333.* double3 .*'vector' \(.*\)"),
        (
            "torque",
            {"type": "string", "kind": "text"},
            r"0\.333.* string .*'text' \(Type mismatch .*'string', got 'do.*\)",
        ),
        ("axis", {"type": "double", "kind": "number"}, r"\(0\.0, 0\.6, 0\.8\) .* double .*'number' \(.*\)"),
    ],
)
def test_a_row_that_does_not_fit_its_field_is_refused(twist, tmp_path, field, values, cause):
    """With the cause, and no file."""
    (row,) = schema_rows.rows(f"Twist.{field}")
    schema_rows._ROWS[row.sets] = (row._replace(**values),)
    with pytest.raises(SceneError, match=rf"Twist\.{field} = {cause}; correct the type and the kind in its Row$"):
        usd.write(tmp_path / "odd.usda", simple_scene(actuators=[twist]))
    assert [*tmp_path.iterdir()] == []


ALIKE = {"Hz": "1/s", "rad": "1", "degrees": "1", "rad/s": "1/s", "rad/m": "1/m"} | dict.fromkeys(
    ("kg/m^2", "kg/m^3"), "kg/m^dim"
)
"""Units of docstrings, as units of rows: angles have no dimension."""


def test_every_row_has_the_unit_of_its_field():
    """In the docstring of its class, in brackets; none is 1."""
    checked = 0
    for row in TABLE:
        cls, _, field = row.sets.partition(".")
        of_field = re.fullmatch(r"[A-Z]\w+\.\w+", row.sets) and cls in vars(scene)
        if not of_field or row.kind in ("local", "color") or row.name.startswith(EXACT):
            continue
        text = re.search(rf"^ +{field}: (.*?)(?=^ +\w+: |^$|\Z)", inspect.getdoc(vars(scene)[cls]), re.M | re.S)
        said = {ALIKE.get(unit, unit) for unit in re.findall(r"\[([^\]]*)\]", text[1])} or {"1"}
        assert row.unit in said, row
        checked += 1
    assert checked > 100


def test_every_row_names_the_module_that_reads_it(tmp_path, monkeypatch):
    """The row of an attribute leads to the code that reads it."""
    asked: dict[str, set[str]] = {}

    def mark_read(prim, *names):
        frame, modules = sys._getframe(1), set()
        while frame is not None:
            modules.add(frame.f_globals.get("__name__", "").removeprefix("warpbots.usd."))
            frame = frame.f_back
        for name in names:
            asked.setdefault(name, set()).update(modules)
        original(prim, *names)

    original = ledger.mark_read
    for module in [m for name, m in sys.modules.items() if name.startswith("warpbots.usd.")]:
        if vars(module).get("mark_read") is original:
            monkeypatch.setattr(module, "mark_read", mark_read)
    for name, written in {"full": full_scene(3), "rigid": rigid_scene()}.items():
        usd.write(tmp_path / f"{name}.usda", written)
        usd.read(tmp_path / f"{name}.usda")
    seen = [row for row in TABLE if row.name in asked and row.written]
    assert len(seen) > 60
    assert [row for row in seen if row.reader not in asked[row.name]] == []


def test_every_row_names_modules_that_exist():
    for row in TABLE:
        for module in filter(None, (row.reader, row.writer)):
            assert importlib.util.find_spec(f"warpbots.usd.{module}") is not None, row
