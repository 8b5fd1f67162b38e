"""The worlds of a simulation as a vector environment of Gymnasium."""

import contextlib
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from warpbots.envs.episode import Episode, Judge, Transition
from warpbots.envs.frames import Frames
from warpbots.envs.given_starts import given_options, given_state, given_values
from warpbots.envs.random_starts import RandomStarts, seeds_of
from warpbots.envs.worlds_observation import WorldsObservation
from warpbots.gradients import LOST
from warpbots.numerics import precision
from warpbots.observers.memory import remembering
from warpbots.scene.field_types import fitted, shown
from warpbots.simulation import LostWorldWarning, Simulation, SimulationError
from warpbots.user_warning import warn_user

__all__ = ["SimulationVectorEnv"]


class SimulationVectorEnv(VectorEnv):
    """A vector environment of Gymnasium whose sub-environments are the worlds of a simulation.

    A step of the environment is a control interval, and an action is a control signal. Observations, rewards and masks
    are torch tensors on the device of the simulation, without copies. An episode ends by termination if the condition
    of the `Episode` holds or if the world is lost, and by truncation after its number of steps, never by both. A lost
    world keeps its last state, for which reward and observation are computed, a `LostWorldWarning` says why, and
    ``infos["lost"]`` marks it. A solver of your own whose states have no field ``lost`` cannot stop single worlds:
    all its worlds end together.

    ``infos`` has ``age``, the time since the start of the episode [s], ``lost``, and ``reward_terms`` by name, each
    with a mask ``_age`` and so on. With automatic resets in the same step, ``final_obs`` and ``final_info`` hold the
    last observation and infos of the worlds that ended; ``final_obs`` is one tensor of all worlds, not an array of
    objects, and the mask ``_final_obs`` marks the rows that are valid.

    Attributes:
        simulation: The simulation.
        episode: The rules of an episode.
        state: The state of all worlds; None before the first reset.
        parameters: Parameters that differ from those of the model, by name, each of shape (worlds, ...).
        goals: Goals by name, each of shape (worlds, ...).
        intervals: Number of control intervals since the start of the episode of each world, shape (worlds,), int.
        gives_numpy: Whether results are NumPy arrays.
        num_envs: Number of worlds.
        single_observation_space: Box of the observation of a world.
        single_action_space: Box of the control of a world, from -1 to 1.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"]}

    def __init__(
        self,
        simulation: Simulation[Any],
        episode: Episode,
        *,
        autoreset_mode: AutoresetMode = AutoresetMode.SAME_STEP,
        differentiable: bool = False,
        numpy: bool = False,
        render_mode: str | None = None,
    ):
        """Make the environment; `reset` begins the first episodes.

        Args:
            simulation: The simulation; its number of worlds is the number of sub-environments.
            episode: The rules of an episode.
            autoreset_mode: When worlds whose episode has ended begin the next one: in the same step, in the next step,
                which then ignores their action and gives them the reward 0, or only by ``reset(options={"reset_mask":
                mask})``.
            differentiable: Whether observations and rewards keep their gradient, across steps until `detach`.
            numpy: Whether `step` and `reset` return NumPy arrays; on a CPU they share the memory of the tensors.
            render_mode: ``"rgb_array"``, or None if nothing is drawn.

        Raises:
            ValueError: An argument is of the wrong type, the scene has no actuators, the observation is not a tensor
                of shape (worlds, features), or the state or the model does not have a name that is drawn.
        """
        simulation, episode = (
            fitted(simulation, Simulation, "SimulationVectorEnv: simulation"),
            fitted(episode, Episode, "SimulationVectorEnv: episode"),
        )
        if not simulation.channels:
            raise ValueError(
                f"SimulationVectorEnv: scene {simulation.scene.name!r} has no actuators, so there is nothing to act "
                f"on; give it Scene(actuators=[...])"
            )
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"SimulationVectorEnv: render_mode must be 'rgb_array' or None, got {shown(render_mode)}")
        for name, flag in (("differentiable", differentiable), ("numpy", numpy)):
            fitted(flag, bool, f"SimulationVectorEnv: {name}")
        if differentiable and numpy:
            raise ValueError(
                "SimulationVectorEnv: differentiable=True needs tensors, since NumPy arrays have no gradient; leave "
                "out numpy=True"
            )
        self.simulation, self.episode, self.render_mode = simulation, episode, render_mode
        self.num_envs, self._mode = simulation.worlds, _mode(autoreset_mode)
        self.metadata = {
            **type(self).metadata, "autoreset_mode": self._mode, "render_fps": round(1.0 / simulation.dt)
        }  # fmt: skip
        self._differentiable, self.gives_numpy = differentiable, numpy
        self._random, self._judge = RandomStarts(simulation, episode), Judge(episode, self.num_envs)
        rest = simulation.state()
        device = next(iter(vars(rest).values())).device
        self._like = torch.zeros((self.num_envs, simulation.channels), dtype=getattr(torch, precision), device=device)
        self.state: Any = None
        self._applied = self._like  # control in the last interval, which motor torques depend on
        self.parameters: dict[str, torch.Tensor] = {}
        self.goals: dict[str, torch.Tensor] = {}
        self.intervals = torch.zeros(self.num_envs, dtype=torch.int64, device=device)
        self._ended = torch.zeros(self.num_envs, dtype=torch.bool, device=device)
        self._observation = WorldsObservation(simulation, episode)
        self._random.seed([0] * self.num_envs)
        everywhere = torch.ones_like(self._ended)
        with torch.no_grad(), self._random.noise(device):
            self._like_goals = self._random.goals(everywhere, {})
            seen = self._observation(rest, {}, self._like_goals, self._age(), self._like)
        self._observation.forget(None)
        self._random = RandomStarts(simulation, episode)
        self.single_observation_space = spaces.Box(-np.inf, np.inf, seen.shape[1:], np.dtype(precision).type)
        self.single_action_space = spaces.Box(-1.0, 1.0, (simulation.channels,), np.dtype(precision).type)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._seen: torch.Tensor | None = None
        self._frames: Frames | None = None

    def reset(self, *, seed: Any = None, options: Mapping[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin new episodes in all worlds, or in those of a mask.

        A reset of all worlds also cuts the gradient, as `detach` does.

        Args:
            seed: One integer s, which gives the worlds the seeds s, s + 1, ...; one integer or None for each world; or
                None to go on with the random numbers of each world.
            options: ``reset_mask``, a mask of the worlds, shape (worlds,), bool; ``state``, from which these worlds
                start instead of a random start; ``parameters`` and ``goals``, tensors by name that these worlds have
                instead of random ones, until their next episode begins. With `differentiable`, gradients reach all of
                them.

        Returns:
            Observation of all worlds, shape (worlds, features), and infos.

        Raises:
            KeyError: The model has no parameter of a name in ``parameters``, or the episode no goal of a name in
                ``goals``.
            ValueError: A seed, a mask or another option has the wrong shape or type, there is no such option, the state
                is not finite, or a mask is given before the first reset.
        """
        options = given_options(options)
        worlds = self._mask(options.get("reset_mask"))
        seeds = seeds_of(seed, self.num_envs)
        start = options.get("state")
        start = None if start is None else given_state(start, self.simulation, worlds)
        parameters = {
            name: given_values(value, self.simulation.parameter(name), f"parameters[{name!r}]")
            for name, value in options.get("parameters", {}).items()
        }
        goals = {
            name: given_values(value, self._goal(name), f"goals[{name!r}]")
            for name, value in options.get("goals", {}).items()
        }
        if self.state is not None and worlds.all():
            self.detach()
        super().reset(seed=seeds[0])
        self._random.seed([one if chosen else None for one, chosen in zip(seeds, worlds.tolist(), strict=True)])
        with self._gradients():
            self._restart(worlds, start, parameters, goals)
            self._ended = self._ended & ~worlds
            with remembering(worlds):
                seen = self._observe()
            if self._seen is not None:  # worlds that go on were observed before, and time has not passed since
                seen = torch.where(worlds[:, None], seen, self._seen)
            self._seen = seen
        return self._given(seen), self._given(self._infos(torch.ones_like(worlds), {}))

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """One control interval of all worlds.

        Args:
            actions: Control signals in [-1, 1], shape (worlds, channels), a tensor or an array.

        Returns:
            Observation, shape (worlds, features); reward, terminations and truncations, each of shape (worlds,); infos.

        Raises:
            RuntimeError: There was no reset, or, without automatic resets, the episode of a world is over.
            ValueError: An action has the wrong shape or is out of range, or a reward is not finite.
        """
        if self.state is None:
            raise RuntimeError("step: the environment has no state yet; call reset() first")
        ended = self._ended
        if self._mode is AutoresetMode.DISABLED and ended.any():
            raise RuntimeError(
                f"step: the episode of world {int(torch.nonzero(ended)[0])} is over; begin the next one by "
                f"reset(options={{'reset_mask': mask}}), or choose another autoreset_mode"
            )
        control = self._control(actions)
        with self._gradients():
            return self._stepped(control, ended)

    def _stepped(self, control: torch.Tensor, ended: torch.Tensor) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """See `step`; worlds of the mask `ended` are reset instead of simulated."""
        if ended.any():
            self._restart(ended)
            control = torch.where(ended[:, None], 0.0, control)
        before, self._applied = self.state, control
        after, lost = (before, ended & ~ended) if ended.all() else self._advanced(before, control)
        if ended.any():
            after, lost = self.simulation.reset(after, ended, before), lost & ~ended
        self.state, self.intervals = after, torch.where(ended, 0, self.intervals + 1)
        transition = Transition(self.simulation, before, control, after, self._age(), self.goals, self.parameters)
        reward, terms = self._judge.reward(transition)
        terminated = (self._judge.terminated(transition) & ~ended) | lost
        truncated = (self.intervals >= self.episode.steps) & ~terminated
        reward = torch.where(ended, 0.0, reward).to(self._like.dtype)
        over = terminated | truncated
        more = {"lost": lost, "reward_terms": terms} if terms else {"lost": lost}
        infos = self._infos(torch.ones_like(over), more)
        if self._mode is AutoresetMode.SAME_STEP and over.any():
            with remembering(torch.zeros_like(over)):
                last = self._observe()
            final = _masked({"final_obs": last, "final_info": self._infos(over, more)}, over)
            self._restart(over)
            infos = self._infos(~over, more) | final
        else:
            self._ended = over
        self._seen = self._observe()
        return tuple(map(self._given, (self._seen, reward, terminated, truncated, infos)))

    def detach(self) -> torch.Tensor | None:
        """Cut the gradient: later rewards do not depend on earlier actions, as at the start of a short horizon.

        Observers with memory, such as a delayed one, keep their memory without its gradient.

        Returns:
            The last observation, without its gradient; None before the first reset.
        """
        if self.state is None:
            return None
        self.state = self.state.mapped(lambda field: field.detach())
        self.parameters = {name: value.detach() for name, value in self.parameters.items()}
        self.goals = {name: value.detach() for name, value in self.goals.items()}
        self._applied = self._applied.detach()
        self._observation.detach()
        self._seen = None if self._seen is None else self._seen.detach()
        return self._seen

    def render(self) -> tuple[np.ndarray, ...] | None:
        """A picture of each world, shape (height, width, 3), uint8, from a camera that follows the bodies.

        Raises:
            RuntimeError: There was no reset.
        """
        if self.render_mode is None:
            return None
        if self.state is None:
            raise RuntimeError("render: the environment has no state yet; call reset() first")
        if self._frames is None:
            self._frames = Frames(self.simulation)
        age = self._age().tolist()
        return tuple(self._frames.of(self.state, w, age[w], self.parameters) for w in range(self.num_envs))

    def _restart(
        self,
        worlds: torch.Tensor,
        state: Any = None,
        parameters: Mapping[str, torch.Tensor] | None = None,
        goals: Mapping[str, torch.Tensor] | None = None,
    ) -> None:
        """Begin new episodes in the worlds of a mask; see `reset` for the other arguments."""
        simulation = self.simulation
        start = simulation.state(**self._random.start(worlds)) if state is None else state
        if worlds.all():
            self.parameters = {}
        for name in self.parameters.keys() - self.episode.parameters.keys():  # given to the reset of an earlier episode
            self.parameters[name] = _chosen(worlds, simulation.parameter(name), self.parameters[name])
        self.parameters |= self._random.parameters(worlds, self.parameters)
        for name, given in (parameters or {}).items():
            own = self.parameters.get(name)
            own = simulation.parameter(name) if own is None else own
            self.parameters[name] = _chosen(worlds, given, own)
        self.goals = self._random.goals(worlds, self.goals)
        self.goals |= {name: _chosen(worlds, given, self.goals[name]) for name, given in (goals or {}).items()}
        self.state = simulation.reset(start if self.state is None else self.state, worlds, start)
        self.intervals = torch.where(worlds, 0, self.intervals)
        self._applied = torch.where(worlds[:, None], 0.0, self._applied)
        self._observation.forget(None if worlds.all() else worlds)

    def _goal(self, name: str) -> torch.Tensor:
        """A goal as it was drawn when the environment was made, for its shape."""
        if name not in self._like_goals:
            raise KeyError(f"there is no goal {name!r}; the episode has {', '.join(self._like_goals) or 'none'}")
        return self._like_goals[name]

    def _advanced(self, state: Any, control: torch.Tensor) -> tuple[Any, torch.Tensor]:
        """The state after a control interval, and the worlds that were lost in it, shape (worlds,), bool."""
        try:
            after = self.simulation.step(state, control, **self.parameters)
        except SimulationError as error:
            worlds = tuple(range(self.num_envs))
            warn_user(LostWorldWarning(f"all {self.num_envs} worlds end: {error}", worlds, error.place))
            return state, torch.ones_like(self._ended)
        lost = vars(after).get(LOST)
        return after, torch.zeros_like(self._ended) if lost is None else lost.detach() > 0.0

    def _observe(self) -> torch.Tensor:
        with self._random.noise(self._like.device):
            seen = self._observation(self.state, self.parameters, self.goals, self._age(), self._applied)
            return seen.to(self._like.dtype)

    def _age(self) -> torch.Tensor:
        """Time since the start of the episode of each world [s], shape (worlds,)."""
        return self.intervals.double() * self.simulation.dt

    def _infos(self, worlds: torch.Tensor, more: dict[str, Any]) -> dict[str, Any]:
        """Infos with masks that say for which worlds they are meant."""
        return _masked({"age": self._age(), **more}, worlds)

    def _control(self, actions: Any) -> torch.Tensor:
        """Actions as control signals, checked."""
        try:
            given = torch.as_tensor(actions, device=self._like.device)
            if given.is_complex():
                raise TypeError
            control = given.to(self._like.dtype)
        except (TypeError, ValueError, RuntimeError):
            raise ValueError(
                f"step: actions must be a tensor or an array of real numbers, got {shown(actions)}"
            ) from None
        if control.shape != self._like.shape:
            raise ValueError(
                f"step: actions must have shape {tuple(self._like.shape)}, one row for each world and one column for "
                f"each actuator, got {tuple(control.shape)}"
            )
        wrong = torch.nonzero(~(control.detach().abs() <= 1.0))
        if len(wrong):
            world, channel = map(int, wrong[0])
            raise ValueError(
                f"step: actions[{world}, {channel}] of actuator {self.simulation.scene.actuators[channel].name!r} is "
                f"{control[world, channel].item():g}, and must be in [-1, 1]; bound it with tanh, or wrap the "
                f"environment in gymnasium.wrappers.vector.ClipAction"
            )
        return control

    def _mask(self, given: Any) -> torch.Tensor:
        """The worlds that a reset concerns, shape (worlds,), bool."""
        if given is None:
            return torch.ones_like(self._ended)
        mask = (
            torch.as_tensor(given, device=self._ended.device) if isinstance(given, torch.Tensor | np.ndarray) else None
        )
        if mask is None or mask.dtype != torch.bool or mask.shape != self._ended.shape:
            got = shown(given) if mask is None else f"shape {tuple(mask.shape)} and type {mask.dtype}"
            raise ValueError(
                f"reset: reset_mask must be an array or a tensor of shape ({self.num_envs},), bool, one entry for each "
                f"world, got {got}"
            )
        if self.state is None and not mask.all():
            raise ValueError("reset: the first reset must be of all worlds; leave out reset_mask")
        return mask

    def _gradients(self) -> contextlib.AbstractContextManager:
        return contextlib.nullcontext() if self._differentiable else torch.no_grad()

    def _given(self, value: Any) -> Any:
        """A result as it is returned: tensors, or NumPy arrays in their place."""
        if isinstance(value, dict):
            return {name: self._given(one) for name, one in value.items()}
        return value.cpu().numpy() if self.gives_numpy else value


def _mode(given: Any) -> AutoresetMode:
    """The mode of resets, or a ValueError that names all modes."""
    try:
        return AutoresetMode(given)
    except ValueError:
        modes = ", ".join(f"AutoresetMode.{mode.name}" for mode in AutoresetMode)
        raise ValueError(
            f"SimulationVectorEnv: autoreset_mode must be one of {modes}, of gymnasium.vector, got {shown(given)}"
        ) from None


def _chosen(worlds: torch.Tensor, values: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Values in the worlds of a mask, and those of `others` elsewhere, each of shape (worlds, ...)."""
    return torch.where(worlds.view(-1, *(1,) * (others.dim() - 1)), values, others)


def _masked(infos: dict[str, Any], worlds: torch.Tensor) -> dict[str, Any]:
    """Infos in the form of Gymnasium: beside each name a mask of the worlds that it is meant for, also within infos."""
    found: dict[str, Any] = {}
    for name, value in infos.items():
        inner = isinstance(value, dict) and not any(key.startswith("_") for key in value)
        found |= {name: _masked(value, worlds) if inner else value, f"_{name}": worlds}
    return found
