"""The tables of docs/solvers/index.md agree with the solvers: every cell is read and tried."""

import contextlib
import dataclasses
import re
import warnings
from pathlib import Path

import pytest
from hollow_bodies import hollow_box

import warpbots as wb
from warpbots.scene import SceneError
from warpbots.solvers import scene_parts
from warpbots.solvers.coupled import CoupledModel

PAGE = Path(__file__).resolve().parents[1] / "docs" / "solvers" / "index.md"
SOLVERS = {
    "MPM": wb.MPM(dx=0.025),
    "springs": wb.MassSpring(0.025),
    "projective dynamics": wb.ProjectiveDynamics(0.025, elements="tetrahedra"),
    "articulated bodies": wb.Articulated(),
    "MPM together": wb.Coupled(wb.MPM(dx=0.025), wb.Articulated()),
    "springs together": wb.Coupled(wb.MassSpring(0.025), wb.Articulated()),
}
"""Solvers by their columns."""


def table(heading: str) -> dict[str, dict[str, str]]:
    """The first table below a heading: cells by the first cell of their row and the title of their column."""
    below = PAGE.read_text().split(f"{heading}\n")[1]
    lines = re.search(r"(?:^\|.*\n)+", below, re.M)[0].splitlines()
    (_, *titles), _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return {first: dict(zip(titles, cells, strict=True)) for first, *cells in rows}


S, A, M = wb.shapes, wb.actuators, wb.materials
RUBBER = wb.Material(1e5, 0.25, 1000.0)
HALVES = {"upper": S.Box((0, 0, 0.05), (0.2, 0.1, 0.1)), "lower": S.Box((0, 0, 0), (0.2, 0.1, 0.05))}
BAR = wb.SoftBody("bar", S.Box((0, 0, 0), (0.2, 0.1, 0.1)), RUBBER, HALVES)
NEXT = wb.SoftBody("next", S.Box((0.2, 0, 0), (0.4, 0.1, 0.1)), RUBBER, {"beside": S.Box((0.2, 0, 0), (0.4, 0.1, 0.1))})
BALL = wb.RigidBody("ball", S.Sphere((0, 0, 0), 0.03), position=(0.1, 0.05, 0.2))
ROUGH = dataclasses.replace(BALL, points=20)
BONE = dataclasses.replace(BALL, name="bone", position=(0.1, 0.05, 0.05))
HINGE = wb.Joint("hinge", "revolute", None, "ball", axis=(0, 1, 0))
WELD = wb.Attachment("weld", "bar", "next", [(0.2, 0.02, 0.05), (0.2, 0.08, 0.05)])
LEVEL = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
CLOTH = S.Posed(S.Sheet.rectangle((0, 0), (0.2, 0.1), 0.002, (4, 2)), (0.0, 0.0, 0.05), LEVEL)
BARS = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
TRUSS = S.Truss([(0, 0, 0), (0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1)], BARS, 0.02)
VOID = S.Box((0.02, 0.02, 0.02), (0.06, 0.04, 0.04))
FINGER = wb.SoftBody("finger", hollow_box((0.08, 0.06, 0.06), (VOID,), 0.02), RUBBER, {"palm": VOID})
FLAT = wb.Scene([wb.SoftBody("disc", S.Sphere((0.5, 0.5), 0.2), RUBBER)], domain=((0, 0), (1, 1)))


def scene(*bodies, actuator=None, **parts) -> wb.Scene:
    """A small scene in 3D; without `bodies` the bar."""
    room = {"domain": ((-0.2,) * 3, (0.6,) * 3)}
    return wb.Scene(bodies or [BAR], [actuator] if actuator else [], **room | parts)


def of(**material) -> wb.Scene:
    """A bar of another material."""
    return scene(dataclasses.replace(BAR, material=dataclasses.replace(RUBBER, **material)))


