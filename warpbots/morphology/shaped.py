"""State at rest and model parameters of a simulation whose bodies have changed their shape."""

import functools
from typing import Any

import numpy as np
import torch
import warp as wp
from scipy.sparse import diags_array, spmatrix
from scipy.spatial import cKDTree

from warpbots.gradients import tensor_of
from warpbots.morphology.maps import Deformation, jacobian
from warpbots.scene import RigidBody, Scene, SceneError, Servo, StressActuator, Torque, bars_of, sheets_of
from warpbots.scene.field_types import checked
from warpbots.simulation import Simulation
from warpbots.solvers.mass_spring import MassSpringModel
from warpbots.solvers.mpm import MPMModel
from warpbots.solvers.mpm.held_regions import NEAR
from warpbots.solvers.projective import ProjectiveModel

__all__ = ["shaped"]

_ROUNDING = 1e-9
"""Relative excess of the spacing of particles over the limit of the grid that counts as rounding."""


@checked
def shaped(sim: Simulation[Any], design: Deformation) -> tuple[Any, dict[str, torch.Tensor]]:
    """The state at rest and the parameters of bodies whose shape a map has changed.

    Example: ``state, parameters = wb.morphology.shaped(sim, design)``, then ``sim.rollout(policy, 50, state,
    **parameters)``. State and parameters are differentiable with respect to the parameters of the map, which all worlds
    share. Materials, regions and elements move with the matter: constraints hold the same matter at its new position.
    Densities, initial velocities, directions of muscles, fibres and constraints, obstacles, and lengths in contact laws
    do not change. Bones of `ProjectiveDynamics` do not move, so the map must not move the nodes that are bound to
    bones.

    Args:
        sim: The simulation of the bodies as they were built.
        design: The map; it is applied to rest positions in float64.

    Returns:
        The state `sim.state()` with undeformed bodies in the new shape, and parameters by name for `Simulation.step`
        and `rollout`.

    Raises:
        SceneError: The solver or a part of the scene cannot follow a change of shape, or the map moves nodes that are
            bound to bones.
        ValueError: The map turns an element inside out, or tears the matter apart; the message names the element.
    """
    if sim.model.matter is None:
        raise SceneError("shape: the scene has no soft body whose shape could change")
    position, parameters = _shaped(sim.model, design)
    own = {name: sim.parameter(name) for name in parameters}
    fitted = {name: value.to(own[name]).expand_as(own[name]) for name, value in parameters.items()}
    rest = sim.state()
    return sim.state(position=position.to(rest.position).expand_as(rest.position)), fitted


@functools.singledispatch
def _shaped(model: Any, design: Deformation) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Rest positions [m], shape (n, dim), and parameters by name, without the axis of the worlds."""
    raise SceneError(f"shape: {type(model).__name__} has no shape that could change; use MPM, springs or tetrahedra")


@_shaped.register
def _(model: MPMModel, design: Deformation) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Each particle gets the volume V' = V det J, with the Jacobian J of the map at its rest position."""
    matter = model.matter
    _refuse("MPM", model.scene, (StressActuator,))
    position, J = jacobian(design, _tensor(matter.position, model.device))
    det = _positive(torch.linalg.det(J), "particle")
    _refuse_torn(model, torch.linalg.matrix_norm(J.detach(), 2).cpu().numpy())
    _refuse_near(model, position.detach().cpu().numpy())
    return position, {"volume": det * _tensor(matter.volume, model.device)}


@_shaped.register
def _(model: MassSpringModel, design: Deformation) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """New masses and stiffnesses of a mass-spring lattice.

    The mass m' is the sum of rho V det J over the cells at a mass, with the density rho, the volume V of a cell and the
    Jacobian J of the map. The stiffness of a spring k' = k det J (l / l')^2, with the rest lengths l before and l'
    after the change, keeps the energy density.
    """
    lattice, device = model.lattice, model.device
    _refuse("MassSpring", model.scene, ())
    if model.self_contact or (model.contact.numpy().any() and model.scene.obstacles):
        raise SceneError(
            "shape: under MassSpring the stiffness of contact follows from the sizes of the cells as they were built; "
            "leave out self-contact and obstacles of finite stiffness"
        )
    _, J = jacobian(design, _tensor(lattice.cells.position, device))
    det = _positive(torch.linalg.det(J), "cell of the lattice")
    position = design(_tensor(lattice.position, device))
    ends = torch.as_tensor(lattice.ends, device=det.device)
    length = torch.linalg.vector_norm(position[ends[:, 1]] - position[ends[:, 0]], dim=1)
    share = lattice.carry.tocsc()  # of each cell in its masses
    mass = _product(share.T @ diags_array(lattice.cells.volume * lattice.cells.density), det)
    common = share[:, lattice.ends[:, 0]].multiply(share[:, lattice.ends[:, 1]]).T.tocsr()
    common = common @ diags_array(lattice.cells.volume)  # of each cell in its springs
    volume = _product(diags_array(1.0 / np.asarray(common.sum(axis=1)).ravel()) @ common, det)
    ratio = volume * (_tensor(lattice.rest_length, device) / length) ** 2
    drag = _first(model.drag) * mass / _tensor(lattice.mass, device)
    parameters = {"rest_length": length, "mass": mass, "stiffness": ratio * _first(model.stiffness), "drag": drag}
    return position, parameters | ({"damping": ratio * _first(model.damping)} if model.damped else {})


