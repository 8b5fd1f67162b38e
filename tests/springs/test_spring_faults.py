"""What masses and springs cannot do is refused in one sentence, before anything moves."""

import dataclasses

import numpy as np
import pytest
import torch
from cases import ELEMENTS, EXPLICIT, LATTICES, block

from warpbots.scene import (
    Box,
    Cable,
    Constraint,
    Expansion,
    HalfSpace,
    Load,
    Material,
    Muscle,
    Oscillation,
    Scene,
    SceneError,
    SoftBody,
    Union,
)
from warpbots.simulation import Simulation, SimulationError
from warpbots.solvers import MPM, MassSpring
from warpbots.solvers.mass_spring.lattice import Cells, assemble

MATTER = Material(1e4, 0.25, 1000.0)


def body(shape, **parts) -> Scene:
    """A scene of one body."""
    return Scene([SoftBody("blob", shape, MATTER, **parts)])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"spacing": 0.0}, r"spacing must be positive \[m\], got 0"),
        ({"spacing": float("nan")}, "spacing must be a finite number, got nan"),
        ({"lattice": "hexagonal"}, "lattice must be one of voxel, random, got 'hexagonal'"),
        ({"integrator": "leapfrog"}, "integrator must be one of euler, verlet, rk4, got 'leapfrog'"),
        ({"damping": -1.0}, r"damping must not be negative \[s\], got -1"),
        ({"drag": -1.0}, r"drag must not be negative \[1/s\], got -1"),
        ({"contact_stiffness": float("inf")}, "contact_stiffness must be a finite number, got inf"),
        ({"contact_damping": -1.0}, r"contact_damping must not be negative \[s/m\], got -1"),
        ({"collision": -0.1}, "collision must not be negative"),
    ],
)
def test_options(options, text):
    with pytest.raises(ValueError, match=text):
        MassSpring(**{"spacing": 0.1} | options)


@pytest.mark.parametrize(
    ("scene", "solver", "text"),
    [
        (body(Union((Box((0, 0), (0.1, 0.1)), Box((0.3, 0), (0.4, 0.1))))), MassSpring(0.05), "'blob': .* in 2 pieces"),
        (body(HalfSpace((0, 0), (0, 1))), MassSpring(0.05), "'blob': a HalfSpace has no end"),
        (
            body(Union((Box((0, 0), (0.1, 0.01)), Box((0, 0.09), (0.1, 0.1))))),
            MassSpring(0.1),
            r"'blob': no cell of the lattice fits into its shape of \[0.1, 0.1\] m; use a smaller",
        ),
        (
            body(Box((0, 0, 0), (0.1, 0.1, 0.1))),
            MassSpring(0.09, "random"),
            "'blob': only 1 nodes 0.09 m apart fit into its shape, a lattice needs 4",
        ),
        (
            body(Box((0, 0), (0.1, 0.1)), regions={"far": Box((5, 5), (6, 6))}),
            MassSpring(0.05),
            "region 'far' .* selects 0 of 9 masses; move it onto the body",
        ),
        (
            block(2, incompressibility=2),
            MassSpring(0.05),
            "'block': springs follow Hooke's law and have no volume, so incompressibility=2 has no meaning for MassSpring; "
            "leave it out of the material or use MPM$",
        ),
        (
            block(2, actuators=(Cable("rope", ((0.3, 0.3), (0.8, 0.4)), 100.0),)),
            MassSpring(0.05),
            r"Cable 'rope': waypoint 1 at \(0.8, 0.4\) is 0.3 m from the nearest matter, more than 0.05 m",
        ),
        (
            block(2, actuators=(Cable("rope", ((0.3, 0.3), (0.301, 0.3)), 100.0),)),
            MassSpring(0.05),
            r"waypoints 0 and 1 are tied to the same mass; .* use a smaller MassSpring\(spacing=...\)",
        ),
    ],
)
def test_scenes(scene, solver, text):
    with pytest.raises(SceneError, match=text):
        solver.build(scene)