SCENES = {
    "soft bodies": scene(),
    "`Truss`": scene(wb.SoftBody("truss", TRUSS, RUBBER)),
    "scenes in 2D": FLAT,
    "`Sheet`": scene(wb.SoftBody("cloth", CLOTH, RUBBER)),
    "rigid bodies": scene(BALL),
    "`Joint`": scene(BALL, joints=[HINGE]),
    "`Torque`": scene(BALL, joints=[HINGE], actuator=A.Torque("a", "hinge", 1.0)),
    "`Servo`": scene(BALL, joints=[HINGE], actuator=A.Servo("a", "hinge", 1.0, 0.1)),
    "rigid bodies beside soft ones": scene(BAR, BALL),
    "bones: rigid bodies inside soft ones": scene(BAR, BONE),
    "`Contact` laws": scene(ROUGH, obstacles=[wb.floor(friction=0.0)], contacts=[wb.Contact("ball", "floor", 1e6)]),
    "`Pressure`": scene(actuator=A.Pressure("a", "upper", 1e3)),
    "`Muscle`": scene(actuator=A.Muscle("a", "upper", (1, 0, 0), max_stress=1e3)),
    "`Cable`": scene(actuator=A.Cable("a", ((0, 0.05, 0.05), (0.2, 0.05, 0.05)), 1e3, 0.3)),
    "`DielectricElastomer`": scene(actuator=A.DielectricElastomer("a", "upper", (0, 0, 1), 1e6, 3.0)),
    "`Expansion`": scene(actuator=A.Expansion("a", "upper", 0.1)),
    "`Oscillation`": scene(actuator=A.Oscillation("a", "upper", 0.1, 3.0)),
    "`Motor`": scene(BAR, NEXT, actuator=A.Motor("a", "weld", "beside", "lower", 1.0, 10.0), attachments=[WELD]),
    "`Attachment`": scene(BAR, NEXT, attachments=[WELD]),
    "`Fibre`": scene(actuator=A.Fibre("a", "upper", (1, 0, 0), 1e4, 0.3)),
    "`PneumaticCell`": scene(actuator=A.PneumaticCell("a", "upper", 1e4, 0.3)),
    "`Cavity`": scene(FINGER, actuator=A.Cavity("a", "palm", 1e3)),
    "`Constraint`": scene(constraints=[wb.Constraint("upper")]),
    "`Load`": scene(loads=[wb.Load("upper", (0, 0, 1.0))]),
    "`damping` of a material": of(damping=1e-3),
    "`incompressibility` of a material": of(incompressibility=2),
    "`weakly_compressible` water": of(law="weakly_compressible"),
    "`VonMises`": of(law="hencky", plasticity=M.VonMises(1e3)),
    "`DruckerPrager`": of(law="hencky", plasticity=M.DruckerPrager(35.0)),
    "`CamClay`": of(law="hencky", plasticity=M.CamClay(1e4)),
    "`FibreReinforcement`": of(fibres=[M.FibreReinforcement((1, 0, 0), 1e4)]),
    "`MaxwellBranch`": of(branches=[M.MaxwellBranch(1e4, 0.1)]),
    "`yield_strain`": of(yield_strain=0.1),
    "`breaking_strain`": of(breaking_strain=0.2),
    "`Fluid` around bodies": scene(fluid=wb.Fluid(1000.0)),
}
"""A scene for each part that a row names."""
SUPPORT = {
    part: cells
    for row, cells in table("## What each solver supports").items()
    for part in row.split(", and other ")[0].split(", ")
}


def complete(scene: wb.Scene, column: str) -> wb.Scene:
    """The scene, with a body of the other kind where a solver needs both."""
    if "together" not in column or (scene.soft and scene.rigid):
        return scene
    if scene.dim == 2:
        disc = wb.RigidBody("puck", S.Sphere((0, 0), 0.1), position=(0.5, 0.9))
        return dataclasses.replace(scene, bodies=(*scene.bodies, disc))
    return dataclasses.replace(scene, bodies=(*scene.bodies, BALL if scene.soft else BAR))


def taken(scene: wb.Scene, column: str) -> bool:
    """Whether a solver takes a scene, without a warning that it ignores something; refusals agree with `takers`."""
    scene = complete(scene, column)
    name = dict(zip(SOLVERS, scene_parts.SOLVERS, strict=True))[column]
    try:
        with warnings.catch_warnings(action="error"):
            warnings.filterwarnings(
                "ignore", ".* its shape holds|ProjectiveDynamics: Contact laws select|.* across, less"
            )
            SOLVERS[column].build(scene)
    except SceneError:
        assert name not in scene_parts.takers(scene)
        return False
    assert name in scene_parts.takers(scene)
    return True


def test_every_row_has_its_scene():
    assert list(SUPPORT) == list(SCENES)


@pytest.mark.parametrize("part", SCENES)
def test_what_a_solver_supports(part):
    found = {column: "yes" if taken(SCENES[part], column) else "no" for column in SOLVERS}
    assert found == SUPPORT[part], f"correct the row of {part} in {PAGE}"


MOTION = wb.PrescribedMotion([0.0, 1.0], [[0, 0, 0], [0, 0, 0.1]])
PRESS = wb.Obstacle(S.HalfSpace((0, 0, -1), (0, 0, 1)), motion=MOTION)
MOVING = {
    "obstacles that move": {"obstacles": [PRESS]},
    "constraints that move": {"constraints": [wb.Constraint("upper", motion=MOTION)]},
}


