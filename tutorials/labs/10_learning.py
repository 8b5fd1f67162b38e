# %% [markdown]
# # Lab 10. A hybrid robot that learns
#
# **Goals.** You can write a policy gradient, write a gradient through the simulation, and compare the two by samples and by time.
#
# **Time.** 90 minutes: 15 to read and to predict by hand, 60 for four questions, 15 for the open one. The simulations take 10 s on one core.
#
# **Before.** Tutorials 07, *gradients*, and 12, *hybrid robots*; the page *Reinforcement learning* of the guide. This lab needs `pip install "warpbots[rl]"`.
#
# ![A learner sends actions to an environment of several worlds and gets back observations, rewards, ends of episodes and gradients](pictures/learning_loop.png)
#
# Write the name under which you hand this notebook in. The numbers of this lab follow from it.

# %%
student = ""

# %%
import copy
import time

import matplotlib.pyplot as plt
import torch

import warpbots as wb
from warpbots.envs import Episode, SimulationVectorEnv, UniformValue
from warpbots.exercises import check
from warpbots.labs import Numbers

mine = Numbers(student, "learning")

# %% [markdown]
# ## 1. The robot and its task
#
# A motor turns a rigid hub, in which a soft finger is cast; a spring and a damper hold the hub. The tip of the finger is to go to a height that is drawn anew for each episode, and to stay there. The motor is not strong, the finger sags and swings, and nobody tells the policy the laws of motion. It sees the angle of the hub and its rate, the height of the tip, and the goal; its action is the torque.
#
# Eight worlds run at once, with 20 control intervals of 0.05 s in an episode. The reward of an interval is the negative distance of the tip from the goal, in tenths of a metre, minus a little for effort.

# %%
modulus = mine.number("modulus", 0.8e5, 1.6e5)  # [Pa]
worlds, steps, spread = 8, 20, 0.3
print(f"modulus {modulus:g} Pa")

silicone = wb.Material(modulus, poissons_ratio=0.3, density=1000.0, damping=2e-3)
finger = wb.SoftBody("finger", wb.shapes.Box((0, -0.01, -0.01), (0.12, 0.01, 0.01)), silicone, color=(0.9, 0.65, 0.55))
hub = wb.RigidBody("hub", wb.shapes.Box((-0.02, -0.0101, -0.0101), (0.0201, 0.0101, 0.0101)), 2000.0)
base = wb.Joint("base", "revolute", None, "hub", axis=(0, -1, 0), stiffness=0.03, damping=6e-3)
scene = wb.Scene([finger, hub], [wb.actuators.Torque("motor", "base", 0.05)], joints=[base], name="reach")
solver = wb.ProjectiveDynamics(0.02, elements="hexahedra", collisions=False)
sim = wb.Simulation(scene, solver, dt=0.05, worlds=worlds)
end = sim.state().position[0, :, 0] > 0.119


def tip(state):
    "Height of the tip [m], shape (worlds, 1)."
    return state.position[:, end, 2].mean(dim=1, keepdim=True)


def observed(state):
    return torch.cat([state.q, 0.1 * state.qd, 10 * tip(state)], dim=1).float()


def reward(transition):
    distance = (tip(transition.after) - transition.goals["height"]).abs()[:, 0]
    return {"distance": -10 * distance, "effort": -0.01 * transition.control.square().mean(dim=1)}


episode = Episode(observed, reward, steps, goals={"height": UniformValue([-0.02], [0.08])})
env = SimulationVectorEnv(sim, episode)
with_gradient = SimulationVectorEnv(sim, episode, differentiable=True)


def new_policy():
    "A network from 4 observations to the mean of the action, before it is limited by tanh."
    torch.manual_seed(mine.seed("policy") % 2**31)
    network = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    with torch.no_grad():
        network[2].weight.mul_(0.1)
    return network


def mean_of(policy, seen):
    "Mean of the action; the network gets the distance from tip to goal, in tenths of a metre, in place of the goal."
    angle, rate, height, goal = seen.float().unbind(dim=1)
    return policy(torch.stack([angle, rate, height, 10 * goal - height], dim=1))


@torch.no_grad()
def judged(policy):
    "Mean return of a policy without noise, in 8 episodes that are always the same."
    seen, _ = env.reset(seed=1000)
    total = torch.zeros(worlds)
    for _ in range(steps):
        seen, gained, *_ = env.step(torch.tanh(mean_of(policy, seen)))
        total += gained
    return total.mean().item()


untrained = judged(new_policy())
print(f"an untrained policy has a return of {untrained:.1f}")
wb.view.film_strip(sim.rollout(torch.full((12, 1), 0.9), 12), 4)

# %% [markdown]
# ## 2. Learning from rewards alone
#
# A policy gradient tries actions, and makes those more probable that were followed by more reward than usual. It knows nothing of the simulation. The action $a$ is drawn from a Gaussian around the mean $\mu$ that the network gives, with the standard deviation $\sigma$.
#
# **Question 1 (3 points).** An action cannot change rewards of the past. Write the function that returns, for each interval, the sum of the present and all later rewards.


