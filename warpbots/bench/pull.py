"""Pulls at a point of a body: a spring and a damper between the point and the pointer of a mouse."""

import dataclasses
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch

from warpbots.bench.drag import Drag
from warpbots.bench.ray import Hit
from warpbots.scene.with_z import with_z
from warpbots.solvers.articulated.inertia import body_inertia
from warpbots.view.upright_view import UPRIGHT, upright

if TYPE_CHECKING:
    from warpbots.simulation import Simulation

__all__ = ["Held", "HeldBody", "HeldMatter", "Pull", "held_at"]

_GRAVITY = 9.81  # acceleration that scales the forces [m/s^2], also in scenes without gravity
_SAG = 0.1  # length of a spring that carries the weight of the body, relative to the size of the view
_LIMIT = 5.0  # largest force, relative to the weight of the body
_SHARE = 0.04  # share of a soft body on which the force acts
_EXPLICIT = 0.4  # largest stiffness dt^2 / m and damping dt / m of the pulled mass: below 1 the pull is stable
_END = 0.25  # effective mass of a free rod at its end, relative to its mass


class Held(Protocol):
    """A body that is held at a point.

    Attributes:
        whole: Mass of everything that hangs together with the body [kg].
        part: Mass that the pull accelerates first [kg].
    """

    whole: float
    part: float

    def motion(self, state: Any, parameters: dict[str, torch.Tensor]) -> tuple[np.ndarray, np.ndarray]:
        """Position [m] and velocity [m/s] of the point in a state, each of shape (dim,)."""

    def loads(self, force: np.ndarray, state: Any, parameters: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Parameters of the model that exert `force` [N], shape (dim,), at the point, by name."""


class HeldMatter:
    """Soft matter around a point."""

    def __init__(self, simulation: "Simulation[Any]", state: Any, node: int, world: int):
        """Hold the matter nearest to a node (a particle, a mass) of its body.

        Args:
            simulation: The simulation.
            state: The state.
            node: Index of the node.
            world: Index of the world.
        """
        matter = simulation.model.matter
        own = np.flatnonzero(matter.body == matter.body[node])
        x = state.position[world].cpu().double().numpy()
        near = np.linalg.norm(x[own] - x[node], axis=1).argsort()
        self._nodes = own[near[: max(1, round(_SHARE * len(own)))]]
        mass = matter.volume * matter.density
        self._share = mass[self._nodes] / mass[self._nodes].sum()
        self.whole, self.part = float(mass[own].sum()), float(mass[self._nodes].sum())
        self._simulation, self._world = simulation, world

    def motion(self, state: Any, parameters: dict[str, torch.Tensor]) -> tuple[np.ndarray, np.ndarray]:
        """Position [m] and velocity [m/s] of the point in a state, each of shape (dim,)."""
        x, v = (f[self._world, self._nodes].cpu().double().numpy() for f in (state.position, state.velocity))
        return self._share @ x, self._share @ v

    def loads(self, force: np.ndarray, state: Any, parameters: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The force of the pull, added to the loads of the scene."""
        load = _parameter(self._simulation, "load", parameters)
        share = torch.as_tensor(self._share[:, None] * force, dtype=load.dtype, device=load.device)
        load[self._world, self._nodes] += share
        return {"load": load}


class HeldBody:
    """A rigid body, held at a point of it."""

    def __init__(self, simulation: "Simulation[Any]", body: int, arm: np.ndarray, world: int):
        """Hold a rigid body.

        Args:
            simulation: The simulation.
            body: Index of the body in `Scene.rigid`.
            arm: The point in the frame of the body [m], shape (dim,).
            world: Index of the world.
        """
        scene, self._dim, self._arm = simulation.scene, len(arm), with_z(arm)
        found = {b.name: body_inertia(b) for b in scene.rigid}
        mass = {name: inertia.mass if inertia else 0.0 for name, inertia in found.items()}
        name = scene.rigid[body].name
        self.whole = sum(mass[other] for other in _tree(scene, name))
        self.part = _END * (mass[name] or self.whole)
        self._simulation, self._body, self._world = simulation, body, world

    def motion(self, state: Any, parameters: dict[str, torch.Tensor]) -> tuple[np.ndarray, np.ndarray]:
        """Position [m] and velocity [m/s] of the point in a state, each of shape (dim,)."""
        x, R, v, w = self._readings(state, parameters, "position", "rotation", "velocity", "angular_velocity")
        return (x + R @ self._arm)[: self._dim], (v + np.cross(w, R @ self._arm))[: self._dim]

    def loads(self, force: np.ndarray, state: Any, parameters: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Force on the centre of mass and torque about it, added to those of the scene."""
        x, R, center = self._readings(state, parameters, "position", "rotation", "center")
        force = with_z(force)
        loads = {"body_force": force, "body_torque": np.cross(x + R @ self._arm - center, force)}
        made = {}
        for name, value in loads.items():
            made[name] = _parameter(self._simulation, name, parameters)
            made[name][self._world, self._body] += torch.as_tensor(value, dtype=made[name].dtype).to(made[name].device)
        return made

    def _readings(self, state: Any, parameters: dict[str, torch.Tensor], *names: str) -> list[np.ndarray]:
        r = self._simulation.sense(state, steps=False, **parameters)
        return [getattr(r, name)[self._world, self._body].cpu().double().numpy() for name in names]


def held_at(simulation: "Simulation[Any]", state: Any, hit: Hit, world: int) -> Held:
    """The body that a ray meets, held at the point where the ray meets it."""
    if hit.body is not None:
        return HeldBody(simulation, hit.body, _own(hit.arm, simulation.scene.dim), world)
    x = state.position[world].cpu().double().numpy()
    at = _own(hit.point, x.shape[1])
    return HeldMatter(simulation, state, int(np.linalg.norm(x - at, axis=1).argmin()), world)


@dataclasses.dataclass(eq=False)
class Pull(Drag):
    """The pull of the pointer on a body.

    The force is constant during a control interval. Stiffness and damping are so small that this explicit step is
    stable, and the force is at most five times the weight of what hangs together with the body.

    Attributes:
        held: The body.
        size: Size of the view [m].
        dt: Length of a control interval [s].
    """

    held: Held
    size: float
    dt: float

    def loads(self, state: Any, parameters: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Parameters of the model that exert the force of the pull in the next control interval, by name."""
        x, v = self.held.motion(state, parameters)
        self.point = upright(x).astype(np.float64)
        weight = _GRAVITY * self.held.whole
        stiffness = min(weight / (_SAG * self.size), _EXPLICIT * self.held.part / self.dt**2)
        damping = min(2.0 * np.sqrt(stiffness * self.held.whole), _EXPLICIT * self.held.part / self.dt)
        force = stiffness * (_own(self.target, len(x)) - x) - damping * v
        force *= min(1.0, _LIMIT * weight / max(float(np.linalg.norm(force)), 1e-300))
        return self.held.loads(force, state, parameters)


def _own(point: np.ndarray, dim: int) -> np.ndarray:
    """A point in the frame of the scene, from the frame of the browser [m], shape (dim,)."""
    return point if dim == 3 else (point @ UPRIGHT)[:2]


def _parameter(simulation: "Simulation[Any]", name: str, parameters: dict[str, torch.Tensor]) -> torch.Tensor:
    """A copy of a parameter, of its replacement if there is one."""
    return parameters[name].detach().clone() if name in parameters else simulation.parameter(name)


def _tree(scene: Any, name: str) -> set[str]:
    """Names of the rigid bodies that joints connect to the body `name`, with the name itself."""
    found, links = {name}, [(j.parent, j.child) for j in scene.joints if j.parent is not None]
    while grown := {a for pair in links if found & set(pair) for a in pair} - found:
        found |= grown
    return found
