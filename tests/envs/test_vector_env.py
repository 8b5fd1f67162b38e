"""Vector environments: Gymnasium's conventions, seeds, resets, random parameters, gradients, lost worlds."""

import dataclasses

import numpy as np
import pytest
import torch
from environments import actions, environment, episode, pendulum, springs, strip

import warpbots as wb

gymnasium = pytest.importorskip("gymnasium", reason="the extra rl is not installed")
Mode = gymnasium.vector.AutoresetMode


def test_a_batch_has_the_form_of_gymnasium():
    env = environment(numpy=True, of=episode(clock=0.3, goals={"target": wb.envs.UniformValue((0.0, 1.0), (1.0, 2.0))}))
    assert isinstance(env, gymnasium.vector.VectorEnv)
    seen, infos = env.reset(seed=1)
    assert seen in env.observation_space
    assert (seen[:, -4] >= 0.0).all()
    assert ((seen[:, -3] >= 1.0) & (seen[:, -3] <= 2.0)).all()
    np.testing.assert_allclose(seen[:, -2:], [[0.0, 1.0]] * 3)  # the clock
    env.action_space.seed(0)
    seen, reward, terminated, truncated, infos = env.step(env.action_space.sample())
    assert seen in env.observation_space
    assert [a.shape for a in (reward, terminated, truncated)] == [(3,)] * 3
    assert terminated.dtype == truncated.dtype == bool
    np.testing.assert_allclose(infos["age"], 0.01)
    terms = infos["reward_terms"]
    np.testing.assert_allclose(terms["speed"] + terms["effort"], reward, rtol=1e-6)
    assert infos["_reward_terms"].all()
    listed = gymnasium.wrappers.vector.DictInfoToList(env).step(env.action_space.sample())[-1]
    assert listed[2]["reward_terms"].keys() == {"speed", "effort"}


def test_results_are_tensors_on_the_device_of_the_simulation():
    env = environment()
    seen, _ = env.reset(seed=1)
    found = (seen, *env.step(actions(env)[0])[:4])
    assert all(isinstance(one, torch.Tensor) and one.device == env.state.position.device for one in found)


def test_an_observation_shares_its_memory_with_the_array():
    env = environment(numpy=True)
    seen, _ = env.reset(seed=0)
    assert np.shares_memory(seen, env._seen.numpy())


def motion(env, seed, **options):
    """Observations and rewards of two episodes."""
    seen, _ = env.reset(seed=seed, **options)
    found = [seen]
    for action in actions(env, steps=14):
        seen, reward, *_ = env.step(action)
        found += [seen, reward]
    return torch.cat([f.flatten() for f in found])


def test_a_seed_is_a_motion_to_the_last_bit():
    of = episode(observer=wb.observers.Noisy(wb.observers.Centroid(), 0.1), parameters={"mass": wb.envs.Scaled(0.8, 1.2)})  # fmt: skip
    env = environment(of=of)
    first = motion(env, 7)
    torch.rand(5)  # the generator of the user is another one
    assert torch.equal(first, motion(env, 7))
    assert torch.equal(first, motion(environment(of=of), 7))
    assert not torch.equal(first, motion(env, 8))


def test_a_world_has_the_randomness_of_its_own_seed():
    env = environment()
    env.reset(seed=[5, 6, 7])
    alone = environment(1)
    alone.reset(seed=6)
    assert torch.equal(env.state.velocity[1], alone.state.velocity[0])
    env.reset(seed=5)
    assert torch.equal(env.state.velocity[1], alone.state.velocity[0])


def test_random_starts_lie_in_their_range_and_differ():
    env = environment(16)
    env.reset(seed=0)
    push = env.state.velocity[:, 0, 0]
    assert (push.abs() <= 0.1).all()
    assert push.std() > 0.03
    assert torch.equal(env.state.velocity[:, 0], env.state.velocity[:, -1])  # the whole body


