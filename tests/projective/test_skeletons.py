"""Bones in soft bodies: that they stay rigid, that they move as bones do, and what is refused."""

import dataclasses

import numpy as np
import pytest
import torch
from pxr import Usd, UsdGeom
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation
from skeletons import BONES, arm, reached, simulated, stiff_pendulum, stirred_bones
from soft_bodies import IncrementalPotential

from warpbots import usd, view
from warpbots.scene import (
    Box,
    Constraint,
    HalfSpace,
    Material,
    RigidBody,
    Scene,
    SceneError,
    Servo,
    SoftBody,
    Torque,
    floor,
)
from warpbots.simulation import Simulation
from warpbots.solvers import Articulated, ProjectiveDynamics

verification = pytest.mark.verification

IDLE = {"body_friction", "joint_lower"}
"""What nothing depends on: no two surfaces touch, and the lower limit is far away."""


@pytest.mark.parametrize("root", ["revolute", "prismatic", "ball", "free"])
def test_bones_never_change_their_shape(root):
    """Distances of nodes that are bound to a bone stay those at rest, to rounding."""
    sim = simulated(arm(root, velocity=2.0), cell=0.02)
    final = sim.rollout(torch.full((40, 1), 0.7), 40).final
    particles = sim.model.matter
    for k in range(len(BONES)):
        at = np.flatnonzero(particles.bone == k)
        x, X = final.position[0, at].double().numpy(), particles.position[at]
        lengths, rest = (np.linalg.norm(a[:, None] - a, axis=2) for a in (x, X))
        assert np.abs(lengths - rest).max() <= 4 * np.finfo(np.float32).eps * np.abs(x).max()
    assert np.abs(reached(sim, final)).max() > 0.05


@verification
@pytest.mark.parametrize("root", ["revolute", "prismatic", "ball", "free"])
def test_without_soft_bodies_to_speak_of_bones_move_as_articulated_bodies(root):
    """Soft bodies of next to no weight and stiffness changes nothing of a motion with torques, springs and limits."""
    scene = arm(root, material=Material(1e-3, 0.3, 1e-4), velocity=2.0, upper=0.3)
    bodies = tuple(b for b in scene.bodies if isinstance(b, RigidBody))
    alone = Scene(bodies, scene.actuators, joints=scene.joints, gravity=scene.gravity)
    control = torch.full((30, 1), 0.8)
    soft = simulated(scene, cell=0.02).rollout(control, 30).final
    bare = Simulation(alone, Articulated("bdf1"), 0.005, substeps=1).rollout(control, 30).final
    np.testing.assert_allclose(soft.q, bare.q, atol=2e-6)
    np.testing.assert_allclose(soft.qd, bare.qd, atol=1e-4)
    assert bare.q.abs().max() > 0.2


@verification
@pytest.mark.parametrize("law", ["corotated", "neo_hookean"])
def test_a_step_ends_where_the_incremental_potential_is_least_among_poses_of_the_bones(law):
    """Weightless bones on a ball and a hinge: SciPy looks for angles and free nodes, and finds the same."""
    scene = arm(
        "ball", material=Material(5e4, 0.3, 1000.0, law), weightless=True, gravity=(2.0, 1.0, -9.81), motor=False
    )
    sim = simulated(scene, cell=0.03, thickness=0.06)
    state = sim.rollout(None, 3).final
    end = sim.step(state, torch.zeros(1, 0))
    particles, model = sim.model.matter, sim.model

    def whole(name: str) -> np.ndarray:
        return getattr(model, name).numpy()[0].astype(float)

    potential = IncrementalPotential(
        state.position[0].numpy(), state.velocity[0].numpy(), particles.tets, law, whole("youngs_modulus"),
        whole("poissons_ratio"), whole("density"), np.array(scene.gravity), np.zeros((len(particles), 3)), sim.dt,
        particles.position,
    )  # fmt: skip
    free = particles.bone < 0
    shoulder, elbow = (np.array(j.position) for j in scene.joints)

    def nodes(q: np.ndarray) -> np.ndarray:
        y = np.empty((len(particles), 3))
        y[free] = q[4:].reshape(-1, 3)
        upper, fore = Rotation.from_rotvec(q[:3]), Rotation.from_rotvec([0.0, q[3], 0.0])
        X = particles.position
        y[particles.bone == 0] = upper.apply(X[particles.bone == 0] - shoulder) + shoulder
        bent = fore.apply(X[particles.bone == 1] - elbow) + elbow
        y[particles.bone == 1] = upper.apply(bent - shoulder) + shoulder
        return y

    def value(q: np.ndarray) -> tuple[float, np.ndarray]:
        phi, slope = potential(nodes(q))
        turns = [
            (slope * (nodes(q + 1e-6 * e) - nodes(q - 1e-6 * e))).sum() / 2e-6 for e in np.eye(len(q))[:4]
        ]  # fmt: skip
        return phi, np.concatenate([turns, slope[free].reshape(-1)])

    start = np.concatenate([np.zeros(4), state.position[0].numpy()[free].reshape(-1)])
    found = minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": 20000, "maxfun": 40000, "ftol": 0.0, "gtol": 1e-9, "maxcor": 50})  # fmt: skip
    moved = (end.position - state.position).abs().max().item()
    np.testing.assert_allclose(nodes(found.x), end.position[0], atol=2e-6 * moved)
    assert abs(found.x[3]) > 1e-3


