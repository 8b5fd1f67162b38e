"""Worlds that cannot go on are marked and stay where they were, under every solver; the others, and gradients, go on."""

import dataclasses
import pickle
import warnings

import numpy as np
import pytest
import torch
from cases import SOLVERS, assert_same

import warpbots as wb
from warpbots.gradients import LOST

BOX = wb.shapes.Box((0.25, 0.3), (0.5, 0.5))
SCENE = wb.Scene(
    [wb.SoftBody("b", BOX, wb.Material(5e4, damping=1e-4), {"all": BOX})],
    [wb.actuators.Muscle("pull", "all", (1, 0), 1e3)],
    obstacles=[wb.floor(dim=2)],
    domain=((0, 0), (0.8, 0.8)),
)
ARM = wb.Scene(
    [wb.RigidBody("arm", None, inertia=wb.Inertia(1.0, (0.3, 0, 0), (0.1, 0.1, 0.1)))],
    [wb.actuators.Torque("turn", "hinge", 1.0)],
    joints=[wb.Joint("hinge", "revolute", None, "arm", axis=(0, 1, 0))],
)
STEPS, STRUCK = 6, 1
"""Control intervals, and the world that is struck."""
SPEED = {"mpm": 3e2, "springs": 1e30, "articulated": 1e200}
"""Speeds [m/s or rad/s] at which particles leave the grid, forces of springs overflow, and so does the energy."""
NAMES = tuple(SPEED)
GIVEN = {"mpm": "youngs_modulus", "springs": "youngs_modulus", "articulated": "mass"}
"""A parameter of each solver."""


def simulation(name: str, worlds: int = 3, **options) -> wb.Simulation:
    if name == "articulated":
        return wb.Simulation(ARM, wb.Articulated(), 5e-3, 2, worlds=worlds, **options)
    return wb.Simulation(SCENE, SOLVERS[name](1 / 16), 5e-3, 10, worlds=worlds, **options)


def rates(sim: wb.Simulation) -> str:
    """Name of the field of velocities."""
    return "qd" if isinstance(sim.solver, wb.Articulated) else "velocity"


def places(sim: wb.Simulation) -> str:
    """Name of the field of places."""
    return "q" if isinstance(sim.solver, wb.Articulated) else "position"


def struck(sim: wb.Simulation, world: int = STRUCK) -> dict[str, torch.Tensor]:
    """Velocities at the start with which one world is lost, by the name of their field."""
    v = torch.zeros_like(getattr(sim.state(), rates(sim)))
    name = {wb.MPM: "mpm", wb.MassSpring: "springs", wb.Articulated: "articulated"}[type(sim.solver)]
    v[world].reshape(len(v[world]), -1)[::2, 0] = SPEED[name]
    return {rates(sim): v}


def alone(name: str, sim: wb.Simulation, control: torch.Tensor, **parameters):
    one = simulation(name, 1)
    return one, one.rollout(control, STEPS, **parameters)


@pytest.mark.parametrize("name", NAMES)
def test_a_lost_world_stays_and_the_others_go_on(name):
    sim, control = simulation(name), 0.5 * torch.ones(STEPS, 1)
    start = sim.state(**struck(sim))
    with pytest.warns(
        wb.LostWorldWarning, match=r"lost world 1 of 3, .* control step \d+, substep \d+ .* in world 1"
    ) as said:
        motion = sim.rollout(control, STEPS, start)
    assert len(said) == 1
    warning = said[0].message
    assert warning.worlds == (STRUCK,)
    assert (warning.place.world, warning.place.step) == (STRUCK, int(motion.lost[STRUCK]))
    assert warning.place.step * sim.dt <= warning.place.time < (warning.place.step + 1) * sim.dt
    np.testing.assert_array_equal(motion.lost[[0, 2]], [-1, -1])
    np.testing.assert_array_equal(motion.final.lost, [0, 1, 0])
    _, single = alone(name, sim, control)
    for field in dataclasses.fields(single.final):
        found, expected = getattr(motion.final, field.name), getattr(single.final, field.name)
        assert_same(found[[0, 2]], np.repeat(expected.numpy(), 2, axis=0))
    before = start  # the world is where it was at the start of the interval in which it was lost
    for _ in range(int(motion.lost[STRUCK])):
        before = sim.step(before, control[0])
    found, expected = (getattr(state, places(sim))[STRUCK] for state in (motion.final, before))
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert all(torch.isfinite(field).all() for field in motion.final.fields())


