"""What environments refuse, with a sentence that names the thing, its value, the allowed range and the remedy."""

import numpy as np
import pytest
import torch
from environments import actions, environment, episode, springs

import warpbots as wb

gymnasium = pytest.importorskip("gymnasium", reason="the extra rl is not installed")


@pytest.mark.parametrize(
    "of",
    ["not finite", "shape", "mask", "complex", "device", "name", "mask's device", "sum", "in place", "end in place"],
)
def test_a_wrong_reward_or_end_is_refused(of):
    wrong = {
        "not finite": ({"reward": lambda t: {"a": t.age, "b": torch.tensor([0.0, float("nan"), 1.0])}},
                       r"term 'b' of the reward is nan in world 1 at t = 0.01 s, and must be finite; end episodes"),
        "shape": ({"reward": lambda t: torch.zeros(3, 1)}, r"reward must be a torch tensor of shape \(3,\).*got \(3, 1\)"),
        "complex": ({"reward": lambda t: t.age * 1j}, "reward must have real numbers, got type torch.complex128; take"),
        "device": ({"reward": lambda t: t.age.to("meta")}, "reward must be on the device of the simulation, cpu, got a tensor on meta"),
        "name": ({"reward": lambda t: {"_a": t.age}}, "a term of the reward is called '_a'; its name must be a text"),
        "mask's device": ({"terminated": lambda t: (t.age > 0).to("meta")}, "terminated must be on the device of the simulation"),
        "sum": ({"reward": lambda t: {"a": 1e300 * t.age, "b": t.age}}, r"the sum of the terms of the reward is inf in torch.float32 in world 0"),
        "in place": ({"reward": lambda t: t.after.velocity.mul_(2.0)[:, 0, 0]}, "reward changes state velocity in place"),
        "end in place": ({"terminated": lambda t: t.goals["far"].add_(1.0) > 9.0, "goals": {"far": wb.envs.UniformValue(0.0, 1.0)}},
                         "terminated changes goal far in place"),
        "mask": ({"terminated": lambda t: torch.zeros(3)}, "terminated must return a mask, bool, got numbers of type torch.float32"),
    }  # fmt: skip
    options, words = wrong[of]
    env = environment(of=episode(**options))
    env.reset(seed=0)
    with pytest.raises(ValueError, match=words):
        env.step(actions(env)[0])


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (lambda a: a + torch.tensor([[0.0, 0.0], [0.0, 3.0], [0.0, 0.0]]), r"actions\[1, 1\] of actuator 'right' is .*must be in \[-1, 1\]; bound it with tanh"),
        (lambda a: a * float("nan"), r"actions\[0, 0\] of actuator 'left' is nan"),
        (lambda a: a[:, :1], r"actions must have shape \(3, 2\).*got \(3, 1\)"),
        (lambda a: "left", "actions must be a tensor or an array of real numbers, got 'left'"),
        (lambda a: a * 1j, "actions must be a tensor or an array of real numbers, got tensor"),
    ],
    ids=["range", "nan", "shape", "type", "complex"],
)  # fmt: skip
def test_a_wrong_action_is_refused(bad, words):
    env = environment()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=words):
        env.step(bad(actions(env)[0]))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"options": {"reset_mask": np.ones(4, dtype=bool)}}, r"reset_mask must be .* shape \(3,\), bool.*got shape \(4,\)"),
        ({"options": {"reset_mask": np.ones(3)}}, r"got shape \(3,\) and type torch.float64"),
        ({"options": {"reset_mask": [0, 1]}}, r"reset_mask must be an array or a tensor"),
        ({"options": {"masks": 1}}, "there is no option 'masks'; there are reset_mask, state, parameters, goals"),
        ({"options": 1}, "options must be a dict with any of reset_mask, state, parameters, goals, got 1"),
        ({"options": {"state": 1}}, r"option state must be a MassSpringState, as simulation.state\(...\) returns it, got 1"),
        ({"options": {"parameters": 1}}, "option parameters must be a dict of tensors by name, got 1"),
        ({"options": {"parameters": {"mass": np.ones(2)}}}, r"option parameters\['mass'\] must be real numbers that broadcast to shape \(3, 27\)"),
        ({"options": {"parameters": {"mass": float("nan")}}}, r"option parameters\['mass'\] is nan at index \[0, 0\], and must be finite"),
        ({"options": {"goals": 1}}, "option goals must be a dict of tensors by name, got 1"),
        ({"seed": [1, 2]}, "seed must be an integer, 3 integers"),
        ({"seed": -1}, "a seed must be an integer of at least 0, got -1"),
    ],
)  # fmt: skip
def test_a_wrong_reset_is_refused(options, words):
    env = environment()
    with pytest.raises(RuntimeError, match="no state yet; call reset"):
        env.step(actions(env)[0])
    env.reset(seed=0)
    with pytest.raises(ValueError, match=words):
        env.reset(**options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"steps": 0}, "steps must be at least 1"),
        ({"clock": 0.0}, "clock must be a positive period"),
        ({"observer": ()}, "observer is an empty tuple; name at least one observer"),
        (
            {"observer": lambda s: s.position[:, 0] * 1j},
            "the observation must have real numbers, got type torch.complex",
        ),
        ({"goals": {"target": lambda value, generator: None}}, r"goals\['target'\] must draw numbers, got None"),
        ({"start": {"speed": wb.envs.Shifted(0, 1)}}, "start: a state has no 'speed'; it has position"),
        ({"parameters": {"weight": wb.envs.Shifted(0, 1)}}, "parameters: the model has no 'weight'; it has"),
    ],
)
def test_a_wrong_episode_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        environment(of=episode(**options))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: wb.envs.Scaled(0.0, 1.0), "Scaled: lower must be above 0"),
        (lambda: wb.envs.Shifted(1.0, 0.0), "lower at most upper, got 1.0 and 0.0"),
        (lambda: wb.envs.UniformValue("a", 1.0), "UniformValue: lower and upper must be numbers"),
    ],
)
def test_a_wrong_range_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_a_draw_outside_the_range_of_a_parameter_is_refused():
    env = environment(of=episode(parameters={"mass": wb.envs.UniformValue(-2.0, -1.0)}))
    env.reset(seed=0)
    with pytest.raises(ValueError, match="parameter 'mass' must be in"):
        env.step(actions(env)[0])


