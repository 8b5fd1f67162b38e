"""Sizes of cells, steps and substeps that follow from the scene where none are given."""

import dataclasses

import numpy as np
import pytest
import torch
from cases import block

import warpbots as wb
from warpbots.contact import cells_across, width
from warpbots.meshing import tetrahedra
from warpbots.scene import Box, Capsule, Material, Points, Posed, Scene, SoftBody, Sphere, Task, Union
from warpbots.scene.shapes import Sheet, Silhouette, Truss
from warpbots.simulation import summary

QUARTER = ((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))


def body(shape, name: str = "body", E: float = 1e4) -> SoftBody:
    return SoftBody(name, shape, Material(E, 0.3))


@pytest.mark.parametrize(
    ("shape", "exact", "within"),
    [
        (Box((0, 0, 0), (1.0, 0.5, 0.02)), 0.02, 1e-12),
        (Box((0, 0), (1.0, 0.3)), 0.3, 1e-12),
        (Posed(Box((0, 0, 0), (1.0, 0.5, 0.02)), (1, 2, 3), QUARTER), 0.02, 1e-12),
        (Capsule((0, 0, 0), (4.0, 0, 0), 0.2), 0.4, 0.2),
        (Sphere((0, 0, 0), 0.5), 0.4, 0.15),  # chords near the six points furthest along the axes are short
        (Union((Box((0, 0, 0), (1, 1, 1)), Box((1, 0.4, 0.4), (2, 0.6, 0.5)))), 0.1, 1e-12),
        (Silhouette(np.pad(np.ones((4, 16), dtype=bool), 2), (0, 0), 0.01), 0.04, 0.2),
        (Sheet.rectangle((0, 0), (1, 1), 1e-3, (2, 2)), 1e-3, 1e-12),
        (Truss([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1], [1, 2]], [0.1, 0.05]), 0.1, 1e-12),
        (Points(np.zeros((5, 3)), np.full(5, 0.001)), 0.2, 1e-12),
    ],
)
def test_widths_are_those_of_thin_parts(shape, exact, within):
    assert width(shape) == pytest.approx(exact, rel=within)


def test_a_robot_is_as_wide_as_its_legs():
    """Legs that have a quarter of the volume, as samples of one solid, and not as parts that are known by name."""
    h, mask = 0.01, np.zeros((40, 60), dtype=bool)
    mask[:20, 4:10], mask[:20, 50:56], mask[20:] = True, True, True
    assert width(Silhouette(mask, (0, 0), h)) == pytest.approx(0.06, rel=0.2)


def test_cells_are_as_many_across_as_asked_for_and_no_more_than_allowed():
    plate, cube = Box((0, 0, 0), (1, 1, 0.04)), Box((0, 0, 0), (1, 1, 1))
    assert cells_across([cube], 4.0, 1000.0) == 0.25
    assert cells_across([cube, plate], 4.0, 1e9) == 0.01
    assert cells_across([plate], 4.0, 320.0) == 0.05
    assert cells_across([wb.shapes.HalfSpace((0, 0, 0), (0, 0, 1))], 4.0, 10.0) == 1.0


def test_solvers_choose_their_cells():
    cube = Scene([body(Box((0, 0, 0), (0.2, 0.2, 0.2)))])
    assert wb.MPM().sized(cube) == wb.MPM(0.05)
    assert wb.MassSpring(lattice="random").sized(cube) == wb.MassSpring(0.05, "random")
    assert wb.ProjectiveDynamics(memory=5).sized(cube) == wb.ProjectiveDynamics(0.05, memory=5)
    for solver in (wb.MPM(0.1), wb.MassSpring(0.1), wb.ProjectiveDynamics(0.1)):
        assert solver.sized(cube) is solver
    task = Task(0.04, 0.02, 3, 10, (1.0, 0.0, 0.0))
    meant = dataclasses.replace(cube, task=task)
    for solver, field in ((wb.MPM(), "dx"), (wb.MassSpring(), "spacing"), (wb.ProjectiveDynamics(), "cell_size")):
        assert getattr(solver.sized(meant), field) == 0.04
        open_task = dataclasses.replace(task, cell_size=None)
        assert getattr(solver.sized(dataclasses.replace(cube, task=open_task)), field) == 0.05