@pytest.mark.parametrize("name", NAMES)
def test_single_steps_warn_once_and_a_reset_brings_the_world_back(name):
    sim, u = simulation(name), torch.zeros(1)
    state = sim.state(**struck(sim))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(STEPS):
            state = sim.step(state, u)
    assert [type(s.message) for s in said] == [wb.LostWorldWarning]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        state = sim.reset(state, state.lost > 0)
        assert not state.lost.any()
        after = sim.step(state, u)
    expected = sim.step(sim.state(), u)
    np.testing.assert_array_equal(*(getattr(state, places(sim))[STRUCK] for state in (after, expected)))


@pytest.mark.parametrize("checkpoints", [wb.Checkpoints.all(), wb.Checkpoints.every(2)])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::warpbots.LostWorldWarning")
def test_gradients_of_the_others_are_their_own_and_a_lost_world_passes_its_own_on(name, checkpoints):
    sim = simulation(name, checkpoints=checkpoints)
    u = (0.5 * torch.ones(3, STEPS, 1)).to(sim.parameter("gravity")).requires_grad_()
    parameter = sim.parameter(GIVEN[name]).clone().requires_grad_()
    (v,) = struck(sim).values()
    v.requires_grad_()
    motion = sim.rollout(u, STEPS, sim.state(**{rates(sim): v}), **{GIVEN[name]: parameter})
    lost = int(motion.lost[STRUCK])
    assert lost >= 0
    x = getattr(motion.final, places(sim))
    weights = torch.linspace(0.1, 1.0, x.numel()).reshape(x.shape).to(x)

    def loss(state, weights):
        return ((getattr(state, places(sim)) + 0.1 * getattr(state, rates(sim))) * weights).sum()

    loss(motion.final, weights).backward()
    for gradient in (u.grad, parameter.grad, v.grad):
        assert torch.isfinite(gradient).all()
    assert not u.grad[STRUCK, lost:].any()
    if lost == 0:  # its whole motion is the identity
        assert not parameter.grad[STRUCK].any()
        torch.testing.assert_close(v.grad[STRUCK], 0.1 * weights[STRUCK])
    one = simulation(name, 1)
    for w in (0, 2):
        single_u = u.detach()[w : w + 1].clone().requires_grad_()
        single = one.parameter(GIVEN[name]).clone().requires_grad_()
        loss(one.rollout(single_u, STEPS, **{GIVEN[name]: single}).final, weights[w : w + 1]).backward()
        assert_same(u.grad[w], single_u.grad[0])
        assert_same(parameter.grad[w], single.grad[0])


@pytest.mark.parametrize("name", NAMES)
def test_an_error_says_where_in_numbers(name):
    sim = simulation(name, 1)
    with pytest.raises(wb.SimulationError) as caught:
        sim.rollout(None, STEPS, sim.state(**struck(sim, 0)))
    place = caught.value.place
    assert (place.world, place.step) == (0, 0)
    assert place.field in ("position", "velocity", "velocity_gradient", "deformation", "q", "qd")
    assert place.time == pytest.approx(place.substep * sim.dt / sim.substeps)
    assert (place.position is None) == (name == "articulated")
    assert place.position is None or len(place.position) == 2
    assert f"substep {place.substep} " in str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).place == place


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::warpbots.LostWorldWarning")
def test_worlds_lost_before_are_not_blamed(name):
    """The second world is lost later than the first, and is the one that the second warning names."""
    sim = simulation(name)
    state = sim.state(**struck(sim))
    for _ in range(STEPS):
        state = sim.step(state, torch.zeros(1))
    struck_too = struck(sim, 2)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(3):
            state = sim.step(dataclasses.replace(state, **struck_too), torch.zeros(1))
    assert "in world 2" in str(said[0].message)
    assert said[0].message.worlds == (2,)
    assert said[0].message.place.world == 2
    with pytest.raises(wb.SimulationError, match="all worlds had been lost before"):
        sim.step(dataclasses.replace(state, lost=torch.ones_like(state.lost)), torch.zeros(1))


def test_states_of_all_solvers_say_which_worlds_are_lost():
    soft = wb.Scene([wb.SoftBody("b", wb.shapes.Box((0, 0, 0), (0.1, 0.1, 0.1)), wb.Material(1e4))])
    sims = [simulation(name, 2) for name in NAMES]
    for sim in (*sims, wb.Simulation(soft, wb.ProjectiveDynamics(0.05), 1e-3, worlds=2)):
        np.testing.assert_array_equal(getattr(sim.state(), LOST), [0, 0])
