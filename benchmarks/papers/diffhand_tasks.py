"""DiffHand's tasks as functions of controls and design: Finger Reach, Flip Box, Rotate Rubik's Cube, Assemble.

Losses, steps, bounds and numbers of iterations are those of the published code, in its units (cm, rad). Controls are
u = tanh(a) with a in [-1, 1]; a design is a scale factor for each free size of the hand.
"""

import dataclasses
import functools
import math
from collections.abc import Callable

import numpy as np
import torch
from diffhand_hands import CM, HOLE, SCENES
from fast import sized

import warpbots as wb
from warpbots.design import Assembly, AssemblyShape

__all__ = ["TARGETS", "TASKS", "Task"]

TARGETS = torch.tensor([(10.0, -5.0, -5.0), (10.0, -5.0, 5.0), (20.0, 10.0, 10.0), (20.0, 10.0, -10.0)]).double()
"""Of Finger Reach, a quarter of the time each [cm]."""
END = ((22.1e-3, 0.0, 13e-3),)
"""End effector in the frame of a tip: the middle of the lower edge of its end [m]."""


@dataclasses.dataclass(frozen=True)
class Seen:
    """Quantities on which a loss depends, at the end of each control interval, or of some of them.

    Attributes:
        interval: Which control intervals these are, shape (intervals,), int.
        total: Number of control intervals of an episode.
        control: Control signals, shape (worlds, intervals, channels).
        sim: The simulation.
        rotation: Axes of each body, as columns, shape (worlds, intervals, n_bodies, 3, 3).
        position: Origin of each body [m], shape (worlds, intervals, n_bodies, 3).
        q: Joint coordinates, shape (worlds, intervals, n_coordinates).
    """

    interval: torch.Tensor
    total: int
    control: torch.Tensor
    sim: wb.Simulation
    rotation: torch.Tensor
    position: torch.Tensor
    q: torch.Tensor

    def point(self, body: str, at: torch.Tensor) -> torch.Tensor:
        """A point of a body in the world [cm], shape (worlds, intervals, 3); `at` has shape ([worlds, 1,] 3)."""
        k = self.sim.model.robot.body(body)
        return (self.position[:, :, k] + (self.rotation[:, :, k] @ at[..., None])[..., 0]) / CM

    def coordinate(self, joint: str, axis: int = 0) -> torch.Tensor:
        """A coordinate of a joint [m or rad], shape (worlds, intervals)."""
        return self.q[:, :, self.sim.model.robot.coordinates[joint].start + axis]


Ends = list[tuple[str, torch.Tensor]]
"""Links of the end effectors of the fingers, and where they are in these [m], each of shape (worlds, 1, 3)."""
Cost = Callable[[Seen, Ends], tuple[torch.Tensor, torch.Tensor]]
"""Losses of each control interval, whose sum is the loss, and metrics, each of shape (worlds, intervals).

The metric of an episode is the mean of them (Finger Reach), or the last one."""


