"""Tasks with fixed versions, and the forms of other libraries."""

import importlib.util

import numpy as np
import pytest
import torch
from environments import episode, springs

import warpbots as wb

gymnasium = pytest.importorskip("gymnasium", reason="the extra rl is not installed")
Mode = gymnasium.vector.AutoresetMode
TASKS = tuple(wb.envs.TASKS)


@pytest.mark.parametrize("name", TASKS)
def test_gymnasium_makes_a_task(name):
    if name == "Ant-v0":
        pytest.importorskip("mujoco")
    env = gymnasium.make_vec(f"warpbots/{name}", num_envs=2, vectorization_mode="vector_entry_point", numpy=True)
    seen, _ = env.reset(seed=0)
    assert seen in env.observation_space
    env.action_space.seed(0)
    for _ in range(2):
        seen, reward, terminated, truncated, _ = env.step(env.action_space.sample())
    assert seen in env.observation_space
    assert np.isfinite(reward).all()
    assert not (terminated | truncated).any()


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_a_task_passes_the_checker(name):
    from gymnasium.utils.env_checker import check_env

    env = gymnasium.make(f"warpbots/{name}", render_mode="rgb_array")
    with pytest.warns(UserWarning, match="infinity"):
        check_env(env.unwrapped)
    pytest.importorskip("stable_baselines3.common.env_checker").check_env(env.unwrapped)


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_random_actions_lose_no_world_and_have_a_gradient(name):
    """Learners begin with such actions, which jump in every interval."""
    env = wb.envs.SimulationVectorEnv(*wb.envs.TASKS[name](8), differentiable=True)
    env.reset(seed=0)
    table = (
        2.0 * torch.rand(8, 8, env.simulation.channels, generator=torch.Generator().manual_seed(0)) - 1.0
    ).requires_grad_()
    total = 0.0
    for actions in table:
        _, reward, _, _, infos = env.step(actions)
        assert "lost" not in infos or not infos["lost"].any()
        total = total + reward.sum()
    (gradient,) = torch.autograd.grad(total, table)
    assert torch.isfinite(gradient).all()
    assert (gradient.abs().sum(dim=2) > 0.0).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_a_seed_of_a_task_is_a_motion_and_a_reset_leaves_other_worlds_alone(name):
    env = gymnasium.make_vec(
        f"warpbots/{name}", num_envs=3, vectorization_mode="vector_entry_point", autoreset_mode=Mode.DISABLED
    )
    table = torch.rand(8, 3, env.simulation.channels, generator=torch.Generator().manual_seed(0)) - 0.5

    def motion(reset_at=None):
        found = [env.reset(seed=3)[0]]
        for k, action in enumerate(table):
            if k == reset_at:
                env.reset(options={"reset_mask": torch.tensor([False, True, False])})
            seen, reward, *_ = env.step(action)
            found += [seen, reward[:, None]]
        return torch.cat(found, dim=1)

    whole, broken = motion(), motion(reset_at=4)
    assert torch.equal(whole, motion())
    assert torch.equal(whole[::2], broken[::2])
    assert not torch.equal(whole[1], broken[1])


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_adapters_take_a_task(name):
    """TorchRL's check of specifications, and steps through RSL-RL and skrl, with what is installed of these."""
    make = wb.envs.TASKS[name]
    if importlib.util.find_spec("torchrl"):
        from torchrl.envs.utils import check_env_specs

        check_env_specs(wb.envs.TorchRLEnv(wb.envs.SimulationVectorEnv(*make(2), autoreset_mode=Mode.DISABLED)))
    if importlib.util.find_spec("rsl_rl"):
        env = wb.envs.RslRlEnv(wb.envs.SimulationVectorEnv(*make(2)), seed=0)
        seen, reward, *_ = env.step(2.0 * torch.randn(2, env.num_actions))
        assert torch.isfinite(seen["policy"]).all() and torch.isfinite(reward).all()
    if importlib.util.find_spec("skrl"):
        from skrl.envs.wrappers.torch import wrap_env

        env = wrap_env(wb.envs.SimulationVectorEnv(*make(2), numpy=True), wrapper="gymnasium", verbose=False)
        env.reset()
        seen, reward, *_ = env.step(torch.zeros(2, env.action_space.shape[0]))
        assert seen.shape == (2, env.observation_space.shape[0]) and reward.shape == (2, 1)