def test_an_actuator_on_a_sheet_that_holds_no_cell():
    sheet = {"sheet": Box((-1e-6, -1.0), (1e-6, 1.0))}
    scene = Scene([SoftBody("blob", Box((0, 0), (0.1, 0.1)), MATTER, regions=sheet)], [Expansion("grow", "sheet", 0.1)])
    with pytest.raises(SceneError, match="Expansion 'grow': its region 'sheet' .* holds no cell"):
        MassSpring(0.05).build(scene)


def test_two_constraints_on_one_mass():
    regions = {"left": Box((-1, -1), (0.06, 1)), "low": Box((-1, -1), (1, 0.01))}
    scene = Scene(
        [SoftBody("blob", Box((0, 0), (0.1, 0.1)), MATTER, regions=regions)],
        constraints=[Constraint("left"), Constraint("low", name="other")],
    )
    with pytest.raises(SceneError, match=r"'other': another one holds mass 0 at \[0.0, 0.0\] m already"):
        MassSpring(0.05).build(scene)


def test_two_masses_at_one_point():
    """A spring between them has no direction."""
    node = np.array([[0.0, 0.0], [0.1, 0.0], [0.1, 0.0]])
    cells = Cells(node, np.array([[0, 1, 2]]), np.array([[0, 1], [1, 2]]), np.ones((1, 2)), np.ones(1))
    with pytest.raises(SceneError, match=r"masses 1 and 2 are both at \[0.1, 0.0\] m"):
        assemble(body(Box((0, 0), (0.1, 0.1))), [cells])


@pytest.mark.parametrize("solver", LATTICES)
def test_parameters_and_steps(solver):
    """A stiffness below 0, a step over the bound, and a motion that diverges all the same."""
    sim = Simulation(block(2), LATTICES[solver](1 / 8), 1e-4)
    with pytest.raises(ValueError, match=r"'stiffness' must be in \(0, inf\) N/m, got -1"):
        sim.step(sim.state(), torch.zeros(0), stiffness=torch.tensor(-1.0))
    with pytest.raises(ValueError, match="over the stability bound"):
        Simulation(block(2), LATTICES[solver](1 / 8), 1.1 * sim.max_time_step, 1)
    rest = sim.state().velocity
    fast = sim.state(velocity=0.99 * torch.finfo(rest.dtype).max * torch.randn_like(rest).sign())
    with pytest.raises(SimulationError, match=r"of mass \d+ of 'block' in world 0 is not finite: the motion diverged"):
        sim.rollout(None, 30, fast)


@pytest.mark.parametrize("solver", EXPLICIT)
def test_substeps_can_be_left_to_the_simulation(solver):
    """The fewest of at most 0.4 of the bound, for every solver that has one."""
    sim = Simulation(block(2), EXPLICIT[solver](1 / 8), 0.05, substeps=None)
    assert 0.05 / sim.substeps <= sim.solver.margin * sim.max_time_step < 0.05 / (sim.substeps - 1)


@pytest.mark.parametrize("solver", ELEMENTS)
def test_an_implicit_solver_takes_one_step_for_each_interval(solver):
    assert Simulation(block(3), ELEMENTS[solver](1 / 8), 0.05, substeps=None).substeps == 1


def test_poissons_ratio_is_said():
    scene = body(Box((0, 0), (0.1, 0.1)))
    other = dataclasses.replace(scene.bodies[0], material=Material(1e4, 0.4, 1000.0))
    with pytest.warns(UserWarning, match="Poisson's ratio 0.25, instead of 0.4 in 'blob'; Young's modulus is kept"):
        MassSpring(0.05).build(Scene([other]))
    whole = {"tip": Box((0, 0), (0.1, 0.1))}
    of_region = {"tip": Material(1e4, 0.1)}
    other = dataclasses.replace(scene.bodies[0], regions=whole, region_materials=of_region)
    with pytest.warns(UserWarning, match="Poisson's ratio 0.25, instead of 0.1 in 'blob'"):
        MassSpring(0.05).build(Scene([dataclasses.replace(other, material=Material(1e4, 0.25))]))


