"""What a user does on a bench: controls, parameters, pulls, recordings and gradients."""

import dataclasses

import numpy as np
import pytest
import torch
from bench_cases import ball_beside_cube, flat_bar, press, rod, soft_cube

import warpbots as wb
from warpbots.bench import Ray
from warpbots.scene import Box
from warpbots.trajectory import obstacles_at


def down(x, y, z=1.0):
    """A line of sight that looks down."""
    return Ray.of([x, y, z], [0, 0, -1], [0, 0, -1])


def aside(x, z):
    """A line of sight along the y axis."""
    return Ray.of([x, -2.0, z], [0, 1, 0], [0, 1, 0])


def test_its_steps_are_those_of_a_rollout():
    sim = flat_bar()
    bench = sim.bench()
    bench.set_control(0, 0.7)
    bench.step(5)
    table = torch.tensor([[0.7, 0.0]]).expand(5, 2)
    assert torch.equal(bench.state.position, sim.rollout(table, 5).final.position)
    assert bench.time == pytest.approx(5 * sim.dt) and not bench.playing
    bench.reset()
    assert bench.time == 0.0 and torch.equal(bench.state.position, sim.state().position)
    assert bench.control.tolist() == [0.7, 0.0]  # sliders stay


def test_a_controller_drives_until_a_slider_is_moved():
    bench = flat_bar().bench(controller=lambda state, time: torch.tensor([0.5, -0.25]))
    bench.step()
    assert bench.shown_control.tolist() == [0.5, -0.25]
    bench.set_control(1, 1.0)
    bench.step()
    assert bench.shown_control.tolist() == [0.5, 1.0]


def test_a_factor_multiplies_a_parameter():
    sim = flat_bar()
    bench = sim.bench(parameters=["youngs_modulus", "gravity"])
    bench.set_factor("youngs_modulus", 0.5)
    bench.step(4)
    E = 0.5 * sim.parameter("youngs_modulus")
    assert torch.equal(bench.state.position, sim.rollout(None, 4, youngs_modulus=E).final.position)
    bench.set_factor("youngs_modulus", 1.0)
    bench.reset()
    bench.step(4)
    assert torch.equal(bench.state.position, sim.rollout(None, 4).final.position)


def test_a_factor_with_unstable_steps_is_refused_and_taken_back():
    bench = flat_bar().bench()
    with pytest.raises(ValueError, match="over the stability bound"):
        bench.set_factor("youngs_modulus", 1e4)
    assert bench.factors["youngs_modulus"] == 1.0
    bench.step()


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda b: b.set_control(2, 0.0), "channel must be from 0 to 1, got 2"),
        (lambda b: b.set_control(0, 1.5), "from -1 to 1, got 1.5"),
        (lambda b: b.set_factor("mass", 2.0), "there is no slider 'mass'; there are youngs_modulus, friction, gravity"),
        (lambda b: b.simulation.bench(world=1), "world must be from 0 to 0, got 1"),
        (lambda b: b.simulation.bench(horizon=0), "horizon must be at least 1, got 0"),
        (lambda b: b.simulation.bench(parameters=["load"]), "'load' is 0 everywhere"),
        (
            lambda b: b.simulation.bench(curves={"x": lambda s: s.position[0]}).curves(),
            "curve 'x' must return one number",
        ),
        (lambda b: Ray.of([0, 0, 0], [0, 0, 0], [0, 0, 1]), "three finite vectors"),
    ],
)
def test_faults_are_named(act, words):
    with pytest.raises((ValueError, KeyError), match=words):
        act(flat_bar().bench())


def test_the_first_body_along_a_ray_is_held():
    """Against closed forms: the ball in front of the cube, and the cube beside it."""
    bench = ball_beside_cube().bench()
    assert bench.grab(aside(0.06, 0.0))
    y = -0.2 - np.sqrt(0.03**2 - 0.01**2)  # on the near side of the ball
    assert bench.pulled[0] == pytest.approx([0.06, y, 0.0], abs=1e-3)  # the mesh of a ball is a polyhedron
    assert bench.grab(aside(-0.04, 0.03))
    assert bench.pulled[0] == pytest.approx([-0.04, 0.0, 0.03], abs=1e-6)
    assert not bench.grab(aside(0.3, 0.0))