@verification
@pytest.mark.parametrize("kind", ["revolute", "ball", "prismatic"])
def test_pendulums_have_the_right_period(kind):
    """A bone with a stiff soft body swings about a point, or along a line on a spring: a quarter of a period to 0.1 %."""
    scene, period = stiff_pendulum(kind)
    sim = Simulation(scene, ProjectiveDynamics(0.03, collisions=False), period / 800, substeps=1)
    state, before = sim.state(), 1.0
    for step in range(250):
        state = sim.step(state, torch.zeros(1, 0))
        rate = float(state.qd[0].sum())
        if rate <= 0.0:  # it turns round
            break
        before = rate
    quarter = (step + before / (before - rate)) * sim.dt
    assert abs(quarter / (period / 4.0) - 1.0) < 1e-3


def test_gravity_and_inner_forces_leave_the_centre_of_mass_on_its_parabola():
    """A free arm that bends by a torque falls as a stone does; implicit Euler falls g h t / 2 further."""
    sim = simulated(arm("free", upper=None), cell=0.02)
    steps = 20
    final = sim.rollout(torch.full((steps, 1), 1.0), steps).final
    fall = (sim.center_of_mass(final) - sim.center_of_mass(sim.state()))[0].numpy()
    t = steps * sim.dt
    expected = 0.5 * 9.81 * t * (t + sim.dt)
    np.testing.assert_allclose(fall, [0, 0, -expected], atol=0.01 * expected)
    assert abs(float(final.q[0, -1])) > 0.1


@verification
@pytest.mark.filterwarnings("ignore:Joint 'elbow'. its limits of 500 N m/rad")  # nothing moves here
def test_bones_are_measured_as_articulated_bodies_are(rng):
    """Poses, velocities, energies and torques at any coordinates, and their gradients."""
    scene = arm("ball")
    sim = simulated(scene, cell=0.02)
    bodies = tuple(b for b in scene.bodies if isinstance(b, RigidBody))
    bare = Simulation(Scene(bodies, scene.actuators, joints=scene.joints), Articulated(), 0.005)
    q = torch.as_tensor(rng.normal(size=(1, 5)))
    q[:, :4] /= q[:, :4].norm()
    v, u = torch.as_tensor(rng.normal(size=(1, 4))), torch.tensor([[0.3]])
    found = sim.sense(sim.state(q=q, qd=v), u)
    wanted = bare.sense(bare.state(q=q, qd=v), u)
    for name in ("position", "rotation", "velocity", "angular_velocity", "center", "torque"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), atol=1e-12)
    np.testing.assert_allclose(found.bone_kinetic_energy, wanted.kinetic_energy, atol=1e-12)
    np.testing.assert_allclose(found.bone_potential_energy, wanted.potential_energy, atol=1e-12)
    slopes = []
    for one, state in ((sim, {"q": q, "qd": v}), (bare, {"q": q, "qd": v})):
        leaves = {
            n: a.clone().requires_grad_()
            for n, a in (state | {"control": u, "gravity": one.parameter("gravity")}).items()
        }
        at = one.state(**{n: leaves[n] for n in state})
        r = one.sense(at, leaves["control"], gravity=leaves["gravity"])
        energy = "bone_" if one is sim else ""
        kinetic, potential = (getattr(r, f"{energy}{kind}_energy").sum() for kind in ("kinetic", "potential"))
        (r.center.sum() + kinetic + potential + r.torque.sum()).backward()
        slopes.append([a.grad.numpy() for a in leaves.values()])
    for a, b in zip(*slopes, strict=True):
        assert np.abs(b).max() > 0.0
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_soft_bodies_and_bones_go_to_usd_and_into_pictures(tmp_path):
    """Points of the soft body and poses of the bones are those of the states, in the file of the trajectory."""
    sim = simulated(arm("free"), cell=0.02)
    motion = sim.rollout(torch.full((4, 1), 1.0), 4)
    usd.write(tmp_path / "arm.usda", motion, fps=200.0)
    stage = Usd.Stage.Open(str(tmp_path / "arm.usda"))
    code = stage.GetEndTimeCode()
    surface = UsdGeom.Mesh.Get(stage, "/World/Bodies/arm/Surface")
    mesh = sim.model.matter.meshes[0]
    shown = np.unique(mesh.faces)
    points = np.array(surface.GetPointsAttr().Get(code))
    x = motion.final.position[0].numpy()
    apart = np.linalg.norm(points[:, None] - x[shown], axis=2)
    assert apart.min(axis=1).max() < 1e-6 and apart.min(axis=0).max() < 1e-6  # at creases a node has several vertices
    (*_, (_, position, _)) = motion.poses()
    bone = UsdGeom.Xformable.Get(stage, "/World/Bodies/fore").ComputeLocalToWorldTransform(code)
    np.testing.assert_allclose(bone.ExtractTranslation(), position[1], atol=1e-6)
    assert np.asarray(view.film_strip(motion, 2)).std() > 0.0