@pytest.mark.parametrize(
    ("draw", "inside"),
    [
        (wb.envs.UniformValue(2.0, 3.0), lambda x: (x >= 2.0) & (x <= 3.0)),
        (wb.envs.Shifted(-0.5, 0.5, each=True), lambda x: (x - 1.0).abs() <= 0.5),
        (wb.envs.Scaled(0.5, 2.0), lambda x: (x >= 0.5) & (x <= 2.0)),
    ],
    ids=["uniform", "shifted", "scaled"],
)
def test_draws(draw, inside):
    generator = np.random.default_rng(0)
    found = torch.stack([draw(torch.ones(2, 3), generator) * torch.ones(2, 3) for _ in range(200)])
    assert inside(found).all()
    assert (found[:, 0, 0] != found[:, 1, 1]).any() == draw.each
    if isinstance(draw, wb.envs.Scaled):
        assert abs(found.log().mean()) < 0.1  # the logarithm is uniform


def test_random_parameters_change_the_motion():
    """Worlds of other stiffness move otherwise; a world with the stiffness of the model moves as the simulation does."""
    of = episode(start={}, parameters={"stiffness": wb.envs.Scaled(0.3, 3.0)}, steps=100)
    env = environment(3, of=of)
    env.reset(seed=0, options={"parameters": {"stiffness": env.simulation.parameter("stiffness") * torch.tensor([1.0, 0.3, 0.3])[:, None]}})  # fmt: skip
    state = env.simulation.state()
    for action in actions(env, steps=20):
        action = action[:1].expand(3, -1)
        env.step(action)
        state = env.simulation.step(state, action)
    assert torch.equal(env.state.position[0], state.position[0])
    assert torch.equal(env.state.position[1], env.state.position[2])
    apart = (env.state.position[0] - env.state.position[1]).abs().max()
    assert apart > 1e-3
    drawn = environment(3, of=of)
    drawn.reset(seed=0)
    ratio = drawn.parameters["stiffness"] / drawn.simulation.parameter("stiffness")
    assert torch.allclose(ratio, ratio[:, :1])
    assert len(ratio[:, 0].unique()) == 3


def test_parameters_are_drawn_anew_for_worlds_that_begin():
    of = episode(parameters={"mass": wb.envs.Scaled(0.5, 2.0)})
    env = environment(of=of, autoreset_mode=Mode.DISABLED)
    env.reset(seed=0)
    before = env.parameters["mass"]
    env.reset(options={"reset_mask": torch.tensor([True, False, True])})
    same = (env.parameters["mass"] == before).all(dim=1)
    assert same.tolist() == [False, True, False]


@pytest.mark.parametrize("mode", [Mode.DISABLED, Mode.SAME_STEP])
def test_given_parameters_last_for_one_episode(mode):
    """Otherwise the same seed would give another motion; worlds that go on keep what they were given."""
    env = environment(of=episode(start={}), autoreset_mode=mode)
    model, table = env.simulation.parameter("stiffness"), actions(env)
    env.reset(seed=0)
    untouched = [env.step(action)[0] for action in table[:5]]
    env.reset(options={"parameters": {"stiffness": 0.3 * model}})
    env.reset(options={"reset_mask": torch.tensor([True, False, False])})
    assert torch.equal(env.parameters["stiffness"][0], model[0])
    assert torch.equal(env.parameters["stiffness"][1:], 0.3 * model[1:])
    given = [env.step(action)[0] for action in table]  # the episode ends
    assert not torch.allclose(given[4][1], untouched[4][1])
    if mode is Mode.DISABLED:
        env.reset(seed=0)
    again = [env.step(action)[0] for action in table[:5]]
    assert all(map(torch.equal, again, untouched))


