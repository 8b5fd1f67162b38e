"""Forces on nodes: the quantities at rest from which forces follow, and the residual of a step."""

import warp as wp

from warpbots.numerics import launch, launch_lanes
from warpbots.solvers.projective.elements import nodes
from warpbots.solvers.projective.elements.element import Point
from warpbots.solvers.projective.elements.oscillations import signal_launches
from warpbots.solvers.projective.iterate.anderson_arrays import LANES
from warpbots.solvers.projective.model import ProjectiveModel

__all__ = ["evaluate_residual", "evaluate_rest", "residual_launches", "rest_launches"]


def rest_launches(model: ProjectiveModel, point: Point, step: bool = True) -> list[tuple]:
    """Launches (kernel, dim, inputs) that write shapes at rest and masses.

    Args:
        model: The model.
        point: The point at which a step begins; its displacements have no effect.
        step: Whether a step follows; if so, quantities at its start are written, too.
    """
    workspace, each = model.workspace, (model.worlds, model.topology.sizes.nodes)
    signals, signal = signal_launches(model, point)
    rested = [(kind, elements) for kind, elements in model.elements if kind.rest is not None]
    begun = [(kind, elements) for kind, elements in model.elements if step and kind.begin is not None]
    return [
        *signals,
        *(written for kind, elements in rested for written in kind.rest(elements, model, signal)),
        (nodes.mass_kernel, each, [model.nodes, workspace.corner_mass, model.nodes]),
        *(written for kind, elements in begun for written in kind.begin(elements, model, point)),
    ]


def evaluate_rest(model: ProjectiveModel, point: Point) -> None:
    """Write shapes at rest, masses, and the scaling of the global matrix; none of them depends on displacements.

    Args:
        model: The model.
        point: The point at which the step begins; its displacements have no effect.
    """
    workspace, device = model.workspace, model.device
    for kernel, dim, inputs in rest_launches(model, point):
        launch(kernel, dim, inputs, [], device)
    ratios = workspace.ratios
    ratios.fill_(0.0 if len(model.mesh) else 1.0)  # without soft matter there is nothing to scale
    for kind, elements in model.elements:
        if kind.scaling is not None:
            for kernel, dim, inputs in kind.scaling(elements, model, point):
                launch(kernel, dim, inputs, [], device)
    inputs = [model.nodes, model.topology.nominal_mass]
    launch(nodes.scaling_kernel, (model.worlds, model.topology.sizes.nodes), inputs, [ratios], device)
    if ratios.shape[1] > 1:
        launch_lanes(nodes.largest_kernel, model.worlds, LANES, [ratios], [workspace.scaling], device)


def residual_launches(model: ProjectiveModel, point: Point, v: wp.array, held: object | None = None) -> list[tuple]:
    """Launches (kernel, dim, inputs) that write the residual at a point; `held` replaces the nodes of the model."""
    workspace, each = model.workspace, (model.worlds, model.topology.sizes.nodes)
    forces = [step for kind, elements in model.elements for step in kind.forces(elements, model, point)]
    inputs = [held or model.nodes, point.h, point.active, v, point.u, workspace.force, workspace.residual]
    return [*forces, (nodes.residual_kernel, each, inputs)]


def evaluate_residual(model: ProjectiveModel, point: Point, v: wp.array, held: object | None = None) -> None:
    """Write the residual forces at a point, without contact forces, to `Workspace.residual`.

    Args:
        model: The model; `evaluate_rest` has run.
        point: The point at which forces are evaluated.
        v: Velocities of nodes when the step began [m/s], shape (worlds * n_nodes,).
        held: Nodes as a Warp struct that says which of them are fixed; None for the nodes of the model.
    """
    for kernel, dim, inputs in residual_launches(model, point, v, held):
        launch(kernel, dim, inputs, [], model.device)
