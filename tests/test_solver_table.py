"""The table of actuators by solver in the documentation agrees with the solvers."""

import contextlib
import re
from pathlib import Path

import pytest

import warpbots as wb
from warpbots.scene import SceneError

PAGE = Path(__file__).resolve().parents[1] / "docs" / "solvers" / "index.md"
BOX, UPPER = wb.shapes.Box((0, 0, 0), (0.2, 0.1, 0.1)), wb.shapes.Box((0, 0, 0.05), (0.2, 0.1, 0.1))
ACTUATORS = {
    "Pressure": wb.actuators.Pressure("a", "upper", 1e3),
    "Muscle": wb.actuators.Muscle("a", "upper", (1, 0, 0), max_stress=1e3),
    "DielectricElastomer": wb.actuators.DielectricElastomer("a", "upper", (0, 0, 1), 1e6, 3.0),
    "Cable": wb.actuators.Cable("a", ((0, 0.05, 0.05), (0.2, 0.05, 0.05)), 1e3, 0.3),
    "Expansion": wb.actuators.Expansion("a", "upper", 0.1),
    "Oscillation": wb.actuators.Oscillation("a", "upper", 0.1, 3.0),
    "Fibre": wb.actuators.Fibre("a", "upper", (1, 0, 0), 1e4, 0.3),
    "PneumaticCell": wb.actuators.PneumaticCell("a", "upper", 1e4, 0.3),
}
SOLVERS = wb.MPM(dx=0.025), wb.MassSpring(0.025), wb.ProjectiveDynamics(0.05)


def said() -> dict[str, list[bool]]:
    """For each name in the table: whether each of the solvers takes it."""
    table = PAGE.read_text().split("## What each solver supports")[1].split("\n\n")[1]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {name: [cell == "yes" for cell in row[1:]] for row in rows for name in re.findall(r"`(\w+)`", row[0])}


@pytest.mark.parametrize("name", ACTUATORS)
def test_actuators(name):
    body = wb.SoftBody("bar", BOX, wb.Material(1e5, 0.25, 1000.0), {"upper": UPPER})
    scene = wb.Scene([body], [ACTUATORS[name]])
    for solver, taken in zip(SOLVERS, said()[name], strict=True):
        with contextlib.nullcontext() if taken else pytest.raises(SceneError, match=f"{name} .* use "):
            solver.build(scene)