def test_a_ray_that_meets_an_obstacle_first_holds_nothing():
    wall = wb.Obstacle(Box((-0.1, -0.3, -0.1), (0.1, -0.26, 0.1)), name="wall")
    sim = ball_beside_cube()
    sim = wb.Simulation(dataclasses.replace(sim.scene, obstacles=[wall]), sim.solver, dt=sim.dt)
    assert not sim.bench().grab(aside(0.05, 0.0))
    assert sim.bench().grab(down(0.05, -0.2))


@pytest.mark.parametrize("make", [soft_cube, rod])
def test_a_body_hangs_below_the_pointer_by_its_weight(make):
    """At rest the spring carries the weight: m g / k = a tenth of the view, unless the step limits the stiffness."""
    bench = make().bench()
    assert bench.grab(down(0.0, 0.0))
    bench.step(400)
    point, target = map(np.array, bench.pulled)
    assert np.abs(point - target)[:2].max() < 1e-3
    held = bench._drag.held
    stiffness = min(9.81 * held.whole / (0.1 * bench.drawing.size), 0.4 * held.part / bench.simulation.dt**2)
    assert (target - point)[2] == pytest.approx(9.81 * held.whole / stiffness, rel=0.02)
    bench.release()
    heights = []
    for _ in range(3):
        heights.append(float(bench.simulation.center_of_mass(bench.state)[0, 2]))
        bench.step(10)
    assert np.diff(heights, 2)[0] == pytest.approx(-9.81 * (10 * bench.simulation.dt) ** 2, rel=0.02)


def test_a_pull_at_the_end_of_a_rod_turns_it():
    """Force and torque: m a = F and I alpha = r F, with a pointer at rest at a known distance."""
    sim = rod()
    sim = wb.Simulation(dataclasses.replace(sim.scene, gravity=(0.0, 0.0, 0.0)), sim.solver, dt=sim.dt)
    bench = sim.bench()
    assert bench.grab(down(0.15, 0.0))
    bench.drag(Ray.of([0.15, 0.1, 1.0], [0, 0, -1], [0, 0, -1]))
    bench.step()
    r = sim.sense(bench.state)
    stiffness = min(9.81 / (0.1 * bench.drawing.size), 0.4 * 0.25 / sim.dt**2)
    impulse = min(0.1 * stiffness, 5.0 * 9.81) * sim.dt
    inertia = (0.4**2 + 0.04**2) / 12.0
    assert float(r.velocity[0, 0, 1]) == pytest.approx(impulse, rel=1e-3)
    assert float(r.angular_velocity[0, 0, 2]) == pytest.approx(0.15 * impulse / inertia, rel=1e-3)


def test_the_pull_of_a_flat_body_points_to_the_pointer():
    bench = flat_bar().bench()
    eye = [0.2, -1.0, 0.125]  # the browser shows x and y of the scene as x and z
    assert bench.grab(Ray.of(eye, [0, 1, 0], [0, 1, 0]))
    bench.drag(Ray.of([0.2, -1.0, 0.3], [0, 1, 0], [0, 1, 0]))
    start = bench.simulation.center_of_mass(bench.state)
    bench.step(20)
    moved = (bench.simulation.center_of_mass(bench.state) - start)[0]
    assert moved[1] > 0.01 and abs(moved[0]) < 0.03 * moved[1]


def test_the_load_of_a_scene_goes_on_while_it_is_pulled():
    top = {"top": Box((-0.05, -0.05, 0.03), (0.05, 0.05, 0.05))}
    cube = dataclasses.replace(soft_cube().scene.bodies[0], regions=top)
    scene = wb.Scene([cube], loads=[wb.Load("top", (1.0, 0.0, 0.0))], gravity=(0.0, 0.0, 0.0))
    bench = wb.Simulation(scene, wb.ProjectiveDynamics(0.05), dt=0.01).bench()
    assert bench.grab(down(0.0, 0.0))  # the pointer stays: only the load acts
    bench.step()
    momentum = bench.simulation.sense(bench.state).momentum[0]
    assert momentum.tolist() == pytest.approx([0.01, 0.0, 0.0], abs=1e-4)


