"""Gradients that cannot be had are never finite numbers, whatever they are asked to."""

import re

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from skeletons import arm
from soft_bodies import sliding

from warpbots.scene import Box, Constraint, HalfSpace, Joint, Material, Posed, RigidBody, Scene, SoftBody, floor
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics
from warpbots.solvers.projective import contact_step
from warpbots.solvers.projective.contact.pair_arrays import FACE, HELD


def adjoint_stopped(sim: Simulation, name: str, iterations: int) -> None:
    """Ask for the gradient to a parameter alone through a step whose adjoint is stopped too soon."""
    state = sim.state()
    with torch.no_grad():
        for _ in range(3):
            state = sim.step(state, torch.zeros(sim.channels))
    value = sim.parameter(name).requires_grad_()
    end = sim.step(state, torch.zeros(sim.channels), **{name: value})
    weight = torch.as_tensor(np.random.default_rng(0).normal(size=end.position.shape)).to(end.position.dtype)
    object.__setattr__(sim.solver, "max_iterations", iterations)
    (weight * end.position).sum().backward()


def test_friction_knows_that_the_adjoint_did_not_converge():
    sim = Simulation(sliding("corotated", (floor(friction=0.3),)), ProjectiveDynamics(0.04, collisions=False), 0.005)
    with pytest.raises(
        FloatingPointError,
        match="gradient with respect to friction is nan.*the adjoint of a step of 0.005 s in world 0 did not converge",
    ):
        adjoint_stopped(sim, "friction", 2)


def test_joints_know_that_the_adjoint_did_not_converge():
    sim = Simulation(arm("revolute"), ProjectiveDynamics(0.02, collisions=False), 0.005)
    with pytest.raises(
        FloatingPointError,
        match="gradient with respect to joint_damping is nan.*the adjoint of a step of 0.005 s in world 0 did not converge",
    ):
        adjoint_stopped(sim, "joint_damping", 2)


def refused(sim: Simulation, state, weight: torch.Tensor, rng: np.random.Generator) -> bool:
    """Whether the gradient of a step is refused; if not, it agrees with differences."""
    inputs = {"velocity": state.velocity, "body_friction": sim.parameter("body_friction")}

    def loss(values: dict) -> torch.Tensor:
        start = sim.state(position=state.position, velocity=values["velocity"])
        end = sim.step(start, torch.zeros(0), body_friction=values["body_friction"])
        return (weight * end.position).sum()

    leaves = {n: v.clone().requires_grad_() for n, v in inputs.items()}
    end = loss(leaves)
    try:
        end.backward()
    except FloatingPointError:
        return True
    for name, value in inputs.items():
        direction = torch.as_tensor(rng.normal(size=value.shape))
        slopes = []
        for step in (1e-4, 1e-5, 1e-6):
            with torch.no_grad():
                there, back = (loss(inputs | {name: value + s * step * direction}) for s in (1.0, -1.0))
            slopes.append(float(there - back) / (2.0 * step))
        slope = float((leaves[name].grad * direction).sum())
        assert min(abs(slope - s) for s in slopes) < 1e-3 * abs(slope) + 1e-9, (name, slope, slopes)
    return False


@pytest.mark.verification
@pytest.mark.parametrize(
    ("turn", "height", "dt", "allowed"),
    [((45, 0, 0), 0.139, 1 / 30, 0), ((45, 17, 9), 0.152, 1 / 60, 0), ((45, 0, 9), 0.152, 1 / 30, 1)],
    ids=["parallel edges", "edge on edges", "edge, long steps"],
)
def test_gradients_through_edges_are_right_or_refused(turn, height, dt, allowed, rng):
    """A cube comes down on an edge, close to vertices and parallel to edges of a slab: neither faces nor pairs of edges
    have a plane across the shortest connection. When contacts kept the plane of their first contact, gradients were
    wrong by up to 96 %, or refused in half of these steps.
    """
    material = Material(5e4, 0.3, 1000.0, "corotated")
    foot = {"foot": HalfSpace((0, 0, 1e-6), (0, 0, 1))}
    slab = SoftBody("slab", Box((0, 0, 0), (0.16, 0.16, 0.08)), material, foot, friction=0.3)
    turned = Rotation.from_euler("yzx", turn, degrees=True).as_matrix()
    cube = Posed(Box((-0.04,) * 3, (0.04,) * 3), (0.08, 0.07, height), turned)
    thrown = SoftBody("cube", cube, material, velocity=(0.4, 0.1, -1.0), friction=0.3)
    scene = Scene((slab, thrown), constraints=(Constraint("foot"),))
    sim = Simulation(scene, ProjectiveDynamics(0.04, 1e-10), dt)
    state, lost = sim.state(), []
    weight = torch.as_tensor(rng.normal(size=state.position.shape))
    for _ in range(5):
        lost.append(refused(sim, state, weight, rng))
        with torch.no_grad():
            state = sim.step(state, torch.zeros(0))
    assert sum(lost) <= allowed