def test_names_and_kinds_of_parameters_of_a_task_can_be_random():
    env = gymnasium.make("warpbots/FingerReach-v0", randomized={"motor_torque": wb.envs.Scaled(0.5, 2.0)})
    env.reset(seed=0)
    worlds = env.unwrapped.worlds
    ratio = worlds.parameters["motor_torque"] / worlds.simulation.parameter("motor_torque")
    assert 0.5 <= ratio.min() < ratio.max() * (1 + 1e-6) <= 2.0 * (1 + 1e-6)
    assert abs(ratio[0, 0] - 1.0) > 1e-3


def test_the_finger_reaches_all_of_its_targets():
    """Targets lie within the lengths of the phalanges, and within the angles of the joint that turns sideways."""
    simulation, rules = wb.envs.TASKS["FingerReach-v0"](1)
    draw = rules.goals["target"]
    corners = np.stack(np.meshgrid(*zip(draw.lower, draw.upper, strict=True)), axis=-1).reshape(-1, 3)
    rest = rules.observer[1].bind(simulation)(simulation.state())
    assert np.linalg.norm(corners, axis=1).max() < rest.norm().item() == pytest.approx(0.15)
    spread = simulation.scene.joints[0]
    angle = np.arctan2(corners[:, 1], corners[:, 0])
    assert spread.lower < angle.min() < angle.max() < spread.upper


@pytest.mark.slow
def test_a_cube_can_be_lifted():
    """Fingers close, and then the hand rises: a reward that no motion on the floor reaches."""
    simulation, rules = wb.envs.TASKS["Gripper-v0"](1)
    env = wb.envs.SimulationVectorEnv(simulation, rules)
    env.reset(seed=0)
    total = 0.0
    for k in range(80):
        rise = min(max(k - 25, 0) / 40, 0.7)
        total += env.step(torch.tensor([[rise, 1.0, 1.0]]))[1].item()
    assert env.step(torch.tensor([[rise, 1.0, 1.0]]))[-1]["reward_terms"]["height"].item() > 0.3


@pytest.mark.slow
def test_the_palm_stops_a_cube_that_is_thrown_up():
    """Its top reaches the lower side of the palm, which is 8 cm above the floor; a free one would rise to 20 cm."""
    simulation, rules = wb.envs.TASKS["Gripper-v0"](1)
    middle = rules.observer[1].bind(simulation)
    velocity = simulation.state().qd.clone()
    velocity[:, simulation.model.robot.velocities["cube"].start + 2] = 2.0
    motion = simulation.rollout(None, 12, simulation.state(qd=velocity))
    highest = max(middle(state)[0, 2].item() for _, state in motion.states())
    assert 0.05 < highest < 0.07


def test_stable_baselines_gets_the_last_observation_and_what_ended_the_episode():
    checked = pytest.importorskip("stable_baselines3")
    ends = lambda t: torch.arange(3) == (1 if t.age[0] == pytest.approx(0.02) else -1)
    plain = wb.envs.SimulationVectorEnv(springs(), episode(terminated=ends), numpy=True)
    env = wb.envs.StableBaselinesEnv(wb.envs.SimulationVectorEnv(springs(), episode(terminated=ends), numpy=True))
    env.seed(3)
    np.testing.assert_array_equal(env.reset(), plain.reset(seed=3)[0])
    table, total = np.random.default_rng(0).uniform(-1.0, 1.0, (6, 3, 2)).astype(np.float32), np.zeros(3)
    for k, actions in enumerate(table):
        seen, reward, over, infos = env.step(actions)
        other, value, terminated, truncated, vector = plain.step(actions)
        np.testing.assert_array_equal(seen, other)
        np.testing.assert_array_equal(reward, value)
        total += reward
        if k == 1:
            assert over.tolist() == [False, True, False]
            assert not infos[1]["TimeLimit.truncated"]
            np.testing.assert_array_equal(infos[1]["terminal_observation"], vector["final_obs"][1])
            assert infos[1]["episode"]["r"] == pytest.approx(total[1])
            assert "terminal_observation" not in infos[0]
    assert over.tolist() == [True, False, True]
    assert infos[0]["TimeLimit.truncated"]
    model = checked.PPO("MlpPolicy", env, n_steps=8, batch_size=12, n_epochs=1, seed=0, device="cpu")
    before = [p.clone() for p in model.policy.parameters()]
    model.learn(48)
    assert any((a != b).any() for a, b in zip(before, model.policy.parameters(), strict=True))
    evaluation = pytest.importorskip("stable_baselines3.common.evaluation")
    judged, _ = evaluation.evaluate_policy(model, env, 6)  # warns of an environment whose episodes it cannot trust
    assert np.isfinite(judged)