def test_a_reset_takes_goals_instead_of_random_ones():
    """Also a goal that is one number; worlds outside the mask keep theirs, and the next episode draws again."""
    draws = {"speed": wb.envs.UniformValue(0.0, 1.0), "place": wb.envs.UniformValue((0.0, 0.0), (1.0, 1.0))}
    env = environment(of=episode(goals=draws), autoreset_mode=Mode.DISABLED)
    first, _ = env.reset(seed=0)
    assert first.shape[1] == 4 + 3  # the centre of mass with its velocity, and the goals
    assert torch.equal(first[:, 4], env.goals["speed"])
    mask = torch.tensor([True, False, True])
    seen, _ = env.reset(options={"reset_mask": mask, "goals": {"speed": 7.0}})
    assert seen[:, 4].tolist() == [7.0, first[1, 4].item(), 7.0]
    assert torch.equal(seen[1], first[1])
    assert (seen[mask, 5:] != first[mask, 5:]).all()
    assert env.reset()[0][:, 4].max() <= 1.0


def test_a_reward_is_differentiable_with_respect_to_a_goal():
    far = torch.tensor(0.5, requires_grad=True)
    rules = episode(
        reward=lambda t: -(t.simulation.center_of_mass(t.after)[:, 0] - t.goals["far"]).square(),
        goals={"far": wb.envs.UniformValue(0.0, 1.0)},
    )
    env = environment(of=rules, differentiable=True)
    env.reset(seed=0, options={"goals": {"far": far}})
    (slope,) = torch.autograd.grad(env.step(actions(env)[0])[1].sum(), far)
    apart = 0.5 - env.simulation.center_of_mass(env.state)[:, 0]
    assert slope.item() == pytest.approx(-2.0 * apart.sum().item(), rel=1e-4)


def test_a_batch_steps_in_inference_mode():
    """As runners of learning libraries use it."""
    env, plain = environment(), environment()
    plain.reset(seed=0)
    with torch.inference_mode():
        env.reset(seed=0)
        rewards = [env.step(u)[1] for u in actions(env)]
    for u, reward in zip(actions(plain), rewards, strict=True):
        assert torch.equal(plain.step(u)[1], reward)


def test_same_step_begins_the_next_episode_at_once():
    env = environment()
    env.reset(seed=0)
    for i, action in enumerate(actions(env)):
        before = env.state
        seen, reward, terminated, truncated, infos = env.step(action)
        assert truncated.all() == (i == 5)
    assert not terminated.any()
    last = env.simulation.step(before, action)
    observe = wb.observers.Centroid().bind(env.simulation)
    assert torch.equal(infos["final_obs"], observe(last).to(seen))
    assert torch.equal(seen, observe(env.state).to(seen))
    assert infos["_final_obs"].all()
    assert infos["final_info"]["age"].tolist() == pytest.approx([0.06] * 3)
    assert infos["age"].tolist() == [0.0] * 3
    assert not infos["_age"].any()


def test_next_step_ignores_the_action_of_worlds_that_begin():
    ends = lambda t: torch.arange(3) == (1 if t.age[0] == pytest.approx(0.02) else -1)
    one = lambda t: torch.ones(3)
    env = environment(of=episode(terminated=ends, reward=one), autoreset_mode=Mode.NEXT_STEP)
    env.reset(seed=0)
    table = actions(env)
    env.step(table[0])
    _, reward, terminated, truncated, infos = env.step(table[1])
    assert terminated.tolist() == [False, True, False]
    assert "final_obs" not in infos
    _, reward, terminated, truncated, infos = env.step(table[2])
    assert reward.tolist() == [1.0, 0.0, 1.0]
    assert not terminated.any()
    assert infos["age"].tolist() == pytest.approx([0.03, 0.0, 0.03])
    assert torch.equal(env.state.position[1], env.simulation.state().position[1])


def test_disabled_resets_wait_for_a_mask():
    env = environment(autoreset_mode=Mode.DISABLED)
    env.reset(seed=0)
    for action in actions(env):
        env.step(action)
    with pytest.raises(RuntimeError, match=r"the episode of world 0 is over; begin the next one by reset\(options"):
        env.step(action)
    env.reset(options={"reset_mask": np.array([True, True, False])})
    with pytest.raises(RuntimeError, match="the episode of world 2 is over"):
        env.step(action)
    env.reset(options={"reset_mask": torch.tensor([False, False, True])})
    env.step(action)


