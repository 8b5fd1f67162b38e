"""What environments refuse, with a sentence that names the thing, its value, the allowed range and the remedy."""

import numpy as np
import pytest
import torch
from environments import actions, environment, episode

import warpbots as wb

gymnasium = pytest.importorskip("gymnasium", reason="the extra rl is not installed")


@pytest.mark.parametrize("of", ["not finite", "shape", "mask"])
def test_a_wrong_reward_or_end_is_refused(of):
    wrong = {
        "not finite": ({"reward": lambda t: {"a": t.age, "b": torch.tensor([0.0, float("nan"), 1.0])}},
                       r"term 'b' of the reward is nan in world 1 at t = 0.01 s, and must be finite; end episodes"),
        "shape": ({"reward": lambda t: torch.zeros(3, 1)}, r"reward must be a torch tensor of shape \(3,\).*got \(3, 1\)"),
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
        (lambda a: "left", "actions must be a tensor or an array, got 'left'"),
    ],
    ids=["range", "nan", "shape", "type"],
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
        ({"options": {"masks": 1}}, "there is no option 'masks'; there are reset_mask, state and parameters"),
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
