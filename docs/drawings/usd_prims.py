"""Prims of a scene that `usd.write` has written, and what they are in the scene."""

import tempfile
from pathlib import Path

from canvas import Drawing
from pxr import Usd

import warpbots as wb

ROWS = (
    ("/World", "", "Scene"),
    ("/World/Bodies/bar", "", "SoftBody"),
    ("/World/Bodies/bar/Shape", "", "its shape"),
    ("/World/Bodies/bar/PhysicsMaterial", "physics:youngsModulus", "Material"),
    ("/World/Bodies/bar/Regions/left", "", "a region"),
    ("/World/Bodies/ball", "physics:density", "RigidBody"),
    ("/World/Obstacles/floor", "warpbots:condition", "Obstacle"),
    ("/World/Actuators/pull", "warpbots:maxStress", "Muscle"),
)
"""Path of a prim, an attribute of it, and what both become."""
ENDINGS = ("BodyAPI", "RegionAPI")
LEVEL = {"World": 0, "Shape": 2, "PhysicsMaterial": 2, "left": 2}
"""Indentation by the name of a prim; scopes are left out."""


def stage(folder: str) -> Usd.Stage:
    """A scene with a soft bar, a muscle in its left half, a rigid ball and a floor, as a file."""
    Box = wb.shapes.Box
    left = {"left": Box((0, 0, 0), (0.15, 0.1, 0.1))}
    bar = wb.SoftBody("bar", Box((0, 0, 0), (0.3, 0.1, 0.1)), wb.Material(5e4, 0.3, 1000.0), left)
    ball = wb.RigidBody("ball", wb.shapes.Sphere((0, 0, 0), 0.05), position=(0.1, 0, 0.3))
    pull = wb.actuators.Muscle("pull", "left", (1, 0, 0), max_stress=5e3)
    path = Path(folder) / "scene.usda"
    wb.usd.write(path, wb.Scene([bar, ball], [pull], [wb.floor()]))
    return Usd.Stage.Open(str(path))


def schema(prim: Usd.Prim) -> str:
    """The applied schema that says what the prim is, or its type."""
    applied = prim.GetMetadata("apiSchemas")
    ours = [name for name in applied.GetAddedOrExplicitItems() if name.endswith(ENDINGS)] if applied else []
    return ours[0] if ours else prim.GetTypeName()


def draw() -> Drawing:
    """The tree, and beside it the records of the scene."""
    d = Drawing(
        "Prims of a scene in a USD file",
        "A scene as a tree of prims with attributes, as warpbots writes it; applied schemas say what a prim is. Beside "
        "them, the records that they become when the file is read.",
        66 + 47 * len(ROWS),
    )
    d.text((20, 34), "in the file", anchor="start", bold=True).text(
        (560, 34), "in the scene", anchor="start", bold=True
    )
    with tempfile.TemporaryDirectory() as folder:
        written = stage(folder)
        for row, (path, attribute, record) in enumerate(ROWS):
            prim, y = written.GetPrimAtPath(path), 66 + 47 * row
            name = prim.GetName()
            level = LEVEL.get(name, 1)
            x = 20 + 40 * level
            if level:
                d.line([(x - 24, y - 26 if row else y), (x - 24, y), (x - 8, y)], "faint", 2)
            d.text((x, y + 7), name, "blue", 19, "start", bold=True)
            value = f"{attribute.split(':')[1]} = {prim.GetAttribute(attribute).Get()}" if attribute else ""
            d.text((268, y + 7), value.removesuffix(".0") or schema(prim), "ink" if value else "grey", 19, "start")
            d.arrow((520, y), (552, y), "grey", 2)
            d.text((560, y + 7), record, "green", 19, "start")
    return d