@_shaped.register
def _(model: ProjectiveModel, design: Deformation) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Rest positions of the nodes; the solver computes volumes and masses of its tetrahedra from them."""
    mesh = model.matter
    _refuse("ProjectiveDynamics", model.scene, (StressActuator, Torque, Servo), bones=True)
    rest = _tensor(mesh.position, model.device)
    position = design(rest)
    _refuse_moved_bones(model, (position.detach() - rest).cpu().numpy())
    moved, built = (mesh.solid.volumes(x.detach().cpu().numpy(), mesh.solids) for x in (position, rest))
    _positive(torch.as_tensor(moved / built).amin(dim=1), "tetrahedron" if len(mesh.tets) else "element")
    fixed = {"anchor": position[model.tables["fixed node"][:, 0]]} if "anchor" in model.parameters() else {}
    return position, {"rest_position": position} | fixed


def _refuse(who: str, scene: Scene, actuators: tuple[type, ...], bones: bool = False) -> None:
    """Raise if a part of the scene cannot follow a change of shape.

    If `bones` is set, rigid bodies and a fluid are allowed.
    """
    rigid: tuple[RigidBody, ...] = () if bones else scene.rigid
    parts = {
        "rigid body": rigid, "attachment": scene.attachments, "load": scene.loads,
        "actuator": [a for a in scene.actuators if not isinstance(a, actuators)],
        "sheet or truss": [b for b in scene.soft if sheets_of(b.shape) or bars_of(b.shape) is not None],
    }  # fmt: skip
    for kind, found in parts.items():
        for part in found:
            raise SceneError(
                f"shape: {kind} {part.name!r} cannot follow a change of shape under {who}, since it was placed on the "
                f"body as it was built; leave it out, or build the body in its new shape"
            )
    for kind, value in {"fluid": None if bones else scene.fluid, "fields": scene.fields}.items():
        if value:
            raise SceneError(f"shape: {kind} of the scene cannot follow a change of shape under {who}; leave it out")


def _refuse_moved_bones(model: ProjectiveModel, moved: np.ndarray) -> None:
    """Raise if the map moves nodes that are bound to bones; bones do not move."""
    distance = np.where(model.matter.bone >= 0, np.linalg.norm(moved, axis=1), 0.0)
    worst = int(distance.argmax())
    if distance[worst] > _ROUNDING * model.matter.edge:
        name = model.scene.rigid[model.matter.bone[worst]].name
        raise SceneError(
            f"shape: the map moves node {worst} at {model.matter.position[worst].round(6).tolist()} m by "
            f"{distance[worst]:.3g} m, and it is bound to RigidBody {name!r}, which cannot follow a change of shape; "
            f"leave the matter at bones where it is, or build the body in its new shape"
        )


def _positive(det: torch.Tensor, what: str) -> torch.Tensor:
    """The determinants `det`; raises if an entry is not positive."""
    worst = int(det.argmin())
    if not det[worst] > 0.0:
        raise ValueError(
            f"shape: {what} {worst} is turned inside out, the determinant of the map there is {det[worst].item():.3g} "
            f"and must be positive; change the design less"
        )
    return det


def _refuse_torn(model: MPMModel, stretch: np.ndarray) -> None:
    """Raise if the map moves particles further apart than the edge of a grid cell: the matter would then fall apart."""
    apart = np.where(np.isfinite(model.matter.spacing), model.matter.spacing, 0.0) * stretch
    worst = int(apart.argmax())
    if apart[worst] > model.grid.dx * (1.0 + _ROUNDING):
        raise ValueError(
            f"shape: about particle {worst} the map puts particles {apart[worst]:.3g} m apart, and the cells of the "
            f"grid are {model.grid.dx:.3g} m wide, so that matter would fall apart; stretch it less, or build it larger"
        )


def _refuse_near(model: MPMModel, position: np.ndarray) -> None:
    """Raise if the map moves particles close to held matter that were far from it when the model was built."""
    for constraint, region in zip(model.scene.constraints, model.constraints, strict=True):
        distance, _ = cKDTree(position[region.particle.numpy()]).query(position, p=np.inf)
        missing = np.setdiff1d(np.flatnonzero(distance <= NEAR * model.grid.dx), region.near.numpy())
        if len(missing):
            raise ValueError(
                f"shape: the map moves particle {missing[0]} close to matter that constraint {constraint.name!r} "
                f"holds, from which it was far when the body was built; shrink the body less, or build it smaller"
            )


def _tensor(values: np.ndarray, device: wp.Device) -> torch.Tensor:
    """A float64 tensor on the device of a model."""
    return torch.as_tensor(values, dtype=torch.float64, device=wp.device_to_torch(device))


def _first(array: wp.array) -> torch.Tensor:
    """A parameter as a float64 tensor, shape (worlds, ...)."""
    return tensor_of(array).double()


def _product(matrix: spmatrix, values: torch.Tensor) -> torch.Tensor:
    """Product of a sparse matrix on the host with a vector, differentiable with respect to the vector."""
    coo = matrix.tocoo()
    row, column = (torch.as_tensor(i, dtype=torch.long, device=values.device) for i in (coo.row, coo.col))
    terms = torch.as_tensor(coo.data).to(values) * values[column]
    return torch.zeros(coo.shape[0]).to(values).index_add(0, row, terms)