def test_large_bodies_have_as_many_particles_as_are_affordable():
    large = Scene([body(Box((0, 0, 0), (1, 1, 0.02)), E=1e3)])
    for solver in (wb.MPM(), wb.MassSpring(), wb.ProjectiveDynamics()):
        model = solver.sized(large).build(large, device="cpu")
        assert 100 < len(model.matter) <= 22_000, model.summary()


def test_meshes_need_no_cell_size():
    """Cells are those of the meshes: the mean length of their edges; other bodies decide where there are any."""
    mesh = tetrahedra(Box((0, 0, 0), (0.3, 0.3, 0.3)), 0.1)
    cloth = Sheet.rectangle((0, 0), (1, 1), 1e-3, (4, 4))
    edges = {tuple(sorted(e)) for t in mesh.tets.tolist() for e in [(a, b) for a in t for b in t if a < b]}
    mean = np.mean([np.linalg.norm(mesh.vertices[a] - mesh.vertices[b]) for a, b in edges])
    solver = wb.ProjectiveDynamics()
    assert solver.sized(Scene([body(mesh)])).cell_size == pytest.approx(mean)
    assert solver.sized(Scene([body(Posed(mesh, (0, 0, 0), QUARTER))])).cell_size == pytest.approx(mean)
    long = (8 * 4 * 0.25 + 8 * 0.25 + 16 * 0.25 * 2**0.5) / (40 + 16)
    assert solver.sized(Scene([body(cloth)])).cell_size == pytest.approx(long)
    both = Scene([body(mesh), body(Box((1, 0, 0), (2, 0.2, 0.2)), "beam")])
    assert solver.sized(both).cell_size == 0.05
    assert solver.sized(Scene([body(mesh), wb.RigidBody("bone", Box((0, 0, 0), (1, 0.1, 0.1)))])).cell_size > 0.1
    thin = wb.RigidBody("bone", Box((0, 0, 0), (1, 0.06, 0.06)))
    assert solver.sized(Scene([body(Box((0, 0, 0), (1, 1, 1))), thin])).cell_size == pytest.approx(0.03)
    assert tetrahedra(mesh) is mesh
    assert len(tetrahedra(Box((0, 0, 0), (0.3, 0.3, 0.3))).tets) == 6 * 4**3
    with pytest.raises(ValueError, match="cell_size must be a positive length"):
        tetrahedra(mesh, -1.0)


@pytest.mark.parametrize("solver", [wb.MPM(), wb.MassSpring(), wb.ProjectiveDynamics()])
def test_a_simulation_needs_a_scene_and_a_solver_alone(solver, capsys):
    """What was chosen is on its solver, in one line at its creation and in its table; it simulates."""
    scene = block(3)
    sim = wb.Simulation(scene, solver, device="cpu")
    assert sim.solver == solver.sized(scene) != solver and sim.dt == 0.01
    assert sim.substeps == int(0.01 / (solver.margin * sim.max_time_step)) + 1
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    assert sim.model.summary() in said.err and "0.0625" in said.err and "with dt=0.01 s in" in said.err
    assert torch.isfinite(sim.rollout(None, 2).final.position).all()


def test_the_line_has_few_digits_and_only_options_that_were_chosen():
    """Also of solvers that another one joins."""
    joined = wb.Coupled(wb.MPM(1 / 3), wb.Articulated(rounding=0.2))
    sim = wb.Simulation(block(2), wb.MPM(0.1234567891), 1e-3, device="cpu")
    assert (
        summary._method(joined)
        == "Coupled(matter=MPM(dx=0.333333), bodies=Articulated(integrator='sdirk2', rounding=0.2))"
    )
    assert "'robot' is simulated by MPM(dx=0.123457) with dt=0.001 s" in summary.choice(sim)


def test_nothing_is_said_where_nothing_was_chosen(capsys):
    wb.Simulation(block(2), wb.MPM(1 / 8), 1e-3, device="cpu")
    assert capsys.readouterr() == ("", "")


def test_the_line_is_no_error_in_a_notebook(capsys, monkeypatch):
    monkeypatch.setattr("warpbots.notebook_cells.in_notebook", lambda: True)
    wb.Simulation(block(2), wb.MPM(1 / 8), device="cpu")
    said = capsys.readouterr()
    assert said.err == "" and "'robot' is simulated by MPM(dx=0.125) with dt=0.01 s in 1 substep of 0.01 s" in said.out


