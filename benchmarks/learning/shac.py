"""Short-horizon actor critic (Xu et al. 2022): the gradient of short rollouts, and a critic for what comes after."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from warpbots.envs import SimulationVectorEnv

__all__ = ["learn"]


def network(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """A network with two hidden layers, whose inputs are normalised before."""
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.ELU(), nn.LayerNorm(hidden), nn.Linear(hidden, hidden), nn.ELU(),
        nn.LayerNorm(hidden), nn.Linear(hidden, outputs),
    )  # fmt: skip


class Scale:
    """Running mean and variance of observations."""

    def __init__(self, features: int):
        self.mean, self.square, self.count = torch.zeros(features), torch.ones(features), 1e-4

    def note(self, seen: torch.Tensor) -> None:
        """Take observations into account, shape (n, features)."""
        rows = len(seen)
        share = rows / (self.count + rows)
        shift = seen.mean(0) - self.mean
        variance = seen.var(0, unbiased=False)
        self.square = (1.0 - share) * self.square + share * variance + share * (1.0 - share) * shift.square()
        self.mean, self.count = self.mean + share * shift, self.count + rows

    def __call__(self, seen: torch.Tensor) -> torch.Tensor:
        """Normalised observations."""
        return ((seen - self.mean) / (self.square + 1e-5).sqrt()).clamp(-10.0, 10.0)


def bounded(slope: torch.Tensor, most: float) -> torch.Tensor:
    """A derivative by actions, shape (worlds, channels), with a norm of at most `most` in each world.

    A contact can make the derivative of one world a thousand times as large as the derivatives of the others. A bound
    on the norm of the whole gradient would then leave nothing of the other worlds.
    """
    return slope * (most / slope.norm(dim=1, keepdim=True)).clamp(max=1.0)


def learn(
    env: SimulationVectorEnv,
    settings: Mapping[str, Any],
    seed: int,
    report: Callable[[int, Callable[[torch.Tensor], torch.Tensor]], None],
) -> None:
    """Learn until the samples are used up.

    Args:
        env: A differentiable environment.
        settings: See the section shac of the settings.
        seed: Seed of the worlds and of the networks.
        report: Called after each round with the number of samples and the policy without randomness.
    """
    torch.manual_seed(seed)
    features, channels = env.single_observation_space.shape[0], env.single_action_space.shape[0]
    actor, critic = network(features, settings["hidden"], channels), network(features, settings["hidden"], 1)
    target, spread = copy.deepcopy(critic), nn.Parameter(torch.full((channels,), settings["deviation"]))
    scale, gamma, horizon = Scale(features), settings["gamma"], settings["horizon"]
    of_actor = torch.optim.Adam([*actor.parameters(), spread], settings["actor_rate"], betas=(0.7, 0.95))
    of_critic = torch.optim.Adam(critic.parameters(), settings["critic_rate"], betas=(0.7, 0.95))
    seen, _ = env.reset(seed=seed)
    most = settings["largest_of_world"] / (horizon * env.num_envs)  # the loss is a mean over intervals and worlds
    samples, rounds = 0, settings["samples"] // (horizon * env.num_envs)
    for done in range(rounds):
        frozen = copy.deepcopy(scale)
        seen, discount = env.detach(), torch.ones(env.num_envs)
        gain, kept = torch.zeros(env.num_envs), []
        for step in range(horizon):
            before = seen
            action = torch.tanh(actor(frozen(seen)) + spread.exp() * torch.randn(env.num_envs, channels))
            action.register_hook(lambda slope: bounded(slope, most))
            seen, reward, terminated, truncated, infos = env.step(action)
            over = terminated | truncated
            last = infos["final_obs"] if over.any() else seen
            following = torch.where(terminated, 0.0, target(frozen(last)).squeeze(1))
            gain = gain + discount * reward
            closes = over | torch.full_like(over, step == horizon - 1)
            gain = gain + torch.where(closes, discount * gamma * following, 0.0)
            discount = torch.where(over, 1.0, gamma * discount)
            kept.append([t.detach() for t in (before, reward, following, closes)])
        loss = -gain.mean() / horizon
        of_actor.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_([*actor.parameters(), spread], settings["largest_gradient"])
        if not torch.isfinite(norm):
            raise FloatingPointError(f"shac: the gradient of the actor is {norm} after {samples} samples")
        of_actor.param_groups[0]["lr"] = settings["actor_rate"] * (1.0 - done / rounds) + 1e-5
        of_actor.step()
        inputs, rewards, following, closes = (torch.stack(column) for column in zip(*kept, strict=True))
        wanted, after = torch.zeros_like(rewards), torch.zeros_like(rewards[0])
        mixing = settings["mixing"]
        for step in reversed(range(horizon)):  # returns mixed over all numbers of steps
            ahead = torch.where(closes[step], following[step], (1.0 - mixing) * following[step] + mixing * after)
            wanted[step] = after = rewards[step] + gamma * ahead
        scale.note(inputs.flatten(0, 1))
        inputs, wanted = frozen(inputs.flatten(0, 1)), wanted.flatten()
        for _ in range(settings["critic_rounds"]):
            for rows in torch.randperm(len(inputs)).chunk(4):
                of_critic.zero_grad()
                (critic(inputs[rows]).squeeze(1) - wanted[rows]).square().mean().backward()
                nn.utils.clip_grad_norm_(critic.parameters(), settings["largest_gradient"])
                of_critic.step()
        with torch.no_grad():
            for slow, quick in zip(target.parameters(), critic.parameters(), strict=True):
                slow.lerp_(quick, 1.0 - settings["slowness"])
        samples += horizon * env.num_envs
        report(samples, lambda s: torch.tanh(actor(scale(s))))
