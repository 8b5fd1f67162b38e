"""Limits of joints: springs with damping that is never greater than they are, in closed forms and beside MuJoCo's."""

import dataclasses
import math

import mujoco
import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

import warpbots as wb
from warpbots.solvers.articulated import joint_limits

MASS, OMEGA = 2.0, 20.0
STIFFNESS, CRITICAL = MASS * OMEGA**2, 2.0 * MASS * OMEGA
ONE = np.array([-1.0, 1.0])

SWING = """<mujoco><option gravity="0 0 0"/><worldbody><body name="leg">
  <joint name="knee" axis="0 1 0" limited="true" range="-140 -28.6478897565" solreflimit="{solref}"
         solimplimit="{solimp}"/>
  <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02" contype="0" conaffinity="0"/>
</body></worldbody></mujoco>"""
"""A leg that starts half a radian outside of the range of its knee."""


def slide(side, start, velocity, damping, steps, h=1e-4, integrator="sdirk2"):
    """Coordinates and velocities of a weightless slider at every step, whose limit is at 0 on a side, +1 or -1."""
    rail = wb.Joint(
        "rail", "prismatic", None, "cart", start=side * start, start_velocity=side * velocity, limit_damping=damping,
        limit_stiffness=STIFFNESS, **{"upper" if side > 0 else "lower": 0.0},
    )  # fmt: skip
    cart = wb.RigidBody("cart", None, inertia=wb.Inertia(MASS, (0, 0, 0), (1, 1, 1)))
    sim = wb.Simulation(wb.Scene((cart,), gravity=(0, 0, 0), joints=(rail,)), wb.Articulated(integrator), dt=h)
    trajectory = sim.rollout(None, steps)
    states = [state for _, state in trajectory.states()]
    return (side * np.array([float(getattr(s, f)[0, 0]) for s in states]) for f in ("q", "qd"))


def swings(path, h, steps):
    """Velocities of a joint at every step: MuJoCo's, and ours."""
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.timestep = h
    data, theirs = mujoco.MjData(model), [0.0]
    for _ in range(steps):
        mujoco.mj_step(model, data)
        theirs.append(data.qvel[0])
    sim = wb.Simulation(wb.robots.load(path), wb.Articulated(), dt=h)
    ours = [float(state.qd[0, 0]) for _, state in sim.rollout(None, steps).states()]
    return np.array(theirs), np.array(ours)


@pytest.mark.parametrize("side", [1, -1])
def test_what_is_let_go_behind_a_limit_moves_as_a_damped_spring_and_is_not_held_back(side):
    """x = x_0 (1 + wt) exp(-wt) with critical damping, up to wt = 1, where the force is zero; then it coasts at the
    greatest speed, x_0 w / e, as limits do not pull."""
    x, v = slide(side, 0.01, 0.0, CRITICAL, 1500)
    t = 1e-4 * np.arange(len(x))
    within = OMEGA * t <= 1.0
    spring = 0.01 * (1.0 + OMEGA * t) * np.exp(-OMEGA * t)
    np.testing.assert_allclose(x[within], spring[within], atol=1e-7)
    np.testing.assert_allclose(v[~within], -0.01 * OMEGA / math.e, rtol=1e-3)


@pytest.mark.parametrize("ratio", [0.0, 0.3, 1.0, 4.0])
def test_what_meets_a_limit_moves_as_the_law_says(ratio):
    """x'' = -w^2 x - clip(2 ratio w x', -w^2 x, w^2 x) by a scheme of order eight; without damping all of the speed
    comes back, with critical damping a quarter."""
    x, v = slide(1, 0.0, 1.0, ratio * CRITICAL, 4000, h=5e-5)

    def rate(t, y):
        return y[1], -max(0.0, OMEGA**2 * y[0] + np.clip(2 * ratio * OMEGA * y[1], *(OMEGA**2 * y[0] * ONE)))

    exact = solve_ivp(rate, (0, 0.2), (0.0, 1.0), method="DOP853", rtol=1e-9, atol=1e-12, max_step=1e-3).y
    assert x.max() == pytest.approx(exact[0].max(), rel=1e-3)
    assert v[-1] == pytest.approx(exact[1, -1], abs=2e-3)
    if ratio in (0.0, 1.0):
        assert v[-1] == pytest.approx({0.0: -1.0, 1.0: -0.264}[ratio], abs=2e-3)