def test_an_obstacle_follows_the_pointer_by_its_drives():
    """As far as the pointer, no faster than the drives, and only along their axes; it stops when it is let go."""
    drives = [
        wb.actuators.VelocityDrive("down", "plate", 0.5, axis=(0.0, 0.0, -1.0)),
        wb.actuators.VelocityDrive("aside", "plate", 0.2, axis=(1.0, 0.0, 0.0)),
    ]
    bench = press(*drives).bench()
    assert bench.grab(aside(0.03, 0.11))
    bench.drag(aside(0.05, 0.08))
    bench.step()
    assert bench.control.tolist() == pytest.approx([1.0, 1.0])  # 2 and 3 cm in 10 ms are too fast
    bench.step(30)
    (position, _) = obstacles_at(bench.simulation, bench.state)
    assert position[0] == pytest.approx([0.02, 0.0, -0.03], abs=1e-4)
    assert bench.pulled[0] == pytest.approx([0.05, -0.06, 0.08], abs=1e-4)
    bench.release()
    bench.step(3)
    assert obstacles_at(bench.simulation, bench.state)[0][0] == pytest.approx(position[0], abs=1e-6)
    assert bench.control.tolist() == [0.0, 0.0]


def test_an_obstacle_turns_with_the_pointer():
    drive = wb.actuators.VelocityDrive("turn", "plate", 2.0, (0.0, 0.0, 1.0), "rotation", pivot=(0.0, 0.0, 0.0))
    bench = press(drive).bench()
    assert bench.grab(down(0.05, 0.0))
    bench.drag(down(0.04, 0.03))
    bench.step(60)
    angle = np.arctan2(*obstacles_at(bench.simulation, bench.state)[1][0][[1, 0], 0])
    assert angle == pytest.approx(np.arctan2(0.03, 0.04), abs=1e-3)


def test_an_obstacle_that_nothing_moves_cannot_be_held():
    assert not press().bench().grab(aside(0.03, 0.11))


def test_a_recording_is_the_motion_with_its_pulls(tmp_path):
    bench = soft_cube(gravity=(0.0, 0.0, 0.0)).bench()
    assert bench.stop() is None
    bench.step(2)
    bench.record()
    bench.grab(down(0.0, 0.0))
    bench.drag(down(0.1, 0.0))
    seen = [bench.state.position]
    for _ in range(6):
        bench.step()
        seen.append(bench.state.position)
    motion = bench.stop()
    assert bench.recording is motion and motion.steps == 6 and "bench.recording" in bench.message
    for (time, state), i, x in zip(motion.states(), range(7), seen, strict=True):
        assert time == pytest.approx(i * 0.01) and torch.equal(state.position, x)
    assert [round(t, 6) for t, _ in motion.states(every=4)] == [0.0, 0.04, 0.06]
    assert not torch.equal(seen[0], seen[-1])
    wb.usd.write(tmp_path / "pulled.usda", motion)
    from pxr import Usd, UsdGeom

    stage = Usd.Stage.Open(str(tmp_path / "pulled.usda"))
    points = next(
        p for p in map(UsdGeom.PointBased, stage.Traverse()) if p and len(p.GetPointsAttr().GetTimeSamples()) > 6
    )
    times = points.GetPointsAttr().GetTimeSamples()
    first, last = (np.array(points.GetPointsAttr().Get(time)) for time in (times[0], times[-1]))
    for written, x in ((first, seen[0]), (last, seen[-1])):
        x = x[0].numpy()
        assert np.abs(written[:, None] - x).max(axis=2).min(axis=1).max() < 1e-6  # each of them is a node
    import copy

    again = copy.deepcopy(motion)
    assert all(
        torch.equal(a.position, b.position) for (_, a), (_, b) in zip(again.states(), motion.states(), strict=True)
    )