def test_adapters_refuse_other_resets():
    pytest.importorskip("stable_baselines3")
    env = wb.envs.SimulationVectorEnv(springs(), episode())
    with pytest.raises(ValueError, match=r"must give NumPy arrays and reset in the same step; make it by"):
        wb.envs.StableBaselinesEnv(env)


def test_torchrl_takes_an_environment():
    pytest.importorskip("torchrl")
    from torchrl.envs.utils import check_env_specs

    of = episode(terminated=lambda t: (torch.arange(3) == 1) & (t.age > 0.015))
    env = wb.envs.TorchRLEnv(wb.envs.SimulationVectorEnv(springs(), of, autoreset_mode=Mode.DISABLED))
    check_env_specs(env)
    env.set_seed(0)
    found = env.rollout(7, break_when_any_done=False)
    assert found["next", "reward"].shape == (3, 7, 1)
    assert found["next", "terminated"][:, 1, 0].tolist() == [False, True, False]
    assert found["next", "truncated"][:, 5, 0].tolist() == [True, False, True]
    with pytest.raises(ValueError, match="TorchRLEnv: environment must give tensors and leave resets"):
        wb.envs.TorchRLEnv(wb.envs.SimulationVectorEnv(springs(), of))
    begun = env.reset(state=env.environment.simulation.state(velocity=torch.full((1, 1, 2), 0.05)))
    torch.testing.assert_close(begun["observation"][:, 2:], torch.full((3, 2), 0.25))
    with pytest.raises(ValueError, match="stat"):
        env.reset(stat=None)


def test_rsl_rl_takes_an_environment():
    pytest.importorskip("rsl_rl")
    env = wb.envs.RslRlEnv(wb.envs.SimulationVectorEnv(springs(), episode()), seed=0)
    assert env.get_observations()["policy"].shape == (3, 4)
    for k in range(6):
        assert env.episode_length_buf.tolist() == [k] * 3
        seen, reward, over, extras = env.step(5.0 * torch.ones(3, 2))
    assert over.all()
    assert extras["time_outs"].all()
    assert extras["log"].keys() == {"reward/speed", "reward/effort"}
    assert torch.equal(seen["policy"], env.get_observations()["policy"])
    with pytest.raises(ValueError, match=r"episode_length_buf must have shape \(3,\).*got \(2,\)"):
        env.episode_length_buf = torch.zeros(2)


def test_skrl_takes_an_environment():
    skrl = pytest.importorskip("skrl.envs.wrappers.torch")
    env = skrl.wrap_env(
        wb.envs.SimulationVectorEnv(springs(), episode(), numpy=True), wrapper="gymnasium", verbose=False
    )
    seen, _ = env.reset()
    seen, reward, *_ = env.step(torch.zeros(3, 2))
    assert seen.shape == (3, 4)
    assert reward.shape == (3, 1)


def test_stable_baselines_begins_with_the_options_that_it_is_given():
    pytest.importorskip("stable_baselines3")
    env = wb.envs.StableBaselinesEnv(wb.envs.SimulationVectorEnv(springs(2), episode(), numpy=True))
    env.set_options({"state": env.environment.simulation.state(velocity=torch.full((1, 1, 2), 0.05))})
    np.testing.assert_allclose(env.reset()[:, 2:], 0.25, rtol=1e-5)
    assert abs(env.reset()[0, 3]) < 1e-6, "they hold for one reset"
    env.set_options([{}, {"goals": {}}])
    with pytest.raises(ValueError, match="options must be one dict for all worlds, .*got a list of 2 dicts"):
        env.reset()