@pytest.mark.parametrize("solref", ["0.03 1", "0.02 0.5", "-700 -40"])
def test_limits_of_files_are_as_quick_as_mujocos(solref, tmp_path):
    """With no inertia of constraints (solimp near 0) the motion is the same; gravity is off, and the start outside."""
    path = tmp_path / "robot.xml"
    path.write_text(SWING.format(solref=solref, solimp="0.0001 0.0001 0.001"))
    theirs, ours = swings(path, 1e-4, 700)
    assert np.abs(theirs).max() > 1.0
    np.testing.assert_allclose(ours, theirs, atol=0.01 * np.abs(theirs).max())


def test_a_start_outside_of_limits_is_no_explosion(tmp_path):
    """With MuJoCo's own solimp limits are stiffer here, as they move no inertia but the bodies'; the speed with which
    they throw a leg back stays near MuJoCo's."""
    path = tmp_path / "robot.xml"
    path.write_text(SWING.format(solref="0.02 1", solimp="0.9 0.95 0.001"))
    theirs, ours = (np.abs(v).max() for v in swings(path, 1e-4, 1000))
    assert 0.5 / 0.04 * 0.8 < ours < 1.5 * theirs
    _, rough = (np.abs(v).max() for v in swings(path, 2e-3, 50))
    assert rough < 3.0 * theirs


def lever(mass, arm, integrator="sdirk2", **joint):
    """A weight at the end of a lever that lies along x, on a hinge whose limit is there."""
    moment = 1e-4 * mass * arm**2
    weight = wb.RigidBody("weight", None, inertia=wb.Inertia(mass, (arm, 0, 0), (moment, moment, moment)))
    hinge = wb.Joint("hinge", "revolute", None, "weight", axis=(0, 1, 0), upper=0.0, **joint)
    return wb.Scene((weight,), joints=(hinge,)), wb.Articulated(integrator)


@pytest.mark.parametrize("integrator", ["sdirk2", "bdf1"])
@pytest.mark.parametrize(("mass", "arm"), [(100.0, 1.0), (3e4, 2.0), (0.01, 0.05)])
def test_what_falls_on_a_limit_without_a_stiffness_sinks_in_alike_whatever_its_mass_and_comes_to_rest(
    mass, arm, integrator
):
    """At rest by g / (r w^2); from rad 0.3 above, at most by the speed over w and twice the depth at rest."""
    scene, solver = lever(mass, arm, integrator, start=-0.3)
    depth = 9.81 / arm * joint_limits.TIME**2 / 1.0001
    sim = wb.Simulation(scene, solver, dt=2e-3)
    q, v = sim.rollout(None, 800, observe=lambda s: torch.cat([s.q, s.qd], 1)).observation[0].numpy().T
    speed = math.sqrt(2.0 * 9.81 / arm * math.sin(0.3))
    assert q.max() < speed * joint_limits.TIME + 2.0 * depth
    assert q[-1] == pytest.approx(depth, rel=1e-3)
    assert abs(v[-100:]).max() < 1e-6


def law(scene):
    """Stiffness and damping of the limits of a scene under the solver."""
    sim = wb.Simulation(scene, wb.Articulated(), dt=1e-3)
    return (sim.parameter(f"limit_{name}")[0].numpy() for name in ("stiffness", "damping"))


def test_limits_without_a_stiffness_stop_the_greatest_inertia_beyond_the_joint():
    """Two links in line whose masses are on the axis at zero: a turned elbow brings them 0.5 m away from it."""
    links = [
        wb.RigidBody(n, None, position=(0, 0, z), inertia=wb.Inertia(m, (0, 0, 0.1), (0.02, 0.03, 0.04)))
        for n, m, z in (("upper", 2.0, 1.0), ("fore", 3.0, 1.4))
    ]
    joints = [
        wb.Joint("roll", "revolute", None, "upper", position=(0, 0, 1.0), armature=0.5, lower=-1.0),
        wb.Joint("elbow", "revolute", "upper", "fore", position=(0, 0, 1.4), axis=(0, 1, 0), lower=-1.0, upper=1.0),
    ]
    k, d = law(wb.Scene(links, joints=joints))
    inertia = np.array([0.5 + 2 * 0.03 + 2.0 * 0.1**2 + 3.0 * 0.5**2, 0.03 + 3.0 * 0.1**2])
    np.testing.assert_allclose(k, inertia / joint_limits.TIME**2, rtol=1e-12)
    np.testing.assert_allclose(d, 2.0 * inertia / joint_limits.TIME, rtol=1e-12)
    k, d = law(wb.Scene(links, joints=[wb.Joint("slide", "planar", None, "upper", upper=(1.0, 2.0)), joints[1]]))
    np.testing.assert_allclose(k[:2], 5.0 / joint_limits.TIME**2, rtol=1e-12)
    np.testing.assert_allclose(d[:2], 10.0 / joint_limits.TIME, rtol=1e-12)