def test_a_start_that_is_not_finite_is_refused_where_it_is_used():
    env = environment()
    env.reset(seed=0)
    wrong = env.simulation.state()
    wrong.velocity[1, 2, 0] = float("nan")
    env.reset(options={"state": wrong, "reset_mask": torch.tensor([True, False, True])})
    with pytest.raises(ValueError, match=r"option state has nan in field 'velocity' at index \[1, 2, 0\], and must be"):
        env.reset(options={"state": wrong})


def test_an_observation_that_changes_its_size_is_refused():
    sizes = iter((2, 2, 3))
    env = environment(of=episode(observer=lambda state: state.position[:, : next(sizes), 0]))
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"returned \[3\] features, and \[2\] when the environment was made"):
        env.step(actions(env)[0])


def test_a_range_that_does_not_fit_its_value_is_refused():
    for each in (False, True):
        env = environment(of=episode(start={"velocity": wb.envs.Shifted((0, 0, 0), (1, 1, 1), each=each)}))
        with pytest.raises(ValueError, match=r"Shifted: lower and upper have shape \(3,\), which does not broadcast"):
            env.reset(seed=0)


@pytest.mark.parametrize("flag", ["differentiable", "numpy"])
def test_a_flag_that_is_no_truth_value_is_refused(flag):
    with pytest.raises(ValueError, match=f"SimulationVectorEnv: {flag} must be True or False, got 'no'"):
        environment(**{flag: "no"})


def test_an_unknown_goal_and_one_of_another_shape_are_refused():
    env = environment(of=episode(goals={"far": wb.envs.UniformValue((0.0, 0.0), (1.0, 1.0))}))
    with pytest.raises(KeyError, match="there is no goal 'near'; the episode has far"):
        env.reset(options={"goals": {"near": 1.0}})
    with pytest.raises(
        ValueError, match=r"option goals\['far'\] must be real numbers that broadcast to shape \(3, 2\)"
    ):
        env.reset(options={"goals": {"far": torch.ones(3)}})


def test_an_unknown_mode_of_resets_is_refused():
    with pytest.raises(ValueError, match="autoreset_mode must be one of AutoresetMode.NEXT_STEP.*got 'now'"):
        environment(autoreset_mode="now")


@pytest.mark.parametrize("action", [np.zeros(3), [[1], [1, 2]], None], ids=["shape", "ragged", "none"])
def test_a_wrong_action_of_a_single_world_is_refused(action):
    env = wb.envs.SimulationEnv(springs(1), episode())
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"action must be an array of shape \(2,\), one number for each actuator"):
        env.step(action)