def test_actuators_that_leave_no_length_are_refused():
    """As under ProjectiveDynamics; the body was crushed to a point. Only springs that several drive count for all."""
    left, right = Box((0, 0), (0.1, 0.1)), Box((0.1, 0), (0.2, 0.1))
    whole = SoftBody("bar", Box((0, 0), (0.2, 0.1)), Material(1e4, 0.25), {"left": left, "right": right})
    six, five = Expansion("one", "left", 0.6), Expansion("two", "left", 0.5, (1, 0))
    wave = Oscillation("wave", "left", 0.51, 1.0, wave=(3.0, 0.0))
    for actuators, words in (
        ([six, five], "actuators 'one', 'two': together they strain a spring by up to 1.1, which leaves no length"),
        ([wave], "actuators 'wave': together they strain a spring by up to 1.02, which"),
    ):
        with pytest.raises(SceneError, match=words):
            MassSpring(0.05).build(Scene([whole], actuators))
    apart = dataclasses.replace(five, region="right")
    MassSpring(0.05).build(Scene([whole], [six, apart]))
    MassSpring(0.05).build(
        Scene([whole], [dataclasses.replace(wave, amplitude=0.49), Muscle("m", "left", (1, 0), 3e4)])
    )


def test_replaced_amplitudes_that_leave_no_length_are_refused():
    """They were taken up to 1, with a rest length below zero at u = 1; the worst world is named."""
    region = {"left": Box((0, 0), (0.1, 0.1))}
    bar = SoftBody("bar", Box((0, 0), (0.2, 0.1)), Material(1e4, 0.25), region)
    wave = Oscillation("wave", "left", 0.1, 1.0)
    sim = Simulation(Scene([bar], [wave]), MassSpring(0.05), 1e-3, worlds=2)
    said = (
        "^parameter 'amplitude': actuators 'wave': together they strain a spring by up to 1.4 in world 1, which leaves"
    )
    for sign in (1.0, -1.0):
        with pytest.raises(ValueError, match=said):
            sim.rollout(None, 1, amplitude=[[0.3], [0.7 * sign]])
    sim.rollout(None, 1, amplitude=[[0.3], [-0.49]])


def test_what_mpm_does_not_know():
    scene = dataclasses.replace(block(2), actuators=[Oscillation("beat", "root", 0.1, 1.0)])
    with pytest.raises(SceneError, match="Oscillation 'beat': MPM has no actuator that changes"):
        MPM(1 / 16).build(scene)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Expansion("a", "r", 1.5), r"Expansion 'a': max_strain must be in \(0, 1\), got 1.5"),
        (
            lambda: block(2, actuators=(Oscillation("a", "root", 0.1, 1.0, direction=(1, 0, 0), wave=(1, 0)),)),
            "Oscillation 'a' is 3D in a 2D scene",
        ),
        (lambda: Oscillation("a", "r", 0.1, 0.0), r"Oscillation 'a': frequency must be positive \[Hz\]"),
        (lambda: Oscillation("a", "r", 0.1, 1.0, float("nan")), "phase must be a finite number, got nan"),
        (lambda: Expansion("a", "r", 0.1, (0.0, 0.0)), "direction must not be the zero vector"),
        (lambda: Constraint("r", "hinge"), "freedom must be one of fixed, line, plane, got 'hinge'"),
        (lambda: Constraint("r", "line"), "freedom 'line' needs a direction, got None"),
        (lambda: Constraint("r", "fixed", (1.0, 0.0)), "freedom 'fixed' takes no direction"),
        (lambda: Load("r", (float("nan"), 0.0)), r"force\[0\] must be a finite number, got nan"),
        (lambda: Material(1e4, damping=-1.0), "damping must be a time >= 0"),
    ],
)
def test_parts_of_a_scene(make, text):
    with pytest.raises(SceneError, match=text):
        make()


def test_meshes_of_others_become_lattices(tmp_path):
    """The bear and the bunny that come with Warp, in both kinds."""
    import warp.examples

    from warpbots import usd

    for name in ("bear.usd", "bunny.usd"):
        mesh = next(iter(usd.read_meshes(f"{warp.examples.get_asset_directory()}/{name}").values()))
        size = float((mesh.bounds[1] - mesh.bounds[0]).max())
        for kind in ("voxel", "random"):
            made = MassSpring(size / 16, kind).build(Scene([SoftBody("pet", mesh, MATTER)])).lattice
            assert made.mass.sum() == pytest.approx(1000.0 * mesh.volume, rel=1e-9)