@dataclasses.dataclass
class Task:
    """A task of DiffHand.

    Attributes:
        name: Name of the task.
        hand: The hand that is designed.
        sim: The simulation; controls are constant during a control interval.
        alone: The same simulation with one world.
        intervals: Number of control intervals of an episode.
        upper: Largest scale factors, shape (n,); the smallest scale factors are 0.5.
        cost: Function that computes losses and metrics.
        mean: Whether the metric of an episode is the mean of its control intervals, not the last one.
        unit: Unit of the metric.
        limit: Largest metric that counts as a success.
        iterations: Number of iterations of L-BFGS-B at each contact scale.
        scales: Contact scales, which are used one after the other.
        rate: Learning rate of Adam, if several starts use Adam instead of L-BFGS-B; otherwise 0.
        starts: Number of starts of the search with several starts.
        scale: The current contact scale.
        episodes: Loss of each episode so far.
    """

    name: str
    hand: Assembly
    sim: wb.Simulation
    alone: wb.Simulation
    intervals: int
    upper: np.ndarray
    cost: Cost
    mean: bool
    unit: str
    limit: float
    iterations: int
    scales: tuple[float, ...] = (1.0,)
    rate: float = 0.0
    starts: int = 8
    scale: float = 1.0
    episodes: list[float] = dataclasses.field(default_factory=list)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the table of controls of an episode: (intervals, channels)."""
        return self.intervals, self.sim.channels

    def start(self, seed: int) -> torch.Tensor:
        """Controls before tanh, shape (intervals, channels): zeros for seed 0, random numbers for any other seed."""
        rng = np.random.default_rng(seed)
        return torch.as_tensor(np.zeros(self.shape) if seed == 0 else rng.uniform(-0.5, 0.5, self.shape))

    def drawn(self, seed: int, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Controls and factors of start number `number`: the first start is `start`, all other starts are random."""
        if number == 0:
            return self.start(seed).requires_grad_(), self.hand.rest.requires_grad_()
        rng = np.random.default_rng([seed, number])
        controls, spread = rng.uniform(-0.5, 0.5, self.shape), np.exp(rng.uniform(-0.35, 0.35, len(self.upper)))
        return torch.as_tensor(controls).requires_grad_(), torch.as_tensor(
            spread.clip(0.5, self.upper)
        ).requires_grad_()

    def problem(
        self, controls: torch.Tensor, factors: torch.Tensor
    ) -> tuple[Callable[[], torch.Tensor], dict[str, wb.Unknown]]:
        """Loss and unknowns of one world for `warpbots.minimize`; factors are unknown if they require a gradient."""
        found = {"control": wb.Unknown(controls, -1.0, 1.0)}
        if factors.requires_grad:
            found["design"] = wb.Unknown(factors, 0.5, torch.as_tensor(self.upper))

        def loss() -> torch.Tensor:
            return self.evaluate(controls[None], factors)[0].sum()

        return loss, found

    def rollout(self, controls: torch.Tensor, factors: torch.Tensor, **options) -> tuple[wb.Trajectory, Ends]:
        """The motion of an episode in each world.

        Args:
            controls: Controls before tanh, shape (worlds, intervals, channels).
            factors: Scale factors of the hand in each world, shape (worlds, n), or in all worlds, shape (n,).
            **options: Further arguments of `Simulation.rollout`.
        """
        changed, ends = self.designed(factors, len(controls))

        def observe(state):
            seen = self.sim.sense(state, **changed)
            return torch.cat([seen.rotation.flatten(1), seen.position.flatten(1), state.q], dim=1)

        return self.sim.rollout(torch.tanh(controls), self.intervals, observe=observe, **changed, **options), ends

    def designed(self, factors: torch.Tensor, worlds: int) -> tuple[dict[str, torch.Tensor], Ends]:
        """Parameters of the model by name, and end effectors, for the scale factors of `rollout`."""
        shapes = [self.hand.shape(own) for own in factors.reshape(-1, factors.shape[-1])]
        own = [self.hand.model_parameters(self.alone, shape) for shape in shapes]
        changed = {name: torch.cat([p[name] for p in own]) for name in own[0]}
        if "contact_scale" in self.sim.parameters():
            changed["contact_scale"] = torch.full((1,), self.scale, dtype=torch.float64)
        return {name: value.expand(worlds, *value.shape[1:]) for name, value in changed.items()}, self._ends(shapes)

    def evaluate(self, controls: torch.Tensor, factors: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Losses and metrics of an episode in each world, each of shape (worlds,), with the arguments of `rollout`."""
        _, losses, metrics = self.course(controls, factors)
        losses = losses.sum(dim=1)
        self.episodes += losses.tolist()
        return losses, metrics.mean(dim=1) if self.mean else metrics[:, -1]

    def course(self, controls: torch.Tensor, factors: torch.Tensor) -> tuple[wb.Trajectory, torch.Tensor, torch.Tensor]:
        """The motion, and losses and metrics of each control interval, each of shape (worlds, intervals)."""
        trajectory, ends = self.rollout(controls, factors)
        bodies = len(self.sim.model.robot.bodies)
        seen = trajectory.observation.split((9 * bodies, 3 * bodies, trajectory.observation.shape[-1] - 12 * bodies), 2)
        rotation, position = seen[0].unflatten(2, (bodies, 3, 3)), seen[1].unflatten(2, (bodies, 3))
        every = torch.arange(self.intervals)
        own = Seen(every, self.intervals, trajectory.control, self.sim, rotation, position, seen[2])
        return trajectory, *self.cost(own, ends)

    def _ends(self, shapes: list[AssemblyShape]) -> Ends:
        tips = [i.name for i in self.hand.instances if i.component.name == "tip"]
        found = [[self.hand.carried(tip, END, shape) for shape in shapes] for tip in tips]
        return [(own[0][0], torch.stack([point for _, point in own])) for own in found]


def _effort(seen: Seen) -> torch.Tensor:
    return seen.control.square().sum(2)


def _reach(seen: Seen, ends: Ends) -> tuple[torch.Tensor, torch.Tensor]:
    """Follow four targets; the metric is the mean distance [cm]."""
    distance = (seen.point(*ends[0]) - TARGETS[seen.interval * 4 // seen.total]).norm(dim=2)
    return 0.1 * _effort(seen) + 10.0 * distance, distance


def _flip(seen: Seen, ends: Ends) -> tuple[torch.Tensor, torch.Tensor]:
    """Turn a box by 90 degrees; the metric is the missing angle [deg]."""
    near = seen.point(*ends[0]) - seen.point("box", CM * torch.tensor([6.0, 0.0, 4.0]).double())
    error = seen.coordinate("lid") - torch.pi / 2
    touch = torch.where(seen.interval < seen.total // 2, near.square().sum(2), 0.0)
    return 5.0 * _effort(seen) + touch + 50.0 * error.square(), torch.rad2deg(error.abs())


def _rotate(seen: Seen, ends: Ends) -> tuple[torch.Tensor, torch.Tensor]:
    """Turn the top layer by -90 degrees; the metric is the missing angle [deg]."""
    cube = torch.tensor([0.0, 0.0, -8.0]).double()
    touch = (seen.point(*ends[0]) - cube).square().sum(2)
    error = seen.coordinate("layer") + torch.pi / 2
    end = torch.where(seen.interval == seen.total - 1, error.square(), 0.0)
    return 5.0 * _effort(seen) + 0.1 * touch + 1000.0 * end, torch.rad2deg(error.abs())


def _assemble(seen: Seen, ends: Ends) -> tuple[torch.Tensor, torch.Tensor]:
    """Put a cube into the hole of a mount; the metric is the distance between their centres [mm]."""
    origin = torch.zeros(3, dtype=torch.float64)
    mount, cube = seen.point("mount", origin), seen.point("cube", origin)
    pushes = (seen.point(*ends[0]) - cube).square().sum(2) + (seen.point(*ends[1]) - mount).square().sum(2)
    gap = seen.point("mount", torch.as_tensor(HOLE)) - cube
    turned = seen.coordinate("mount", 2) - seen.coordinate("cube", 2)
    middle = mount[..., :2].square().sum(2)
    loss = pushes - 6.0**2 - 2.8**2 + 15.0 * middle + 5.0 * gap.square().sum(2) + 50.0 * turned.square()
    return loss, 10.0 * gap.norm(dim=2)


def _make(
    name: str, dt: float, hold: int, intervals: int, upper: float, cost: Cost, unit: str, limit: float, iterations: int,
    worlds: int = 1, scales: tuple[float, ...] = (1.0,), rate: float = 0.0, starts: int = 8, points: int = 1,
    steps: int = 1, integrator: str | None = None,
) -> Task:  # fmt: skip
    scene, make = SCENES[name]
    hand = make(density=points)
    if name == "assemble":
        scene = functools.partial(scene, cells=2 * round(math.sqrt(points)))
    solver = wb.Articulated(rounding=0.2, integrator=integrator)  # edges rounded by more than soft points penetrate

    def simulation(count: int) -> wb.Simulation:
        return wb.Simulation(
            scene(hand), solver, dt=dt * hold, substeps=steps * hold, worlds=count, checkpoints=wb.Checkpoints.all()
        )

    bounds = np.array([6.0 if own == "palm.length" else upper for own in hand.names])
    alone = simulation(1)
    sim = alone if worlds == 1 else simulation(worlds)
    return Task(
        name,
        hand,
        sim,
        alone,
        sized(intervals, 2),
        bounds,
        cost,
        name == "reach",
        unit,
        limit,
        sized(iterations, 1),
        scales,
        rate,
        starts,
    )


TASKS: dict[str, Callable[..., Task]] = {
    "reach": functools.partial(_make, "reach", 5e-3, 20, 30, 4.0, _reach, "cm", 1.5, 500),
    "flip": functools.partial(_make, "flip", 5e-3, 5, 30, 3.0, _flip, "deg", 1.0, 100),
    "rotate": functools.partial(_make, "rotate", 5e-3, 5, 40, 2.0, _rotate, "deg", 1.0, 100),
    "assemble": functools.partial(
        _make, "assemble", 1e-3, 5, 100, 3.0, _assemble, "mm", 3.0, 100, scales=(0.01, 0.1, 1.0), rate=0.05, starts=6
    ),
}
"""Makes a task, with any number of `worlds`, factors of the numbers of contact `points` and of time `steps`, and an
`integrator` of `warpbots.Articulated`; its default without one."""
