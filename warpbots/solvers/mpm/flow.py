"""Plastic flow: after a step has moved matter, matter beyond its elastic range returns to the yield surface.

    F' = return((I + dt C') F)

with the return mapping for the plasticity of the material. A fluid loses its shear deformation, and elastic matter
keeps F. The kernel reads only C' and the state at the start of the step; therefore its adjoint, which Warp derives,
needs only states. The function `flow` also relaxes Maxwell branches.
"""

import functools
from collections.abc import Iterable

import numpy as np
import warp as wp

from warpbots.materials import FLUIDS, cam_clay, drucker_prager, von_mises, without_shear
from warpbots.numerics import Slice, launch_slices, matrix, real, struct_of
from warpbots.scene import CamClay, DruckerPrager, Material, VonMises
from warpbots.solvers.device_arrays import device_array
from warpbots.solvers.mpm.arrays import constitution_arrays, motion_arrays, strength_arrays
from warpbots.solvers.mpm.constituents import adj_relax, relax
from warpbots.solvers.mpm.model import FlowGroup, MPMModel, MPMState

__all__ = ["adj_flow", "flow", "flow_groups"]


def flow_groups(materials: Iterable[Material], body: np.ndarray, worlds: int, device: wp.Device) -> tuple:
    """All particles, including elastic ones, grouped by the kind of plastic flow; empty if all particles are elastic.

    Args:
        materials: Material of each body.
        body: Index of the body of each particle of a world, shape (n_particles,).
        worlds: Number of worlds.
        device: Device of the arrays.
    """
    kinds = [m.law if m.law in FLUIDS else None if m.plasticity is None else type(m.plasticity) for m in materials]
    groups = []
    for kind in dict.fromkeys(kinds if any(kinds) else []):
        own = np.flatnonzero(np.array([k == kind for k in kinds])[body])
        rows = (np.arange(worlds)[:, None] * len(body) + own).reshape(-1)
        if len(own):
            groups.append(FlowGroup(kind, device_array(rows, device, int)))
    return tuple(groups)


def flow(model: MPMModel, state: MPMState, state_out: MPMState, dt: float) -> None:
    """Return the particles of `state_out` to their yield surfaces, and relax their Maxwell branches."""
    relax(model, state, state_out, dt)
    for kernel, size, inputs, outputs in _launches(model, state, state_out, dt):
        launch_slices(kernel, size, inputs, outputs, model.device)


def adj_flow(model: MPMModel, state: MPMState, state_out: MPMState, dt: float) -> object:
    """Adjoint of `flow`; returns the gradients with respect to the motion before plastic flow, as a Warp struct.

    If any matter flows, the gradient with respect to F at the start of the step is complete after this function, and
    the returned gradient with respect to F is zero.
    """
    if not (model.flows or state.branch_deformation.size):
        return state_out.motion_adj
    work = model.workspace.flow
    wp.copy(work.velocity_gradient_adj, state_out.velocity_gradient.grad)
    adj_relax(model, state, state_out, work.velocity_gradient_adj, dt)
    deformation_adj = work.deformation_adj if model.flows else state_out.deformation.grad
    moved = [state_out.position.grad, state_out.velocity.grad, work.velocity_gradient_adj, deformation_adj]
    adj_inputs = [
        model.material_adj, model.strength_adj, None, state.deformation.grad.flatten(),
        work.velocity_gradient_adj.flatten(), state.plastic.grad.flatten(), None,
    ]  # fmt: skip
    adj_outputs = [state_out.deformation.grad.flatten(), state_out.plastic.grad.flatten()]
    for kernel, size, inputs, outputs in _launches(model, state, state_out, dt):
        launch_slices(kernel, size, inputs, outputs, model.device, gradients=(adj_inputs, adj_outputs))
    return struct_of(motion_arrays(model.dim), moved)


def _launches(model: MPMModel, state: MPMState, state_out: MPMState, dt: float) -> list:
    return [
        (
            flow_kernel(group.kind, model.dim), len(group.rows),
            [
                model.material, model.strength, group.rows, state.deformation.flatten(),
                state_out.velocity_gradient.flatten(), state.plastic.flatten(), real(dt),
            ],
            [state_out.deformation.flatten(), state_out.plastic.flatten()],
        )
        for group in model.flows
    ]  # fmt: skip


@functools.cache
def _returned(kind: type | str | None, dim: int) -> wp.Function:
    """Warp function that maps (F, history, E, nu, strength, index of the particle) to (F', history') after the flow."""
    mat, Strength = matrix(dim), strength_arrays()

    if kind is VonMises:
        flow_of_metal = von_mises(dim)

        @wp.func
        def returned(F: mat, history: real, E: real, nu: real, strength: Strength, r: int):
            """Returns F and the history after the return mapping of von Mises plasticity."""
            return flow_of_metal(F, history, E, nu, strength.yield_stress[r], strength.hardening[r])

        return returned

    if kind is DruckerPrager:
        flow_of_sand = drucker_prager(dim)

        @wp.func
        def returned(F: mat, history: real, E: real, nu: real, strength: Strength, r: int):
            """Returns F and the history after the return mapping of Drucker-Prager plasticity."""
            return flow_of_sand(F, history, E, nu, strength.friction_angle[r])

        return returned

    if kind is CamClay:
        flow_of_snow = cam_clay(dim)

        @wp.func
        def returned(F: mat, history: real, E: real, nu: real, strength: Strength, r: int):
            """Returns F and the history after the return mapping of Cam clay plasticity."""
            return flow_of_snow(
                F, history, E, nu, strength.preconsolidation_pressure[r], strength.stress_ratio[r],
                strength.cohesion[r], strength.hardening_coefficient[r],
            )  # fmt: skip

        return returned

    if kind in FLUIDS:
        forget_shear = without_shear(dim)

        @wp.func
        def returned(F: mat, history: real, E: real, nu: real, strength: Strength, r: int):
            """Returns F without its shear deformation, and the history unchanged, for a fluid."""
            return forget_shear(F), history

        return returned

    @wp.func
    def returned(F: mat, history: real, E: real, nu: real, strength: Strength, r: int):
        """Returns F and history unchanged, for elastic matter."""
        return F, history

    return returned


@functools.cache
def flow_kernel(kind: type | str | None, dim: int) -> wp.Kernel:
    """Kernel over the particles of a group with one `FlowGroup.kind`: applies plastic flow; differentiated by Warp."""
    mat = matrix(dim)
    ConstitutionArrays, StrengthArrays = constitution_arrays(), strength_arrays()
    returned = _returned(kind, dim)
    name = kind if isinstance(kind, str) else "elastic" if kind is None else kind.__name__.lower()

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.flow_{name}_{dim}d"))
    def flow_particles(
        # launch
        part: Slice,
        # model
        material: ConstitutionArrays,
        strength: StrengthArrays,
        rows: wp.array[int],
        # state
        F: wp.array[mat],
        C: wp.array[mat],
        history: wp.array[real],
        dt: real,
        # out
        F_out: wp.array[mat],
        history_out: wp.array[real],
    ):
        """Deforms each particle and applies its return mapping: (F', history') = return((I + dt C') F, history)."""
        r = rows[part.start + wp.tid()]
        trial = F[r] + dt * (C[r] @ F[r])
        elastic, gathered = returned(trial, history[r], material.E[r], material.nu[r], strength, r)
        F_out[r] = elastic
        history_out[r] = gathered

    return flow_particles