# %% answer="to_go"
def to_go(rewards):
    "Sums of present and later rewards, shape (steps, worlds), of rewards of the same shape."
    ### BEGIN SOLUTION
    return rewards.flip(0).cumsum(dim=0).flip(0)
    ### END SOLUTION
    ...


# %% check="to_go" points=3
def sums(to_go, steps):
    given = torch.rand(steps, 3, generator=torch.Generator().manual_seed(mine.seed("rewards") % 2**31))
    expected = torch.stack([given[k:].sum(dim=0) for k in range(steps)])
    return torch.allclose(to_go(given), expected, atol=1e-4)


hint = "What is the sum for the last interval? And for the one before?"
check("Question 1", lambda to_go: sums(to_go, 5), hint)
### BEGIN HIDDEN TESTS
check("Question 1", lambda to_go: sums(to_go, 1) and sums(to_go, 40), f"{hint} Try other numbers of intervals.")
### END HIDDEN TESTS

# %% [markdown]
# **Question 2 (4 points).** Write the loss whose gradient with respect to the mean is the policy gradient: minus the mean over all samples of $A \log p(a)$, with the probability density $p$ of the Gaussian and the advantage $A$, a number for each sample. It is tried on a problem whose gradient is known: if the reward is $-(a - c)^2$, the derivative of the expected reward with respect to the mean is $-2\,(\mu - c)$.


# %% answer="policy_loss"
def policy_loss(mean, action, spread, advantage):
    "Loss of samples: means and actions of shape (samples,), standard deviation, advantages of shape (samples,)."
    ### BEGIN SOLUTION
    log_density = -(action - mean).square() / (2 * spread**2)
    return -(log_density * advantage).mean()
    ### END SOLUTION
    ...


# %% check="policy_loss" points=4
def is_policy_gradient(policy_loss, mu, c, sigma):
    "The gradient of 200,000 samples against the closed form, within five standard errors."
    random = torch.Generator().manual_seed(mine.seed("actions") % 2**31)
    mean = torch.full((200_000,), mu, requires_grad=True)
    action = (mean + sigma * torch.randn(mean.shape, generator=random)).detach()
    value = -(action - c).square()
    (found,) = torch.autograd.grad(policy_loss(mean, action, sigma, value - value.mean()), mean)
    error = 5 * found.std() * len(found) ** 0.5
    return abs(-found.sum() + 2 * (mu - c)) < error and error < abs(mu - c)


hint = "The logarithm of a Gaussian is a square: of which difference, over what? An optimiser makes a loss smaller."
c = mine.number("c", 1.0, 3.0)
check("Question 2", lambda policy_loss: is_policy_gradient(policy_loss, 0.0, c, 0.5), hint)
### BEGIN HIDDEN TESTS
check("Question 2", lambda policy_loss: is_policy_gradient(policy_loss, 1.0, -c, 1.0), f"{hint} Try another spread.")
### END HIDDEN TESTS

# %% [markdown]
# Now it learns from 35 rounds of 8 episodes. Advantages are sums of rewards, compared with the other worlds at the same time, and scaled.


# %%
def rewards_alone(policy, seed):
    "Loss of a round of episodes with random actions."
    seen, _ = env.reset(seed=seed)
    means, actions, rewards = [], [], []
    for _ in range(steps):
        means.append(mean_of(policy, seen)[:, 0])
        actions.append((means[-1] + spread * torch.randn(worlds)).detach())
        seen, gained, *_ = env.step(torch.tanh(actions[-1])[:, None])
        rewards.append(gained.float())
    later = to_go(torch.stack(rewards))
    advantage = later - later.mean(dim=1, keepdim=True)
    advantage = advantage / (advantage.std() + 1e-6)
    return policy_loss(torch.cat(means), torch.cat(actions), spread, advantage.flatten())


def trained(loss, rounds, rate):
    "The best policy, and a curve: samples, seconds of training, return after every fifth round."
    policy, curve, seconds = new_policy(), [], 0.0
    optimiser = torch.optim.Adam(policy.parameters(), rate)
    for k in range(1, rounds + 1):
        begin = time.perf_counter()
        optimiser.zero_grad()
        loss(policy, seed=worlds * k).backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 5.0)
        optimiser.step()
        seconds += time.perf_counter() - begin
        if k % 5 == 0:
            curve.append((k * worlds * steps, seconds, judged(policy)))
            if curve[-1][2] == max(gained for _, _, gained in curve):
                best = copy.deepcopy(policy)
    return best, curve


learner, curve = trained(rewards_alone, rounds=35, rate=1e-2)
print(f"return {untrained:.1f} before, {judged(learner):.1f} with the best of {curve[-1][0]} samples")