def test_a_recorded_moment_is_found_again_and_the_simulation_goes_on_from_there():
    bench = soft_cube().bench()
    bench.step(3)
    with pytest.raises(ValueError, match="needs a recording, but nothing was recorded; call record"):
        bench.seek(0.0)
    bench.record()
    assert bench.recorded_span is None
    bench.step(2)
    with pytest.raises(ValueError, match="needs a recording, but it is recording; call stop"):
        bench.seek(0.0)
    middle, later = bench.state.position, []
    for _ in range(3):
        bench.step()
        later.append(bench.state.position)
    bench.stop()
    bench.step(4)
    bench.play()
    bench.seek(0.0201)
    assert not bench.playing
    assert torch.equal(bench.state.position, middle)
    assert bench.time == pytest.approx(0.05) and bench.recorded_span == pytest.approx([0.03, 0.08])
    for x in later:
        bench.step()
        assert torch.equal(bench.state.position, x)
    with pytest.raises(ValueError, match="time must be from 0 to 0.05 s, the end of the recording, got 0.2"):
        bench.seek(0.2)


def test_arrows_lower_the_loss_and_colours_say_where_to_be_stiffer():
    """Against a small displacement and a small change of stiffness of all points along the gradient."""
    bench = flat_bar().bench(horizon=10, loss=lambda t: -t.simulation.center_of_mass(t.final)[:, 1].mean())
    sim = bench.simulation
    bench.step(4)
    bench.show_gradient()
    ends = bench.arrows().reshape(-1, 2, 3)
    assert len(ends) and np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1).max() == pytest.approx(
        0.12 * bench.drawing.size, rel=1e-3
    )
    up = (ends[:, 1] - ends[:, 0])[:, 2].mean()
    assert up > 0.0  # higher matter ends higher
    bench.step(40)  # on the floor
    loss = bench.show_gradient(stiffness=True)
    blue = bench._colors[:, 2] > bench._colors[:, 0]
    places = sim.model.matter.position
    assert blue.shape == (len(places),) and 0 < blue.sum() < len(blue)
    E = sim.parameter("youngs_modulus")
    found = {}
    for name, mask in (("blue", blue), ("red", ~blue)):
        stiffer = torch.where(torch.as_tensor(mask), 1.02 * E, E)
        end = sim.rollout(None, 10, bench.state, youngs_modulus=stiffer).final
        found[name] = -float(sim.center_of_mass(end)[0, 1]) - loss
    assert found["blue"] < 0.0 < found["red"]
    bench.step()
    assert not len(bench.arrows()) and bench._colors is None  # of an earlier state


def test_the_default_loss_is_the_distance_that_warpbots_train_maximises():
    bench = flat_bar().bench(horizon=3)
    loss = bench.show_gradient()
    sim = bench.simulation
    moved = sim.center_of_mass(sim.rollout(None, 3).final) - sim.center_of_mass(sim.state())
    assert loss == pytest.approx(-float(moved[0, 0]), abs=1e-7)


def test_curves_are_energies_or_what_a_user_gives():
    sim = rod()
    bench = sim.bench()
    bench.step(10)
    r = sim.sense(bench.state)
    assert dict(zip(bench.header()["curves"], bench.curves(), strict=True)) == {
        "kinetic energy [J]": pytest.approx(float(r.kinetic_energy.sum())),
        "potential energy [J]": pytest.approx(float(r.potential_energy.sum())),
    }
    bench = sim.bench(curves={"height": lambda s: sim.center_of_mass(s)[:, 2]})
    assert bench.curves() == [pytest.approx(0.0, abs=1e-6)]


def test_its_picture_is_that_of_the_state():
    bench = flat_bar().bench()
    first = np.asarray(bench.picture())
    bench.step(20)
    assert first.shape[2] == 3 and not np.array_equal(first, np.asarray(bench.picture()))