def test_delayed_observations_stay_in_step_with_their_worlds():
    """The last look at an episode is not remembered: worlds that go on see what a batch of their own sees."""
    late = wb.observers.Delayed(wb.observers.Centroid(), 2)
    ends = lambda t: torch.arange(3) == (1 if t.age[0] == pytest.approx(0.03) else -1)
    for mode in (Mode.SAME_STEP, Mode.DISABLED):
        env = environment(of=episode(observer=late, terminated=ends), autoreset_mode=mode)
        whole = environment(of=episode(observer=late), autoreset_mode=mode)
        table = actions(env)
        seen, unbroken = env.reset(seed=0)[0], whole.reset(seed=0)[0]
        first = None
        for i, action in enumerate(table[:5]):
            seen, *_, infos = env.step(action)
            unbroken = whole.step(action)[0]
            if i == 2:
                last = seen if mode is Mode.DISABLED else infos["final_obs"]
                assert torch.equal(last, unbroken)
                if mode is Mode.DISABLED:
                    seen, _ = env.reset(options={"reset_mask": torch.arange(3) == 1})
                first = seen[1]
            assert torch.equal(seen[::2], unbroken[::2])
            if i > 2:
                assert torch.equal(seen[1], first)  # two intervals late


@pytest.mark.parametrize("name", ["action", "state", "parameter"])
def test_the_gradient_through_steps_is_that_of_the_simulation(name):
    """Rewards of three steps, differentiated by the environment and by steps of the simulation."""
    sim = springs(2)
    env = environment(2, sim, of=episode(start={}), differentiable=True)
    table = actions(env, steps=3)
    wanted = {"action": table, "state": sim.state().velocity, "parameter": sim.parameter("stiffness")}
    variable = wanted[name].clone().requires_grad_()
    state = sim.state(velocity=variable) if name == "state" else sim.state()
    stiffness = {"stiffness": variable} if name == "parameter" else {}
    control = variable if name == "action" else table
    env.reset(options={"state": state, "parameters": stiffness})
    total = sum(env.step(u)[1].sum() for u in control)
    (own,) = torch.autograd.grad(total, variable)
    start = sim.center_of_mass(state)
    for u in control:
        state = sim.step(state, u, **stiffness)
    loss = (sim.center_of_mass(state) - start)[:, 0].sum() / sim.dt - 0.01 * control.square().sum()
    (other,) = torch.autograd.grad(loss, variable)
    assert own.abs().max() > 0.0
    torch.testing.assert_close(own, other, rtol=2e-4, atol=2e-5 * other.abs().max().item())


def test_without_differentiable_no_gradient_is_kept():
    env = environment()
    env.reset(seed=0)
    assert not env.step(actions(env)[0].requires_grad_())[1].requires_grad


def test_detach_cuts_the_gradient():
    env = environment(2, of=episode(start={}), differentiable=True)
    env.reset(seed=0)
    first, second = actions(env, steps=2).requires_grad_().unbind()
    env.step(first)
    env.detach()
    reward = env.step(second)[1].sum()
    assert torch.autograd.grad(reward, first, allow_unused=True, retain_graph=True) == (None,)
    assert torch.autograd.grad(reward, second)[0].abs().max() > 0.0