def test_limits_without_a_stiffness_withstand_motors_and_springs():
    """A weak link of 1 g on a strong motor rests 0.01 rad behind its limit at u = 1."""
    scene, solver = lever(1e-3, 0.02)
    scene = dataclasses.replace(scene, actuators=(wb.actuators.Torque("motor", "hinge", 0.3),), gravity=(0, 0, 0))
    end = wb.Simulation(scene, solver, dt=2e-3).rollout(torch.ones(500, 1), 500).final
    assert float(end.q) == pytest.approx(joint_limits.GIVES[True], rel=1e-6)
    assert abs(float(end.qd)) < 1e-9
    scene, _ = lever(1e-3, 0.02, stiffness=0.5, neutral=1.0)
    servo = dataclasses.replace(scene, actuators=(wb.actuators.Servo("servo", "hinge", 2.0),))
    assert next(law(servo))[0] == pytest.approx(250.0)


def test_a_stiffness_or_a_damping_that_is_given_stays():
    (k,), (d,) = law(lever(100.0, 1.0, limit_stiffness=700.0)[0])
    assert (k, d) == (700.0, pytest.approx(2.0 * math.sqrt(700.0 * 100.01)))
    (k,), (d,) = law(lever(100.0, 1.0, limit_damping=0.0)[0])
    assert (k, d) == (pytest.approx(100.01 / joint_limits.TIME**2), 0.0)


def test_limits_in_degrees_are_named():
    """Right angles and the like, on hinges alone; limits of several turns as in files, and radians, are silent."""

    def built(kind: str, lower: float, upper: float) -> None:
        bob = wb.RigidBody("bob", wb.shapes.Sphere((0, 0, 0), 0.1))
        hinge = wb.Joint("hinge", kind, None, "bob", lower=lower, upper=upper, start=min(upper, 0.0))
        wb.Articulated().build(wb.Scene([bob], joints=[hinge]))

    for ends in ((-90.0, 90.0), (0.0, 135.0), (-math.inf, 45.0)):
        with pytest.warns(
            UserWarning, match=r"Joint 'hinge': its limits .* look like degrees: give radians, such as np"
        ):
            built("revolute", *ends)
    for ends in ((-1.5, 1.5), (-20.0, 20.0), (-1e4, 1e4), (-math.inf, 1.0), (0.0, math.pi)):
        built("revolute", *ends)
    built("prismatic", -90.0, 90.0)


@pytest.mark.parametrize("solver", (wb.Articulated(), wb.ProjectiveDynamics(0.1)), ids=("Articulated", "Projective"))
def test_starts_and_targets_in_degrees_are_named(solver):
    """45 rad are seven turns, at which a leg starts as at 0.16 turns; lengths and turns as in files are silent."""

    def built(kind: str = "revolute", start: float = 0.0, **servo: float) -> None:
        bob = wb.RigidBody("bob", wb.shapes.Sphere((0, 0, 0), 0.1))
        hinge = wb.Joint("hinge", kind, None, "bob", start=start)
        motor = wb.actuators.Servo("motor", "hinge", 1.0, **servo)
        solver.build(wb.Scene([bob], [motor], joints=[hinge]))

    for said, numbers in (
        (
            r"Joint 'hinge': its start 45 rad is 7\.2 turns, and looks like degrees: give .* np\.radians\(45\)",
            {"start": 45},
        ),
        (r"Servo 'motor': its target -90 rad is 14\.3 turns, and looks", {"target": -90.0}),
        (r"Servo 'motor': its reach 30 rad is 4\.8 turns, and looks", {"reach": 30.0}),
    ):
        with pytest.warns(UserWarning, match=said):
            built(**numbers)
        built("prismatic", **numbers)
    built(start=0.7, target=1.5, reach=20.0)


