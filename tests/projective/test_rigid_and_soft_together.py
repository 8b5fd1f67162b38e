"""What holds for scenes of one kind holds for rigid bodies and soft matter together: restarts, worlds, files, gradients."""

import dataclasses
import warnings

import numpy as np
import pytest
import torch
from mixed_scene import CONTROL, mixed, simulation

import warpbots as wb
from warpbots.cli import main
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics

STEPS = 8
"""In the last of them the robot, the sponge, its load, the floor and the press are in contact."""


def controls(worlds: int = 1) -> torch.Tensor:
    """Controls that differ between worlds and intervals, shape (worlds, steps, channels)."""
    u = torch.tensor(CONTROL) * torch.linspace(0.8, 1.0, STEPS)[:, None]
    return u * torch.linspace(1.0, 0.9, worlds)[:, None, None]


def same(one, other, worlds=slice(None), others=slice(None)) -> None:
    """All fields of two states are the same to the bit, in the given worlds of each."""
    for field in dataclasses.fields(one):
        a, b = getattr(one, field.name)[worlds], getattr(other, field.name)[others]
        assert torch.equal(a, b), (field.name, (a - b).abs().max())


@pytest.mark.verification(float32=True)
def test_all_parts_touch_and_momentum_changes_by_the_forces(tmp_path):
    """Along the slide of the robot, in every step, by the forces of obstacles and of its motor; contacts act back."""
    sim = simulation(tmp_path)
    state, u = sim.state(), controls()[0]
    for k in range(STEPS):
        before = sim.sense(state).momentum[0, 0]
        state = sim.step(state, u[k : k + 1])
        report, after = sim.report(), sim.sense(state, u[k : k + 1])
        change = float(after.momentum[0, 0] - before) / sim.dt
        assert change == pytest.approx(float(after.torque[0, 0]) - report.obstacle_force[0, :, 0].sum(), abs=2e-3)
        total = report.contact_force[0].sum(axis=0) + report.bone_force[0].sum(axis=0)
        np.testing.assert_allclose(total, -report.obstacle_force[0].sum(axis=0), atol=1e-4)
    assert report.contacts[0] > 20
    assert (np.linalg.norm(report.obstacle_force[0], axis=1) > 0.1).all()
    assert (np.linalg.norm(report.bone_force[0, [0, 2]], axis=1) > 0.1).all()


