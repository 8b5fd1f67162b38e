"""Gradients at a glance: where a small displacement, a push or another stiffness lowers a loss."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from warpbots.view.drawables import particles_of
from warpbots.view.palette import CONTRACT, EXPAND

if TYPE_CHECKING:
    from warpbots.simulation import Simulation

__all__ = ["improvements", "stiffness_colors", "travel"]

_MOST = 160  # largest number of arrows
_GREY = np.array([0.86, 0.86, 0.86])  # colour where stiffness has no effect
_STRONG = 0.95  # share of the elements whose colours are not saturated

Loss = Callable[[Any], torch.Tensor]


def travel(simulation: "Simulation[Any]") -> Loss:
    """A loss: minus the distance that the bodies travel in the direction of the scene's task, or along the x axis."""
    task, dim = simulation.scene.task, simulation.scene.dim

    def loss(trajectory: Any) -> torch.Tensor:
        start = simulation.center_of_mass(trajectory.start, **trajectory.parameters)
        moved = simulation.center_of_mass(trajectory.final, **trajectory.parameters) - start
        return -(moved @ moved.new_tensor(task.direction if task else [1.0] + [0.0] * (dim - 1))).mean()

    return loss


def improvements(
    simulation: "Simulation[Any]", state: Any, loss: Loss, controls: torch.Tensor, parameters: dict, world: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Directions in which the loss of the coming motion decreases.

    Soft matter has the direction minus d loss / d position at its points, rigid bodies minus d loss / d force at their
    centres of mass, where the force lasts for the whole motion. The two kinds are scaled separately.

    Args:
        simulation: The simulation.
        state: State at which the motion begins.
        loss: A function of the trajectory.
        controls: Controls of the motion, shape (worlds, steps, channels).
        parameters: Tensors that replace parameters of the model, by name.
        world: Index of the world.

    Returns:
        Points [m], shape (n, dim), directions there, the longest of length 1, shape (n, dim), and the loss.
    """
    soft, rigid = simulation.model.matter is not None, bool(simulation.scene.rigid)
    begin = state.mapped(lambda field: field.detach().clone())
    wanted, places = [], []
    if soft:
        wanted.append(begin.position.requires_grad_())
        places.append(begin.position.detach())
    if rigid:
        force = parameters.get("body_force", simulation.parameter("body_force")).detach().clone().requires_grad_()
        parameters = parameters | {"body_force": force}
        wanted.append(force)
        places.append(simulation.sense(begin, steps=False).center.detach())
    value = loss(simulation.rollout(controls, controls.shape[1], begin, **parameters))
    points, directions = [], []
    for place, gradient in zip(places, torch.autograd.grad(value, wanted), strict=True):
        x, g = (t[world].cpu().double().numpy()[:, : simulation.scene.dim] for t in (place, gradient))
        longest = float(np.linalg.norm(g, axis=1).max(initial=0.0))
        some = np.unique(np.linspace(0, len(x) - 1, min(len(x), _MOST)).astype(int))
        points.append(x[some])
        directions.append(-g[some] / longest if longest > 0.0 else 0.0 * g[some])
    return np.concatenate(points), np.concatenate(directions), value.item()


def stiffness_colors(
    simulation: "Simulation[Any]", state: Any, loss: Loss, controls: torch.Tensor, parameters: dict, world: int
) -> tuple[np.ndarray, float]:
    """Colours of the drawn particles: blue where a larger Young's modulus lowers the loss, red where it raises it.

    Arguments are those of `improvements`.

    Returns:
        Red, green and blue in [0, 1], shape (n, 3), and the loss.
    """
    E = parameters.get("youngs_modulus", simulation.parameter("youngs_modulus")).detach().clone().requires_grad_()
    begin = state.mapped(lambda field: field.detach().clone())
    value = loss(simulation.rollout(controls, controls.shape[1], begin, **(parameters | {"youngs_modulus": E})))
    (gradient,) = torch.autograd.grad(value, [E])
    relative = (gradient * E)[world].detach().cpu().double().numpy().reshape(-1)
    strength = relative / max(float(np.quantile(np.abs(relative), _STRONG)), 1e-300)
    colors = _GREY + np.clip(np.abs(strength), 0.0, 1.0)[:, None] * (
        np.where(strength[:, None] > 0.0, CONTRACT, EXPAND) - _GREY
    )
    return colors[_nearest(simulation)], value.item()


def _nearest(simulation: "Simulation[Any]") -> np.ndarray:
    """Index of the element nearest to each drawn particle at rest."""
    from scipy.spatial import cKDTree

    places = simulation.model.places(simulation.parameters()["youngs_modulus"].per)
    return cKDTree(places.center).query(particles_of(simulation).drawn.position)[1]