def test_a_task_says_the_interval_and_omitted_substeps_are_the_fewest_that_are_safe():
    scene = dataclasses.replace(block(2, youngs_modulus=1e6), task=Task(1 / 16, 0.02, 3, 10, (1.0, 0.0)))
    sim = wb.Simulation(scene, wb.MPM(), device="cpu")
    assert sim.dt == 0.02 and sim.solver == wb.MPM(1 / 16)
    step, safe = sim.dt / sim.substeps, wb.MPM.margin * sim.max_time_step
    assert step <= safe < sim.dt / (sim.substeps - 1)
    assert wb.Simulation(scene, wb.MPM(), 0.01, device="cpu").substeps == int(0.01 / safe) + 1


def drop(stiffness: float) -> Scene:
    """A ball of 4.19 kg above a floor, which it touches at one point, for a 64th of its surface."""
    ball = wb.RigidBody("ball", Sphere((0, 0, 0), 0.1), position=(0, 0, 0.2), points=20)
    return Scene([ball], obstacles=[wb.floor(friction=0.0)], contacts=[wb.Contact("ball", "floor", stiffness)])


def test_articulated_bodies_have_steps_that_resolve_their_contacts():
    """The solver warns of the step, so there are twice as many until it does not; a step that is given stays.

    A step resolves a contact of the frequency w up to h = 1 / w: 46 ms for the soft ball, 1.5 ms for the stiff one.
    """
    soft, stiff = (wb.Simulation(drop(k), wb.Articulated(), device="cpu") for k in (1e6, 1e9))
    assert soft.dt == stiff.dt == 0.01 and soft.substeps == 1 and stiff.substeps == 8
    assert stiff.solver.caution(stiff.model, stiff.dt / stiff.substeps) is None
    assert stiff.solver.caution(stiff.model, 2.0 * stiff.dt / stiff.substeps)
    with pytest.warns(UserWarning, match="contact"):
        assert wb.Simulation(drop(1e9), wb.Articulated(), 0.01, device="cpu").substeps == 1


def test_a_warning_that_no_step_removes_does_not_keep_steps_from_resolving_contacts():
    """A second ball falls through the floor in steps of every length; the first had one step instead of eight."""
    scene = drop(1e9)
    lost = wb.RigidBody("lost", Sphere((0, 0, 0), 0.1), position=(1, 0, 0.2))
    with pytest.warns(UserWarning, match="^RigidBody 'lost' falls through Obstacle 'floor'"):
        sim = wb.Simulation(dataclasses.replace(scene, bodies=[*scene.bodies, lost]), wb.Articulated(), device="cpu")
    assert sim.substeps == 8


def test_an_open_size_is_refused_where_no_simulation_chooses_it():
    for solver, field in ((wb.MPM(), "dx"), (wb.MassSpring(), "spacing"), (wb.ProjectiveDynamics(), "cell_size")):
        with pytest.raises(ValueError, match=rf"{type(solver).__name__}: {field} is open; give it, or build with"):
            solver.build(block(3))


def test_scenes_that_a_solver_refuses_are_refused_by_build():
    with pytest.raises(wb.SceneError, match="MPM simulates soft bodies only"):
        wb.Simulation(drop(1e4), wb.MPM(), device="cpu")
    with pytest.raises(wb.SceneError, match="has no end"):
        wb.Simulation(Scene([body(wb.shapes.HalfSpace((0, 0), (0, 1)))]), wb.MPM(), device="cpu")


def test_cost_is_measured():
    """Memory is at least that of the parameters and the grid; the table tells what was measured."""
    sim = wb.Simulation(block(2), wb.MPM(1 / 8), 1e-3, 1, worlds=3, device="cpu")
    assert "not measured yet" in str(sim)
    cost = sim.cost(2)
    own = sum(sim.model.parameter(name).capacity for name in sim.parameters())
    assert own < cost.memory < 1e6 and cost.speed > 0.0 and str(cost) in str(sim)
    more = wb.Simulation(block(2), wb.MPM(1 / 32), 1e-3, 1, worlds=3, device="cpu").cost(1)
    assert more.memory > 5 * cost.memory
    with pytest.raises(ValueError, match="cost: intervals must be at least 1, got 0"):
        sim.cost(0)