def test_a_servo_bends_the_arm_and_limits_hold_it():
    bent = simulated(arm("fixed", motor=Servo("motor", "elbow", stiffness=5.0, damping=0.05, reach=1.0)), cell=0.02)
    final = bent.rollout(torch.full((200, 1), 0.5), 200).final
    assert 0.4 < float(final.q[0, 0]) < 0.55
    limited = simulated(arm("fixed", motor=Torque("motor", "elbow", 0.5), upper=0.1), cell=0.02)
    final = limited.rollout(torch.full((200, 1), 1.0), 200).final
    assert 0.1 < float(final.q[0, 0]) < 0.102


def test_bones_that_reach_the_skin_touch_the_floor_without_penetration():
    """The arm falls flat on the floor and lies there; its bones are as thick as itself."""
    sim = simulated(arm("free", thickness=0.06, obstacles=(floor(-0.05, friction=0.5),), upper=None), cell=0.03)
    final = sim.rollout(torch.zeros(120, 1), 120).final
    z = final.position[0, :, 2]
    assert float(z.min()) > -0.05 - 1e-6
    assert int((z < -0.05 + 1e-5).sum()) > 10
    assert float(final.velocity.abs().max()) < 0.02


def test_worlds_are_independent():
    """Three arms with bones on a floor, each with a torque of its own, move as each does alone, and so do gradients."""
    scene = arm("free", obstacles=(floor(-0.0305, friction=0.4),), upper=None)
    torques = torch.tensor([-0.8, 0.0, 0.8])
    ends = []
    for rows in (torques, *torques[:, None]):
        sim = Simulation(scene, ProjectiveDynamics(0.02), 0.005, worlds=len(rows), substeps=1)
        control = rows[:, None, None].expand(len(rows), 8, 1).clone().requires_grad_()
        final = sim.rollout(control, 8).final
        final.position[:, :, 2].sum().backward()
        ends.append((final.position.detach(), final.q.detach(), control.grad[:, 0, 0]))
    for w in range(3):
        for together, alone in zip(ends[0], ends[w + 1], strict=True):
            assert torch.allclose(together[w], alone[0], rtol=1e-3, atol=1e-6)
    assert not torch.allclose(ends[0][0][0], ends[0][0][2], atol=1e-4)


def test_floating_bones_start_with_the_velocity_of_their_soft_bodies():
    sim = simulated(
        arm(None, soft_velocity=(0.3, 0.2, 0.1), gravity=(0.0, 0.0, 0.0), motor=False, joints=False), cell=0.02
    )
    final = sim.rollout(None, 10).final
    np.testing.assert_allclose(final.velocity[0], np.tile([0.3, 0.2, 0.1], (len(sim.model.matter), 1)), atol=1e-4)


def test_bound_nodes_start_with_the_velocity_of_their_bone():
    """About the shoulder with 2 rad/s; the rest of the soft body begins at rest."""
    sim = simulated(arm("revolute", velocity=2.0), cell=0.02)
    particles, v = sim.model.matter, sim.state().velocity[0].numpy()
    bound = particles.bone >= 0
    np.testing.assert_allclose(v[bound], np.cross([0.0, 2.0, 0.0], particles.position[bound]), atol=1e-6)
    assert not v[~bound].any()