@pytest.mark.parametrize("solver", (wb.Articulated(), wb.ProjectiveDynamics(0.1)), ids=("Articulated", "Projective"))
def test_a_target_beyond_a_limit_is_named(solver, recwarn):
    """Such a servo never rests; targets that only a signal moves beyond a limit, or less than it yields, are silent."""

    def built(kind: str = "revolute", lower: float = -1.0, upper: float = 0.5, **servo: float) -> None:
        bob = wb.RigidBody("bob", wb.shapes.Sphere((0, 0, 0), 0.1))
        joint = wb.Joint("joint", kind, None, "bob", lower=lower, upper=upper)
        solver.build(wb.Scene([bob], [wb.actuators.Servo("motor", "joint", 1.0, **servo)], joints=[joint]))

    for said, numbers in (
        (r"its target 1\.2 is beyond the limits -1 to 0\.5 .* while its signal is 0; give a target", {"target": 1.2}),
        (r"its target -1\.2 .* whatever its signal is; give a target", {"target": -1.2, "reach": 0.1}),
        (r"its target 0\.502 .* of Joint 'joint'", {"kind": "prismatic", "target": 0.502}),
        (r"its target -0\.1 .* limits 0 to inf", {"lower": 0.0, "upper": math.inf, "target": -0.1}),
    ):
        with pytest.warns(UserWarning, match=f"^Servo 'motor': {said}"):
            built(**numbers)
    for numbers in ({"target": 0.5, "reach": 9.0}, {"target": 0.509}, {"target": 9.0, "upper": math.inf}):
        built(**numbers)
    assert not recwarn


def hit(stiffness, h, integrator="sdirk2", phases=16):
    """Speeds after a slider of `MASS` meets a limit at 1 m/s, at times spread over a step: a world for each."""
    sim = on_rail(stiffness, h, integrator, phases)
    q = -1.5 * h - h * torch.arange(phases, dtype=torch.float64)[:, None] / phases
    return (
        sim.rollout(None, 8 + math.ceil(8.0 * math.sqrt(MASS / stiffness) / h), sim.state(q=q)).final.qd[:, 0].numpy()
    )


def on_rail(stiffness, h, integrator="sdirk2", worlds=1):
    cart = wb.RigidBody("cart", None, inertia=wb.Inertia(MASS, (0, 0, 0), (1, 1, 1)))
    rail = wb.Joint("rail", "prismatic", None, "cart", start_velocity=1.0, upper=0.0, limit_stiffness=stiffness)
    scene = wb.Scene((cart,), gravity=(0, 0, 0), joints=(rail,))
    return wb.Simulation(scene, wb.Articulated(integrator), dt=h, substeps=1, worlds=worlds)


def test_steps_that_do_not_resolve_a_limit_are_named_with_steps_a_stiffness_and_an_integrator_that_help():
    """A critically damped limit throws back at 0.26 of the speed; at 1e9 N/m and 1 ms it did so at more than 1."""
    h = 1e-3
    with pytest.warns(UserWarning, match="^Joint 'rail': its limits of 1e[+]09 N/m, which stop 2 kg within 0.00014 s"):
        assert np.abs(hit(1e9, h)).max() > 1.2
    with pytest.warns(UserWarning, match=r"at most 0\.00013 s, a limit_stiffness of at most 1\.8e\+07 N/m, or integ"):
        on_rail(1e9, h)
    for advised in ((1e9, 1.3e-4), (1.8e7, h)):
        assert np.abs(hit(*advised)).max() < 0.75
    assert np.abs(hit(1e9, h, "bdf1")).max() < 0.27
    assert np.abs(hit(1e5, h)).mean() == pytest.approx(0.264, abs=5e-3)


def test_an_axis_without_bounds_has_no_limit_to_resolve(recwarn):
    """A slider that turns freely: the stiffness of its limits would be far too large for its small inertia."""
    thin = wb.RigidBody("thin", None, inertia=wb.Inertia(MASS, (0, 0, 0), (1e-6, 1e-6, 1e-6)))
    for upper in (math.inf, 1.0):
        rail = wb.Joint(
            "rail", "cylindrical", None, "thin", lower=(-1.0, -math.inf), upper=(1.0, upper), limit_stiffness=STIFFNESS
        )
        wb.Simulation(wb.Scene((thin,), joints=(rail,)), wb.Articulated(), dt=1e-3)
        assert [str(w.message)[:29] for w in recwarn] == ["Joint 'rail': its limits of 8"] * (upper == 1.0)