@pytest.mark.parametrize(
    "observer",
    [
        wb.observers.Delayed(wb.observers.Centroid(), 2),
        wb.observers.Noisy(wb.observers.Delayed(wb.observers.Centroid(), 1), 0.1, seed=3),
        wb.observers.Accelerometer("left"),
        wb.observers.Clusters(2, acceleration=True),
    ],
    ids=["delayed", "noisy", "accelerometer", "clusters"],
)
def test_detach_reaches_observers_with_memory(observer):
    """Memory keeps its values and loses its gradient."""
    env, whole = (environment(2, of=episode(start={}, observer=observer), differentiable=True) for _ in range(2))
    env.reset(seed=0), whole.reset(seed=0)
    first, second = (part.requires_grad_() for part in actions(env).split(3))
    seen = [env.step(u)[0] for u in first]
    assert env.detach().tolist() == seen[-1].tolist()
    seen += [env.step(u)[0] for u in second]
    found, cut = torch.autograd.grad(sum(s.square().sum() for s in seen[3:]), (second, first), allow_unused=True)
    assert cut is None
    unbroken = [whole.step(u)[0] for u in (*first, *second)]
    assert all(torch.equal(a, b) for a, b in zip(seen, unbroken, strict=True))
    late = sum(s.square().sum() for s in unbroken[3:])
    wanted, leak = torch.autograd.grad(late, (second, first))
    torch.testing.assert_close(found, wanted)
    assert leak.abs().max() > 0.0


def test_detach_before_the_first_reset_gives_nothing():
    assert environment(2, differentiable=True).detach() is None


def test_a_memory_that_cannot_be_detached_is_named():
    class Late:
        def __call__(self, state):
            return state.position.mean(dim=1)

        def forget(self, worlds=None):
            pass

    with pytest.raises(TypeError, match="Late has memory, since it has a method forget, but no method detach"):
        environment(2, of=episode(observer=Late()))


@pytest.mark.parametrize("last", [2, 6], ids=["cut_short", "to_the_end"])
def test_a_reset_of_all_worlds_cuts_the_gradient(last):
    """Each episode is differentiated on its own; gradients still reach the start and the parameters that are given."""
    drawn = {"stiffness": wb.envs.Scaled(0.5, 2.0)}
    env = environment(2, of=episode(start={}, parameters=drawn), differentiable=True)
    table = actions(env).requires_grad_()
    velocity = env.simulation.state().velocity.requires_grad_()
    stiffness = env.simulation.parameter("stiffness").requires_grad_()
    starts = [
        {"options": {"state": env.simulation.state(velocity=velocity), "parameters": {"stiffness": stiffness}}},
        {"seed": 1},
    ]
    for start in starts:
        seen, _ = env.reset(**start)
        total = seen.sum() + sum(env.step(u)[1].sum() for u in table[:last])
        given = (table, velocity, stiffness) if "options" in start else (table,)
        for found in torch.autograd.grad(total, given):
            assert found.abs().max() > 0.0
    seen, _ = env.reset(seed=1)
    assert not seen.requires_grad


def fast(env, worlds):
    """Give some worlds a state that the solver cannot follow."""
    velocity = env.state.velocity.clone()
    velocity[worlds] = 1e36 * torch.linspace(-1.0, 1.0, velocity.shape[1])[:, None]
    env.state = dataclasses.replace(env.state, velocity=velocity)


def test_a_lost_world_ends_with_a_word_and_a_finite_reward():
    env = environment()
    env.reset(seed=0)
    fast(env, [1])
    with pytest.warns(wb.LostWorldWarning, match="world 1 of 3"):
        _, reward, terminated, truncated, infos = env.step(actions(env)[0])
    assert terminated.tolist() == [False, True, False]
    assert not truncated.any()
    assert torch.isfinite(reward).all()
    assert infos["final_info"]["lost"].tolist() == [False, True, False]
    seen, *_ = env.step(actions(env)[1])  # and it goes on
    assert torch.isfinite(seen).all()
    fast(env, [0, 1, 2])
    with pytest.warns(wb.LostWorldWarning, match="all 3 worlds end: control step 0"):
        _, reward, terminated, *_ = env.step(actions(env)[0])
    assert terminated.all()
    assert torch.isfinite(reward).all()