def test_the_bone_takes_the_place_of_the_soft_bodies_inside_it():
    """Soft bodies and bones together weigh what soft bodies outside of the bones and the bones do, where nodes are on its faces."""
    sim = simulated(arm("fixed", thickness=0.02), cell=0.02)
    particles = sim.model.matter
    soft = (particles.volume * particles.density).sum() / 1000.0
    inside = sum(np.prod(np.subtract(b.shape.upper, b.shape.lower)) for b in sim.scene.rigid)
    assert soft == pytest.approx(0.3 * 0.06 * 0.06 - inside)


GRADIENTS = {
    "hinge": ("revolute", (), False),
    "hinge-held": ("revolute", (), False),
    "slide": ("prismatic", (), False),
    "ball-slides": ("ball", (floor(-0.0305, friction=0.4),), False),
    "free-slides": ("free", (floor(-0.0305, friction=0.4),), True),
}


def held(scene: Scene) -> Scene:
    """The arm with damped matter, whose tip stays in an oblique plane."""
    soft = scene.bodies[0]
    damped = dataclasses.replace(soft.material, damping=0.01)
    soft = dataclasses.replace(soft, material=damped, regions={"tip": HalfSpace((0.299, 0, 0), (-1, 0, 0))})
    constraints = (Constraint("tip", "plane", (0.2, 1.0, 0.1)),)
    return dataclasses.replace(scene, bodies=(soft, *scene.bodies[1:]), constraints=constraints)


@verification
@pytest.mark.parametrize("case", GRADIENTS)
def test_gradients_are_those_of_differences(case, rng):
    """Relative 1e-6 in the air and 1e-4 on a floor, by every input: soft bodies, bones, joints, motor and initial state."""
    root, obstacles, collisions = GRADIENTS[case]
    scene = arm(root, obstacles=obstacles, velocity=1.0, upper=0.002)
    scene = held(scene) if case.endswith("held") else scene
    solver = ProjectiveDynamics(0.02, tolerance=1e-13, collisions=collisions)
    sim = Simulation(scene, solver, 0.005, substeps=1)
    steps, inputs = 4, stirred_bones(sim, rng, 4)
    weight = {n: torch.as_tensor(rng.normal(size=inputs[n].shape)) for n in ("position", "velocity", "q", "qd")}

    def loss(values: dict) -> torch.Tensor:
        state = sim.state(**{n: values[n] for n in weight})
        parameters = {n: values[n] for n in sim.parameters()}
        end = sim.rollout(values["control"], steps, state, **parameters).final
        return sum((weight[n] * getattr(end, n)).sum() * (0.01 if n in ("velocity", "qd") else 1.0) for n in weight)

    leaves = {n: v.clone().requires_grad_() for n, v in inputs.items()}
    value = loss(leaves)
    value.backward()
    rounding = 1e-14 * abs(float(value.detach())) / 1e-4
    in_contact = len(obstacles) and bool(sim.model.workspace.contact.contacts.listed.numpy().any())
    assert in_contact == bool(obstacles)
    tolerance = 1e-4 if obstacles else 1e-6
    for name, array in inputs.items():
        direction = torch.as_tensor(rng.normal(size=array.shape))
        scale = float(array.abs().median() or array.abs().max()) or 1.0
        slope, slopes = float((leaves[name].grad * direction).sum()), []
        for step in (1e-4, 1e-5, 1e-7):
            with torch.no_grad():
                there, back, far, far_back = (
                    float(loss(inputs | {name: array + s * step * scale * direction})) for s in (1.0, -1.0, 2.0, -2.0)
                )
            slopes.append((8.0 * (there - back) - (far - far_back)) / (12.0 * step * scale))
        error = min(abs(slope - s) for s in slopes)
        assert (slope != 0.0) == (name not in IDLE), name
        assert error <= tolerance * abs(slope) or error * scale <= rounding, (name, slope, slopes)


REFUSED = {
    "thin": (lambda: arm("fixed", thickness=0.002), "a bone needs three that are not in line"),
    "held": (
        lambda: Scene(
            (
                SoftBody(
                    "arm",
                    Box((0, -0.03, -0.03), (0.3, 0.03, 0.03)),
                    Material(5e4, 0.3, 1000.0),
                    regions={"left": HalfSpace((0.05, 0, 0), (1, 0, 0))},
                ),
                *BONES,
            ),
            constraints=(Constraint("left"),),
        ),
        "region 'left' contains .* nodes that are bound to the bones 'upper'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_simulated_is_refused_with_a_reason(case):
    scene, words = REFUSED[case]
    with pytest.raises(SceneError, match=words):
        ProjectiveDynamics(0.02).build(scene())
