"""What the fields of a contact law do under each solver: the same words do the same, or are refused, or a warning says
what has no effect."""

import dataclasses
import warnings

import pytest
import torch
from loose_bodies import GAP, G, cube, last, simulated, slab, steps, thrown

import warpbots as wb
from warpbots.scene import Box, Contact, Joint, RigidBody, Scene, SceneError, SoftBody, floor
from warpbots.simulation import Simulation
from warpbots.solvers import MPM, Articulated, MassSpring, ProjectiveDynamics

SPEED, DT, STEPS = 0.5, 2e-3, 20
LAW = Contact("cube", "floor", 1e8, 1e9, 0.2, 1e9, restitution=0.5)
OTHER = {"stiffness": 3e8, "damping": 3e9, "friction": 0.4, "viscosity": 3e8, "restitution": 0.1}
"""Other values of the numbers of a law."""


def sliding(*laws: Contact, points: int = 8) -> Scene:
    """A rigid cube with friction 0.5 that slides on a floor with friction 0.6, under laws of their own."""
    body = dataclasses.replace(cube("cube", (0.0, 0.0, 0.0), 1000.0, 0.5), points=points if laws else 0)
    return Scene(
        (body,), obstacles=(floor(friction=0.6),), contacts=laws or None, joints=(thrown(body, (SPEED, 0, 0, 0, 0, 0)),)
    )


def braking(sim: Simulation) -> float:
    """The coefficient of friction that the loss of speed in the last half of some steps shows."""
    speeds = [float(sim.sense(s).velocity[0, 0, 0]) for s in steps(sim, STEPS)]
    half = STEPS // 2
    return (speeds[half - 1] - speeds[-1]) / (half * DT * G)


