"""A solver that cannot move an obstacle or a constraint says so, and never leaves it at rest without a word."""

import contextlib
import dataclasses

import pytest

import warpbots as wb

ALL = {"all": wb.shapes.Box((0, 0, 0), (1, 1, 1))}
BODY = wb.SoftBody("block", wb.shapes.Box((0, 0, 0.1), (0.1, 0.1, 0.2)), wb.Material(1e5), ALL)
MOTION = wb.PrescribedMotion([0.0, 1.0], [[0, 0, 0], [0, 0, 0.1]])
SCENES = {
    "Obstacle 'floor'": wb.Scene([BODY], obstacles=[dataclasses.replace(wb.floor(), motion=MOTION)]),
    "Constraint 'clamp'": wb.Scene([BODY], constraints=[wb.Constraint("all", motion=MOTION)]),
}
SOLVERS = {"MPM": wb.MPM(0.02), "MassSpring": wb.MassSpring(0.05), "ProjectiveDynamics": wb.ProjectiveDynamics(0.05)}
TAKEN = {(name, part) for name in SOLVERS for part in SCENES}
"""Solvers and the parts that they can move."""


@pytest.mark.parametrize("part", SCENES)
@pytest.mark.parametrize("name", SOLVERS)
def test_moves_or_is_refused(name, part):
    taken = (name, part) in TAKEN
    refused = pytest.raises(wb.SceneError, match=f"{part} moves, which {name} cannot simulate")
    with contextlib.nullcontext() if taken else refused:
        model = SOLVERS[name].build(SCENES[part])
        assert "motion_position" in model.parameters()