def thrown_on_a_block(seed: int, dt: float) -> Simulation:
    """A rigid cube that tumbles onto a rigid block: corners, edges and faces of both meet in long steps."""
    rng = np.random.default_rng(seed)
    turned = Rotation.random(random_state=rng).as_matrix()
    block = RigidBody("block", Box((-0.06, -0.06, -0.06), (0.06, 0.06, 0.0)), friction=0.4)
    shape, place = Posed(Box((-0.03,) * 3, (0.03,) * 3), (0.0,) * 3, turned), (*rng.uniform(-0.05, 0.05, 2), 0.055)
    cube = RigidBody("cube", shape, position=place, friction=0.4)
    twist = (*rng.normal(size=2) * 0.5, -1.0, *rng.normal(size=3) * 5.0)
    joints = Joint("held", "fixed", None, "block"), Joint("free", "free", None, "cube", start_velocity=twist)
    return Simulation(Scene((block, cube), joints=joints), ProjectiveDynamics(0.03, 1e-10), dt)


def refusals(seed: int, rng: np.random.Generator) -> list[str]:
    """Messages of those of ten steps that have no gradient; the gradients of all others agree with differences."""
    sim = thrown_on_a_block(seed, 1 / 50)
    state, lost = sim.state(), []
    by = torch.as_tensor(rng.normal(size=state.q.shape))

    def loss(values: dict) -> torch.Tensor:
        end = sim.step(sim.state(q=values["q"], qd=values["qd"]), torch.zeros(1, 0), body_friction=values["friction"])
        return (by * end.q).sum()

    for _ in range(10):
        inputs = {"q": state.q, "qd": state.qd, "friction": sim.parameter("body_friction")}
        leaves = {n: v.clone().requires_grad_() for n, v in inputs.items()}
        try:
            loss(leaves).backward()
        except FloatingPointError as fault:
            lost.append(str(fault))
        else:
            for name, value in inputs.items():
                direction, slopes = torch.as_tensor(rng.normal(size=value.shape)), []
                for size in (1e-5, 1e-6, 1e-7):
                    with torch.no_grad():
                        up, down = (loss(inputs | {name: value + s * size * direction}) for s in (1.0, -1.0))
                    slopes.append(float(up - down) / (2.0 * size))
                slope = float((leaves[name].grad * direction).sum())
                assert min(abs(slope - s) for s in slopes) < 1e-4 * abs(slope) + 1e-8, (name, slope, slopes)
        with torch.no_grad():
            state = sim.step(state, torch.zeros(1, 0))
    return lost


@pytest.mark.verification
@pytest.mark.parametrize("seed", (0, 3, 8))
def test_gradients_of_rigid_bodies_that_tumble_over_edges_are_right(seed, rng):
    """Contacts inside flat faces, which the path of the search chose, made the step jump within 1e-6 of its start, and
    contacts whose planes still rotated got the plane of an instant.
    """
    assert not refusals(seed, rng)


@pytest.mark.slow
@pytest.mark.verification
def test_gradients_of_many_throws_are_right_or_refused(rng):
    """Of 240 steps, 4 have no gradient: long steps in which a corner passes an edge."""
    said = [message for seed in range(24) for message in refusals(seed, rng)]
    assert len(said) <= 8 and all("RigidBody 'cube'" in s and " m, at a plane that " in s for s in said)


def resting(worlds: int = 1, substeps: int = 1) -> Simulation:
    """A rigid cube on a rigid block, in all worlds but the first of several, where it is in the air."""
    block = RigidBody("block", Box((-0.06, -0.06, -0.06), (0.06, 0.06, 0.0)), friction=0.4)
    cube = RigidBody("cube", Box((-0.03,) * 3, (0.03,) * 3), position=(0.01, 0.02, 0.0302), friction=0.4)
    joints = Joint("held", "fixed", None, "block"), Joint("free", "free", None, "cube")
    scene = Scene((block, cube), joints=joints)
    return Simulation(scene, ProjectiveDynamics(0.03), 0.01 * substeps, worlds=worlds, substeps=substeps)