@pytest.mark.filterwarnings("ignore:.* its lattice may fold there")
@pytest.mark.parametrize("part", MOVING)
def test_what_may_move(part):
    """Rigid bodies have no regions that a constraint could move."""
    cells = table("### What may move")[part]
    assert list(cells) == list(SOLVERS)
    for column, cell in cells.items():
        rigid = column == "articulated bodies" and part == "obstacles that move"
        moving = complete(scene(BALL if rigid else BAR, **MOVING[part]), column)
        refused = pytest.raises(SceneError, match="moves, which .* cannot simulate|soft bod")
        with contextlib.nullcontext() if cell == "yes" else refused:
            SOLVERS[column].build(moving)


LAWS = {
    "`points`, `solid`: a soft body and anything": wb.Contact("ball", "bar", 1e6),
    "`stiffness`, `damping`, `viscosity`, `restitution`, `impact`": wb.Contact(
        "ball", "floor", 1e6, damping=1e8, impact="instant", restitution=0.5
    ),
}


@pytest.mark.parametrize("column", [column for column in SOLVERS if "together" in column])
@pytest.mark.parametrize("row", LAWS)
def test_laws_that_two_solvers_together_refuse(row, column):
    assert "refused" in table("### Contact laws")[row]["`Coupled`"]
    with pytest.raises(SceneError, match="Coupled"):
        SOLVERS[column].build(scene(BAR, ROUGH, obstacles=[wb.floor()], contacts=[LAWS[row]]))


BALLS = [dataclasses.replace(ROUGH, name=f"ball {k}", position=(0.1, 0.05, 0.2 + 0.1 * k)) for k in range(3)]
HINGES = [wb.Joint(f"hinge {k}", "revolute", None, f"ball {k}", axis=(0, 1, 0)) for k in range(2)]
MOTORS = [A.Torque(f"motor {k}", f"hinge {k}", 1.0) for k in range(2)]
CONTACTS = [wb.Contact(body.name, solid, 1e6) for solid in ("floor", "lower") for body in BALLS]
FLOORS = [wb.floor(-0.1), wb.Obstacle(S.HalfSpace((0, 0, -0.2), (0, 0, 1)), name="lower")]
ROBOT = {"joints": HINGES, "contacts": CONTACTS, "obstacles": FLOORS}
SOFT = {"constraints": [wb.Constraint("upper")], "obstacles": FLOORS, "domain": ((-0.2,) * 3, (0.6,) * 3)}
PALM = dataclasses.replace(FINGER, regions=FINGER.regions | {"upper": S.HalfSpace((0, 0, 0.05), (0, 0, -1))})
MEASURED = {
    "MPM": wb.Scene([BAR], **SOFT),
    "springs": wb.Scene([BAR], **SOFT),
    "projective dynamics": wb.Scene([PALM, *BALLS], [A.Cavity("pump", "palm", 1e3), *MOTORS], **SOFT | ROBOT),
    "articulated bodies": wb.Scene(BALLS, MOTORS, **ROBOT),
    "MPM together": wb.Scene([BAR, *BALLS], MOTORS, **SOFT | ROBOT),
    "springs together": wb.Scene([BAR, *BALLS], MOTORS, **SOFT | ROBOT),
}


def matter_model(model: object) -> object:
    """The model of the matter: of `Coupled` that of its first solver."""
    return model.soft if isinstance(model, CoupledModel) else model


COUNTS = {
    "particle": lambda m: len(m.matter),
    "spring": lambda m: len(matter_model(m).lattice.ends),
    "mass": lambda m: len(matter_model(m).lattice),
    "element": lambda m: len(m.mesh.solids),
    "contact point": lambda m: m.contact_topology.points,
    "obstacle": lambda m: 2,
    "constraint": lambda m: 1,
    "rigid body": lambda m: 3,
    "motor": lambda m: 2,
    "chamber": lambda m: 1,
}
"""Numbers of things that are measured, from a model."""


@pytest.mark.parametrize("column", SOLVERS)
def test_readings(column):
    """Names and shapes of all readings of a solver, and which of them need a `contact_interval`."""
    solver, worlds = SOLVERS[column], 5
    model = solver.build(MEASURED[column], worlds)
    fields = always = vars(solver.readings(model))
    if column == "projective dynamics":
        fields = vars(dataclasses.replace(solver, contact_interval=1e-3).readings(model))
    rows = {name: cells[column] for row, cells in table("### Readings").items() for name in re.findall(r"`(\w+)`", row)}
    assert set(fields) == {name for name, cell in rows.items() if cell != "no"}
    for name, array in fields.items():
        cell = rows[name]
        assert ("`contact_interval`" in cell) == (name not in always), name
        of = re.match(r"per ([\w ]+)", cell)
        assert of or cell.startswith("yes"), name
        assert array.shape == ((worlds, COUNTS[of[1]](model)) if of else (worlds,)), name