def articulated(scene: Scene) -> Simulation:
    """Without the warnings about stiff contact and few points: bodies slide, and hardly bounce."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Simulation(scene, Articulated("bdf1"), DT, substeps=1)


def projective(scene: Scene) -> Simulation:
    if not scene.contacts:
        return simulated(scene, 0.06, DT)
    with pytest.warns(UserWarning, match="Contact laws select .* their stiffness, damping, viscosity and restitution"):
        return simulated(scene, 0.06, DT)


@pytest.mark.parametrize("mu", (0.2, 0.4))
def test_friction_of_a_law_is_the_friction_of_its_pair_under_both_solvers(mu):
    """Whatever the coefficients of the bodies and the obstacle are; without a law that of the obstacle counts."""
    scene = sliding(dataclasses.replace(LAW, friction=mu))
    assert braking(projective(scene)) == pytest.approx(mu, rel=1e-3)
    assert braking(articulated(scene)) == pytest.approx(mu, rel=0.02)
    assert braking(projective(sliding())) == pytest.approx(0.6, rel=1e-3)


@pytest.mark.parametrize("field", OTHER)
def test_which_numbers_of_a_law_have_an_effect(field):
    """All under `Articulated`, friction alone under `ProjectiveDynamics`: after a fall, sliding or on a slope."""
    ends = {}
    for law in (LAW, dataclasses.replace(LAW, **{field: OTHER[field]})):
        for solver, make in (("projective", projective), ("articulated", articulated)):
            for speed in (SPEED, 0.0):
                slope = dataclasses.replace(sliding(law), gravity=(1.0, 0.0, -G))
                sim = make(slope)
                start = sim.state()
                q, qd = start.q.clone(), start.qd.clone()
                q[0, 2] += 2e-3
                qd[0, 0] = speed
                ends.setdefault((solver, speed), []).append(last(sim, 25, sim.state(q=q, qd=qd)).q)
    same = {solver: all(torch.equal(*ends[solver, v]) for v in (SPEED, 0.0)) for solver, _ in ends}
    assert same == {"projective": field != "friction", "articulated": False}


def test_laws_name_soft_bodies_too():
    """A soft and a rigid block slide on one floor, each with a law of its own, and stop as these say."""
    size = 0.06
    block = SoftBody("block", Box((0.2, 0.0, 0.0), (0.2 + size, size, size)), wb.Material(1e6), velocity=(SPEED, 0, 0))
    laws = (Contact("block", "floor", 1e8, 0.0, 0.1, 1e7), dataclasses.replace(LAW, friction=0.3))
    alone = sliding(laws[1])
    sim = projective(dataclasses.replace(alone, bodies=(block, *alone.bodies), contacts=laws))
    states = list(steps(sim, STEPS))
    rigid = [float(sim.sense(s).velocity[0, 0, 0]) for s in states]
    mass = torch.as_tensor(sim.model.mesh.density * sim.model.mesh.volume)
    soft = [float((mass @ s.velocity[0, :, 0].double()) / mass.sum()) for s in states]
    assert (rigid[9] - rigid[-1]) / (10 * DT * G) == pytest.approx(0.3, rel=1e-3)
    assert (SPEED - soft[-1]) / (STEPS * DT * G) == pytest.approx(0.1, rel=0.05)


def test_a_pair_of_a_rigid_and_a_soft_body_has_the_friction_of_its_law():
    """The force on a cube that slides on a slab is on the cone of the law; both bodies have 0.5."""
    body = dataclasses.replace(cube("cube", (0.02, 0.02, 0.03 + GAP), 300.0), points=8)
    scene = Scene(
        (slab((0.12, 0.1, 0.03), 1e6), body), joints=(thrown(body, (0.3, 0, 0, 0, 0, 0)),),
        contacts=(Contact("cube", "slab", 1e8, 0.0, 0.1, 1e7),), constraints=(wb.Constraint("bottom"),),
    )  # fmt: skip
    sim = projective(scene)
    forces = [sim.report().bone_force[0, 0] for _ in steps(sim, 40)]
    pressed = [f for f in forces if f[2] > 0.1]
    assert len(pressed) > 3
    for force in pressed:
        assert -force[0] / force[2] == pytest.approx(0.1, rel=1e-3)


@pytest.mark.parametrize("law", (False, True))
def test_neighbours_at_a_joint_touch_if_a_law_names_both(law):
    """A slide that runs into the body that carries it, by default without contact, as in URDF and MJCF."""
    base, slide = Box((-0.02, -0.03, -0.03), (0.02, 0.03, 0.03)), Box((-0.02,) * 3, (0.02,) * 3)
    bodies = RigidBody("base", base), RigidBody("slide", slide, position=(0.05, 0.0, 0.0), points=8 * law, friction=0.0)
    joints = (
        Joint("stand", "fixed", None, "base"),
        Joint("rail", "prismatic", "base", "slide", axis=(1, 0, 0), start_velocity=-0.5),
    )
    laws = (Contact("slide", "base", 1e8, 1e9),) if law else ()
    scene = Scene(bodies, joints=joints, contacts=laws, gravity=(0, 0, 0))
    for sim in (projective(scene), articulated(scene)):
        way = float(last(sim, 40).q[0, 0])
        if law:
            assert -0.0101 < way < -0.009  # surfaces keep a hundredth of an edge
        else:
            assert way == pytest.approx(-0.5 * 40 * DT, rel=1e-3)


@pytest.mark.filterwarnings("ignore")
def test_laws_that_disagree_on_a_pair_are_refused():
    laws = LAW, Contact("skin", "floor", 1e8, 1e9, 0.3, 1e9)
    scene = sliding(*laws[:1])
    bodies = [dataclasses.replace(b, surface="skin") for b in scene.bodies]
    with pytest.raises(SceneError, match=r"'cube on floor' and 'skin on floor' name the same pair, .* 0\.2 and 0\.3"):
        ProjectiveDynamics(0.06).build(dataclasses.replace(scene, bodies=bodies, contacts=laws))


@pytest.mark.parametrize("solver", (MPM(0.03), MassSpring(0.03)), ids=("mpm", "springs"))
def test_other_solvers_refuse_laws_in_a_sentence(solver):
    block = SoftBody("block", Box((0.0, 0.0, 0.01), (0.06, 0.06, 0.07)), wb.Material(1e5))
    scene = Scene((block,), obstacles=(floor(),), contacts=(Contact("block", "floor", 1e8),))
    with pytest.raises(SceneError, match=r"soft bodies only; .* Contact 'block on floor': use ProjectiveDynamics"):
        solver.build(scene)


@pytest.mark.verification
def test_gradients_by_the_friction_of_laws():
    """Of a slide under two laws, one of which does not act: exact by the discrete step."""
    body = cube("other", (0.5, 0.0, 0.3))
    scene, idle = sliding(LAW), Contact("cube", "other", 1e8, 1e9, 0.3, 1e9)
    scene = dataclasses.replace(scene, bodies=(*scene.bodies, body), contacts=(LAW, idle))
    sim = projective(scene)
    mu = sim.parameter("contact_friction").clone().requires_grad_()

    def end(values: torch.Tensor) -> torch.Tensor:
        state = sim.state()
        for _ in range(4):
            state = sim.step(state, torch.zeros(1, 0), contact_friction=values)
        return state.q[0, 0]

    (slope,) = torch.autograd.grad(end(mu), mu)
    with torch.no_grad():
        difference = (end(mu + torch.tensor([[1e-5, 0.0]])) - end(mu - torch.tensor([[1e-5, 0.0]]))) / 2e-5
    assert float(slope[0, 0]) == pytest.approx(float(difference), rel=1e-7)
    assert float(slope[0, 0]) == pytest.approx(-G * DT**2 * 10.0, rel=1e-3)  # 1 + 2 + 3 + 4 steps
    assert float(slope[0, 1]) == 0.0
