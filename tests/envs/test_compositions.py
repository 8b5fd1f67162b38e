"""Environments around matter and rigid bodies together: single resets, random parameters, gradients, lost worlds."""

import dataclasses

import pytest
import torch
from environments import actions
from hybrid_scenes import MATTER, flail, hammer

import warpbots as wb

gymnasium = pytest.importorskip("gymnasium", reason="the extra rl is not installed")
Mode = gymnasium.vector.AutoresetMode
SCENES = {"hammer": (hammer, "mpm"), "flail": (flail, "springs")}  # masses of the flail are bound to its bodies


def reward(transition):
    """Speed of all bodies together, and a cost of the speeds of the joints."""
    before, after = map(transition.simulation.center_of_mass, (transition.before, transition.after))
    cost = -1e-3 * transition.after.qd.square().sum(dim=1)
    return {"speed": (after - before)[:, 0] / transition.simulation.dt, "cost": cost}


RULES = wb.envs.Episode(
    (wb.observers.Joints(), wb.observers.Delayed(wb.observers.Centroid(), 1)),
    reward,
    steps=8,
    start={"velocity": wb.envs.Shifted(-0.02, 0.02), "qd": wb.envs.Shifted(-0.5, 0.5, each=True)},
    parameters={"youngs_modulus": wb.envs.Scaled(0.7, 1.4), "motor_torque": wb.envs.Scaled(0.5, 2.0)},
)


def environment(name: str, worlds: int = 3, of=RULES, **options):
    """A batch of one of the scenes."""
    scene, matter = SCENES[name]
    sim = wb.Simulation(scene(), wb.Coupled(MATTER[matter](0.0125), wb.Articulated()), 4e-3, 4, worlds=worlds)
    return wb.envs.SimulationVectorEnv(sim, of, **options)


def motion(env, table, seed=3, reset_at=None):
    """Observations and rewards, one row for each world; in the interval `reset_at` world 1 begins anew."""
    found = [env.reset(seed=seed)[0]]
    for k, action in enumerate(table):
        if k == reset_at:
            env.reset(options={"reset_mask": torch.arange(env.num_envs) == 1})
        seen, reward, _, _, infos = env.step(action)
        assert not infos["lost"].any()
        found += [seen, reward[:, None]]
    return torch.cat(found, dim=1)


@pytest.mark.parametrize("name", SCENES)
def test_a_seed_is_a_motion_and_a_reset_leaves_other_worlds_alone(name):
    env = environment(name, autoreset_mode=Mode.DISABLED)
    table = actions(env, steps=5)
    whole = motion(env, table)
    ratio = env.parameters["youngs_modulus"] / env.simulation.parameter("youngs_modulus")
    assert len(ratio[:, 0].unique()) == 3
    torch.testing.assert_close(ratio, ratio[:, :1].expand_as(ratio))
    assert torch.equal(whole, motion(env, table))
    broken = motion(env, table, reset_at=3)
    assert torch.equal(whole[::2], broken[::2])
    assert not torch.equal(whole[1], broken[1])
    alone = environment(name, worlds=1)
    # not to the last bit: compilers vectorise loops over all worlds, and the rest of a loop may round differently
    torch.testing.assert_close(motion(alone, table[:, 1:2], seed=4)[0], whole[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "variable"), [("hammer", "action"), ("flail", "action"), ("flail", "motor_torque"), ("hammer", "qd")]
)
def test_gradients_are_those_of_the_simulation(name, variable):
    still = dataclasses.replace(RULES, start={}, parameters={})
    env = environment(name, 2, still, differentiable=True)
    sim, table = env.simulation, actions(env, steps=3)
    wanted = {"action": table, "motor_torque": sim.parameter("motor_torque"), "qd": sim.state().qd}[variable]
    leaf = wanted.clone().requires_grad_()
    control = leaf if variable == "action" else table
    state = sim.state(qd=leaf) if variable == "qd" else sim.state()
    given = {"motor_torque": leaf} if variable == "motor_torque" else {}
    env.reset(options={"state": state, "parameters": given})
    (own,) = torch.autograd.grad(sum(env.step(u)[1].sum() for u in control), leaf)
    loss, start = 0.0, sim.center_of_mass(state)[:, 0]
    for u in control:
        state = sim.step(state, u, **given)
        loss = loss - 1e-3 * state.qd.square().sum()
    (other,) = torch.autograd.grad(loss + ((sim.center_of_mass(state)[:, 0] - start) / sim.dt).sum(), leaf)
    assert other.abs().max() > 0.0
    torch.testing.assert_close(own, other, rtol=1e-3, atol=1e-4 * other.abs().max().item())


@pytest.mark.parametrize("name", SCENES)
def test_a_lost_world_ends_alone_with_a_sentence(name):
    env = environment(name, 2)
    env.reset(seed=0)
    velocity = env.state.qd.clone()
    velocity[1, 0] = 1e4
    env.state = dataclasses.replace(env.state, qd=velocity)
    with pytest.warns(wb.LostWorldWarning, match="lost world 1 of 2.*in world 1 moves up to"):
        _, reward, terminated, _, infos = env.step(actions(env)[0])
    assert terminated.tolist() == infos["final_info"]["lost"].tolist() == [False, True]
    assert torch.isfinite(reward).all()
    seen, *_, infos = env.step(actions(env)[1])
    assert torch.isfinite(seen).all() and not infos["lost"].any()


def test_pictures_show_both_kinds_of_bodies():
    env = environment("hammer", 1, render_mode="rgb_array")
    env.reset(seed=0)
    (frame,) = env.render()
    red, green, blue = frame.astype(int).transpose(2, 0, 1)
    assert (blue - red > 60).sum() > 1000  # jelly
    assert ((abs(red - blue) < 25) & (green > 80) & (green < 235)).sum() > 1000  # hammer