@pytest.mark.verification(float32=True)
def test_a_restart_from_a_file_within_contact_has_the_same_bits(tmp_path):
    sim = simulation(tmp_path)
    u = controls()
    whole = sim.rollout(u, STEPS).final
    half = sim.rollout(u[:, : STEPS // 2], STEPS // 2).final
    sim.save_state(tmp_path / "half.npz", half)
    again = simulation(tmp_path)
    loaded = again.load_state(tmp_path / "half.npz")
    same(loaded, half)
    same(again.rollout(u[:, STEPS // 2 :], STEPS // 2, loaded).final, whole)


def test_worlds_are_those_of_single_runs(tmp_path):
    """To the bit, with controls, masses and moduli of their own."""
    many, one, u = simulation(tmp_path, 3), simulation(tmp_path), controls(3)
    given = {n: many.parameter(n) * torch.linspace(1.0, 1.4, 3).view(-1, 1) for n in ("mass", "youngs_modulus")}
    together = many.rollout(u, STEPS, **given).final
    for w in range(3):
        alone = one.rollout(u[w : w + 1], STEPS, **{n: v[w : w + 1] for n, v in given.items()}).final
        same(together, alone, slice(w, w + 1))


def test_a_world_that_is_reset_starts_again_and_the_others_go_on(tmp_path):
    sim, u, half = simulation(tmp_path, 3), controls(3), STEPS // 2
    state = sim.rollout(u[:, :half], half).final
    whole = sim.rollout(u, STEPS).final
    ended = sim.rollout(u[:, half:], half, sim.reset(state, [1])).final
    same(ended, whole, [0, 2], [0, 2])
    fresh = sim.rollout(u[:, half:], half).final
    same(ended, fresh, [1], [1])


@pytest.mark.parametrize("field", ("qd", pytest.param("velocity", marks=pytest.mark.slow)))
def test_a_lost_world_is_named_and_the_others_have_their_bits(field, tmp_path):
    """One world starts with a speed that no step of this length can follow, of the load or of the sponge."""
    sim, u = simulation(tmp_path, 3, max_halvings=1, max_iterations=300), controls(3)
    whole = sim.rollout(u, STEPS).final
    fast = getattr(sim.state(), field).clone()
    fast[1, ..., -4 if field == "qd" else 2] = -1e4
    with pytest.warns(wb.LostWorldWarning, match="lost world 1 of 3") as said:
        motion = sim.rollout(u, STEPS, sim.state(**{field: fast}))
    assert said[0].message.worlds == (1,)
    np.testing.assert_array_equal(motion.lost, [-1, 0, -1])
    same(motion.final, whole, [0, 2], [0, 2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        back = sim.reset(motion.final, motion.final.lost > 0)
        same(sim.rollout(u, STEPS, back).final, sim.rollout(u, STEPS, sim.reset(whole, [1])).final, [1], [1])


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize(
    "schedule",
    (wb.Checkpoints.every(3), pytest.param(wb.Checkpoints.sqrt(), marks=pytest.mark.slow)),
    ids=("every 3", "sqrt"),
)
def test_gradients_through_checkpoints_have_the_bits_of_the_plain_ones(schedule, tmp_path):
    """With respect to the start, the controls and parameters of both kinds, in two worlds."""
    found = []
    for checkpoints in (wb.Checkpoints.all(), schedule):
        options = {"worlds": 2, "checkpoints": checkpoints}
        sim = Simulation(mixed(tmp_path), ProjectiveDynamics(0.03), 4e-3, substeps=1, **options)
        rest = sim.state()
        start = {n: getattr(rest, n).clone().requires_grad_() for n in ("position", "velocity", "q", "qd")}
        names = ("mass", "youngs_modulus", "friction", "body_friction", "gravity")
        given = {n: sim.parameter(n).requires_grad_() for n in names}
        u = controls(2).to(rest.position).requires_grad_()
        motion = sim.rollout(u, STEPS, sim.state(**start), observe=lambda s: s.position.mean(1), **given)
        loss = motion.final.q.square().sum() + motion.final.velocity.square().sum() + motion.observation.square().sum()
        found.append(torch.autograd.grad(loss, (u, *start.values(), *given.values())))
    for name, a, b in zip(("control", *start, *given), *found, strict=True):
        assert a.abs().max() > 0.0, name
        assert torch.equal(a, b), name


@pytest.mark.verification(float32=True)
def test_a_scene_with_other_parameters_moves_as_the_simulation_with_them(tmp_path):
    """Parameters of both kinds that are baked into a scene, which is then written to USD and read, to the bit."""
    sim, u = simulation(tmp_path), controls()
    given = {n: sim.parameter(n) * s for n, s in (("mass", 1.3), ("youngs_modulus", 1.2), ("body_friction", 0.7))}
    expected = sim.rollout(u, STEPS, **given).final
    scene = sim.scene_with(**given)
    path = tmp_path / "mixed.usda"
    wb.usd.write(path, scene)
    for other in (scene, wb.usd.read(path)):
        same(Simulation(other, sim.solver, sim.dt, substeps=1).rollout(u, STEPS).final, expected)


def test_observers_measure_both_kinds(tmp_path):
    """A joint, a point of the robot, the middle of the sponge and its strain, with gradients by the control."""
    sim = simulation(tmp_path)
    u = controls().to(sim.state().position).requires_grad_()
    end = sim.rollout(u, STEPS).final
    kinds = wb.observers.Joints(), wb.observers.EndEffector("flap"), wb.observers.Centroid("all")
    joints, flap, middle, strain = (o.bind(sim)(end) for o in (*kinds, wb.observers.Strain("all")))
    r = sim.sense(end)
    np.testing.assert_allclose(joints[0, 0].detach(), end.q[0, 0].detach(), atol=1e-6)
    np.testing.assert_allclose(flap.detach(), r.position[:, sim.model.robot.body("flap")].detach(), atol=1e-6)
    assert strain[0, 0] < 0.0  # pushed together
    for seen in (joints, flap, middle, strain):
        (slope,) = torch.autograd.grad(seen.sum(), u, retain_graph=True)
        assert slope[..., 0].abs().max() > 0.0


@pytest.mark.slow
def test_pictures_and_usd_show_all_bodies_where_they_are(tmp_path):
    """A film strip of a motion, and time samples of the load, the sponge and the press."""
    from pxr import Usd, UsdGeom

    sim = simulation(tmp_path)
    motion = sim.rollout(controls(), STEPS)
    wb.usd.write(tmp_path / "motion.usda", motion, fps=1.0 / sim.dt)
    stage = Usd.Stage.Open(str(tmp_path / "motion.usda"))
    prims = {p.GetName(): p for p in stage.TraverseAll()}
    last = stage.GetEndTimeCode()
    places = {n: UsdGeom.Xformable(prims[n]).ComputeLocalToWorldTransform(last) for n in ("load", "flap")}
    r = sim.sense(motion.final)
    for name, place in places.items():
        where = r.position[0, sim.model.robot.body(name)].numpy()
        np.testing.assert_allclose(np.array(place.ExtractTranslation()), where, atol=1e-6)
    assert last == STEPS
    sunk = UsdGeom.Xformable(prims["press"]).ComputeLocalToWorldTransform(last)
    start = UsdGeom.Xformable(prims["press"]).ComputeLocalToWorldTransform(0)
    lowered = (start.ExtractTranslation() - sunk.ExtractTranslation())[2]
    assert lowered == pytest.approx(float(motion.final.travel[0, 0]), abs=1e-6)
    assert np.ptp(np.asarray(wb.view.film_strip(motion, 2))) > 100


@pytest.mark.slow
def test_commands_take_a_scene_of_both_kinds(tmp_path, capsys):
    """`info` names all parts, `simulate` writes the motion, and `convert` refuses what other formats do not know."""
    wb.usd.write(tmp_path / "mixed.usda", mixed(tmp_path))
    options = ["--solver", "projective", "--dx", "0.03"]
    assert main(["info", str(tmp_path / "mixed.usda"), *options]) == 0
    said = capsys.readouterr().out
    for part in ("body load: Box", "body sponge: Box", "joint hinge: revolute", "obstacle press: Box", "Muscle pull"):
        assert part in said
    out = tmp_path / "out"
    assert main(["simulate", str(tmp_path / "mixed.usda"), *options, "--steps", "2", "--out", str(out)]) == 0
    assert (out / "motion.usda").exists()
    assert main(["convert", str(tmp_path / "mixed.usda"), str(tmp_path / "mixed.urdf")]) == 2
    assert "the scene has SoftBody 'sponge'" in capsys.readouterr().err