@pytest.mark.parametrize("solver", ["mpm", "springs", "articulated"])
def test_any_solver_is_an_environment(solver):
    sim = {
        "mpm": lambda: wb.Simulation(strip(), wb.MPM(0.025), 0.01, 9, worlds=2),
        "springs": lambda: springs(2),
        "articulated": lambda: wb.Simulation(pendulum(), wb.Articulated(), 0.01, 2, worlds=2),
    }[solver]()
    observer = wb.observers.Joints() if solver == "articulated" else wb.observers.Centroid()
    env = environment(2, sim, of=episode(observer=observer, start={}))
    env.reset(seed=0)
    for action in actions(env, steps=7):
        seen, reward, *_ = env.step(action)
    state = sim.state()
    for action in actions(env, steps=6):
        state = sim.step(state, action)
    assert torch.isfinite(reward).all()
    assert reward.dtype == seen.dtype == getattr(torch, wb.numerics.precision)


def test_a_picture_follows_the_bodies():
    env = environment(2, render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    assert [f.shape for f in first] == [first[0].shape] * 2
    assert first[0].dtype == np.uint8
    moved = env.state.position + torch.tensor([1.0, 0.0])
    env.state = dataclasses.replace(env.state, position=moved)
    then = env.render()
    assert then[0].shape == first[0].shape
    blue = lambda f: (f[..., 2].astype(int) - f[..., 0] > 60).sum()
    assert blue(then[0]) == pytest.approx(blue(first[0]), rel=0.2)
    assert blue(first[0]) > 500
    assert environment(2).render() is None


def test_one_world_passes_the_checkers():
    from gymnasium.utils.env_checker import check_env

    env = wb.envs.SimulationEnv(springs(1), episode(), render_mode="rgb_array")
    with pytest.warns(UserWarning, match="infinity|spec"):
        check_env(env)
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    checker.check_env(wb.envs.SimulationEnv(springs(1), episode()))
    with pytest.raises(ValueError, match="simulation must have 1 world, got 3; use SimulationVectorEnv"):
        wb.envs.SimulationEnv(springs(3), episode())


def test_the_single_world_is_the_batch_of_one():
    env, alone = environment(1), wb.envs.SimulationEnv(springs(1), episode())
    seen, _ = env.reset(seed=4)
    other, _ = alone.reset(seed=4)
    np.testing.assert_array_equal(seen[0].numpy(), other)
    for action in actions(env, steps=3):
        seen, reward, *_ = env.step(action)
        other, value, terminated, truncated, infos = alone.step(action[0].numpy())
        np.testing.assert_array_equal(seen[0].numpy(), other)
        assert value == reward.item()
    assert infos["age"] == pytest.approx(0.03)
    assert infos["reward_terms"]["speed"] == pytest.approx(value + 0.01 * action.square().sum().item(), rel=1e-5)


def test_wrappers_of_gymnasium_take_the_batch():
    env = gymnasium.wrappers.vector.RecordEpisodeStatistics(environment(numpy=True))
    env.reset(seed=0)
    total = np.zeros(3)
    for action in actions(env.unwrapped):
        _, reward, *_, infos = env.step(action.numpy())
        total += reward
    np.testing.assert_allclose(infos["episode"]["r"], total, rtol=1e-5)
    assert infos["episode"]["l"].tolist() == [6] * 3


def test_motor_torques_are_those_of_the_last_interval():
    torques = (wb.observers.JointTorques(), wb.observers.Delayed(wb.observers.JointTorques(), 1))
    of = wb.envs.Episode(torques, lambda t: t.after.q[:, 0], steps=2)
    sim = wb.Simulation(pendulum(), wb.Articulated(), 0.01, worlds=2)
    env = wb.envs.SimulationVectorEnv(sim, of)
    assert env.reset(seed=0)[0].tolist() == [[0.0, 0.0]] * 2
    actions = torch.tensor([[1.0], [-0.5]])
    torch.testing.assert_close(env.step(actions)[0], torch.tensor([[0.3, 0.0], [-0.15, 0.0]]))
    *_, infos = found = env.step(-actions)
    torch.testing.assert_close(infos["final_obs"], torch.tensor([[-0.3, 0.3], [0.15, -0.15]]))
    assert found[0].tolist() == [[0.0, 0.0]] * 2, "the next episode begins without a control"