# %% [markdown]
# ## 3. Learning through the simulation
#
# **Question 3 (4 points).** `with_gradient` is the same environment, but its rewards keep their gradient with respect to all actions, through all steps. Write the loss of a round of episodes, without noise: minus the return, averaged over the worlds. `reset` and `step` are used as in `rewards_alone`; a reset begins new episodes, and the gradient does not reach back into earlier ones.


# %% answer="return_loss"
def return_loss(policy, seed):
    "Minus the mean return of 8 episodes without noise, with its gradient with respect to the policy."
    ### BEGIN SOLUTION
    seen, _ = with_gradient.reset(seed=seed)
    total = 0.0
    for _ in range(steps):
        seen, gained, *_ = with_gradient.step(torch.tanh(mean_of(policy, seen)))
        total = total + gained.mean()
    return -total
    ### END SOLUTION
    ...


# %% check="return_loss" points=4
def is_return_gradient(return_loss, seed):
    "Value and derivative by a factor of the last layer, against simulations without gradient."
    policy = new_policy()
    found = return_loss(policy, seed)
    (slope,) = torch.autograd.grad(found, policy[2].weight)

    @torch.no_grad()
    def value(step):
        shifted = new_policy()
        shifted[2].weight += step * slope / slope.norm()
        seen, _ = env.reset(seed=seed)
        total = 0.0
        for _ in range(steps):
            seen, gained, *_ = env.step(torch.tanh(mean_of(shifted, seen)))
            total += gained.mean().item()
        return -total

    difference = (value(0.02) - value(-0.02)) / 0.04
    return abs(found.item() / value(0.0) - 1) < 1e-3 and abs(difference / slope.norm().item() - 1) < 0.1


hint = "Which environment keeps the gradient? The return is a sum over intervals, and a mean over worlds: nothing else."
check("Question 3", lambda return_loss: is_return_gradient(return_loss, 7), hint)

# %%
pilot, gradient_curve = trained(return_loss, rounds=20, rate=6e-3)
level = 2 / 3 * untrained
_, axes = plt.subplots(1, 2, figsize=(6.4, 2.6), layout="constrained", sharey=True)
for ax, column, label in zip(axes, (0, 1), ("samples", "seconds of training"), strict=True):
    for name, points in (("rewards alone", curve), ("gradient", gradient_curve)):
        ax.plot([p[column] for p in points], [p[2] for p in points], "o-", ms=3, lw=1, label=name)
    ax.axhline(level, color="0.6", lw=0.8, ls="--")
    ax.set_xlabel(label)
axes[0].set_ylabel("return")
legend = axes[1].legend(frameon=False, fontsize=8)

# %% [markdown]
# ## 4. Samples and time
#
# **Question 4 (3 points).** The dashed line is two thirds of the (negative) return of the untrained policy. After how many samples, control intervals of one world, is each learner above it for the first time? And how many times as long does a sample take with the gradient as with rewards alone, each over the whole of its training? The tolerance is 5 %. `curve` and `gradient_curve` are lists of (samples, seconds, return). Compute the answers from them instead of typing numbers: the seconds are different in every run.

# %% answer="price"
reward_samples = ...
gradient_samples = ...
dearer = ...
### BEGIN SOLUTION
reward_samples = next(samples for samples, _, gained in curve if gained > level)
gradient_samples = next(samples for samples, _, gained in gradient_curve if gained > level)
dearer = (gradient_curve[-1][1] / gradient_curve[-1][0]) / (curve[-1][1] / curve[-1][0])
### END SOLUTION


# %% check="price" points=3
def first_above(points):
    return next((samples for samples, _, gained in points if gained > 2 / 3 * untrained), float("inf"))


def per_sample(points):
    return points[-1][1] / points[-1][0]


def is_price(reward_samples, gradient_samples, dearer):
    right = judged(learner) > 2 / 3 * untrained and judged(pilot) > 2 / 3 * untrained
    expected = first_above(curve), first_above(gradient_curve), per_sample(gradient_curve) / per_sample(curve)
    found = reward_samples, gradient_samples, dearer
    return right and all(abs(float(f) / e - 1) < 0.05 for f, e in zip(found, expected, strict=True))


hint = (
    "Does each learner rise above the line? If not, its loss is wrong. Samples, not rounds: 8 worlds, 20 intervals. "
    "Divide all seconds of a learner by all of its samples."
)
check(
    "Question 4",
    lambda reward_samples, gradient_samples, dearer: is_price(reward_samples, gradient_samples, dearer),
    hint,
)

# %% [markdown]
# ## 5. When does which one win?
#
# **Question 5 (4 points, read by a person).** Which learner would you take if the goal were on the other side of a wall that the finger touches? If the reward were 1 within 5 mm of the goal and 0 elsewhere? If you had the real robot instead of the simulation? Try the second one: change `reward`, and explain both curves. At most ten sentences, and one figure.

# %% [markdown] open="wins" points=4
# *Your answer.*