def message(sim: Simulation, steps: int = 1) -> str:
    """The message about the gradient of the end of a rollout."""
    start = sim.state()
    q = start.q.clone()
    if sim.worlds > 1:
        q[0, 2] += 0.1
    end = sim.rollout(None, steps, state=sim.state(q=q.requires_grad_())).final
    with pytest.raises(FloatingPointError) as fault:
        (torch.linspace(1.0, 2.0, end.q.numel()).reshape(end.q.shape).to(end.q) * end.q).sum().backward()
    return str(fault.value)


def test_a_message_names_the_pair_the_place_the_world_and_the_step(monkeypatch):
    """A plane that has not settled; the last substep is the first one whose adjoint runs."""
    monkeypatch.setattr(contact_step, "loosest", lambda tolerance: -1.0)
    said = message(resting(worlds=2, substeps=3), steps=2)
    pair = r"in control step 1, (a vertex|an edge) of RigidBody '(cube|block)' and (a face|an edge) of RigidBody "
    how = r"'(cube|block)' are in contact near \((.*), (.*), (.*)\) m, at a plane that had not settled when a step of "
    found = re.search(pair + how + r"0.01 s in world 1, substep 2, ended: it still changed by", said)
    assert found, said
    x, y, z = (float(found[k]) for k in (5, 6, 7))
    assert -0.021 < x < 0.041 and -0.011 < y < 0.051 and abs(z) < 1e-3


def test_a_message_names_the_plane_that_changed_most(monkeypatch):
    """Planes that turn farther from pair to pair, and planes that turn less far: the last and the first are named."""
    usual = contact_step.ContactStep.recall
    found = []
    for order in (1, -1):

        def turned(contact, end, u, order=order):
            usual(contact, end, u)
            normal, count = contact._arrays.search.normal, int(contact._model.pairs.count.numpy()[0])
            values = normal.numpy().copy()
            values[:count, 0] += np.linspace(0.01, 0.1, count)[::order]
            normal.assign(values)

        monkeypatch.setattr(contact_step.ContactStep, "recall", turned)
        said = re.search(r"near \((.*)\) m, at a plane .* it still changed by (.*), and a gradient", message(resting()))
        found.append((said[1], float(said[2])))
    (last, most), (first, least) = found
    assert last != first and most > 0.07 and least > 0.07


def note(monkeypatch, change) -> str:
    """The message if `change` changes what an adjoint has found, before it is judged."""
    usual = contact_step.ContactStep.refuse_detached

    def judged(contact, u, tolerance):
        usual(contact, u, tolerance)
        change(contact)

    monkeypatch.setattr(contact_step.ContactStep, "refuse_detached", judged)
    return message(resting())


def test_a_message_names_a_frozen_plane(monkeypatch):
    usual = contact_step.ContactStep.recall

    def frozen(contact, end, u):
        usual(contact, end, u)
        contact._arrays.search.kind.fill_(int(HELD) + int(FACE))

    monkeypatch.setattr(contact_step.ContactStep, "recall", frozen)
    assert re.search(
        "RigidBody 'block'.* at a plane that was frozen within a step of 0.01 s in world 0", message(resting())
    )


def test_a_message_names_too_little_room(monkeypatch):
    said = note(monkeypatch, lambda contact: contact._matrix.compliance.missing.fill_(1))
    assert "too many nodes are in contact at once in the adjoint of a step of 0.01 s in world 0" in said


def test_a_message_names_an_adjoint_that_is_not_finite(monkeypatch):
    def infinite(contact):
        progress = contact._matrix.iteration.progress
        progress.size.fill_(np.inf)
        progress.converged.zero_()
        progress.found.zero_()

    assert "the adjoint of a step of 0.01 s in world 0 is not finite after" in note(monkeypatch, infinite)


def test_a_cause_is_told_once(monkeypatch):
    """A gradient that is not finite for another reason does not get the cause of an earlier one."""
    sim = resting()
    with monkeypatch.context() as patch:
        patch.setattr(contact_step, "loosest", lambda tolerance: -1.0)
        assert "had not settled" in message(sim)
    assert sim.solver.gradient_diagnosis(sim.model, 0, 1) is None
