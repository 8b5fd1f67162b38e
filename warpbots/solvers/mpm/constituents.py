"""Fibres and Maxwell branches: the stress that they add to the stress of the law, and the relaxation of branches.

    tau = sum over families of tau_fibre(F, a, k) + sum over branches of tau_branch(G, mu)
    G'  = step(G, I + dt C', T, dt)

F is the deformation gradient of the particle, a the direction and k the stiffness of a fibre family, G the deformation
of the spring of a Maxwell branch, mu its shear modulus and T its relaxation time. The stress of all particles is
computed before it is transferred to the grid. Warp derives the adjoints.
"""

import functools

import warp as wp

from warpbots.materials import fibre_reinforcement, maxwell, maxwell_step
from warpbots.numerics import Slice, clear_gradients, launch, launch_adjoint, launch_slices, matrix, real
from warpbots.solvers.law_constants import pack, unpack_adjoint
from warpbots.solvers.mpm.arrays import constituent_arrays
from warpbots.solvers.mpm.model import MPMModel, MPMState

__all__ = ["adj_load_constituents", "adj_relax", "clear_load_gradients", "load_constituents", "relax"]


def load_constituents(model: MPMModel, state: MPMState) -> None:
    """Write constants of the law, and stress and energy of fibres and branches, of each particle to the workspace."""
    pack(model, model.workspace.law_constants)
    if model.composite:
        launch_slices(load_kernel(model.dim), state.position.size, *_load(model, state), model.device)


def clear_load_gradients(model: MPMModel) -> None:
    """Clear the gradients of the outputs of `load_constituents`."""
    if model.workspace.n_constants:
        clear_gradients([model.workspace.law_constants])
    if model.composite:
        work = model.workspace.constituents
        clear_gradients([work.stress, work.energy])


def adj_load_constituents(model: MPMModel, state: MPMState) -> None:
    """Add the gradients with respect to the inputs of `load_constituents`, from the gradients of its outputs."""
    unpack_adjoint(model, model.workspace.law_constants)
    if not model.composite:
        return
    inputs, outputs = _load(model, state)
    adj_inputs = [
        model.constituents_adj, None, None, None, None, state.deformation.grad.flatten(),
        state.branch_deformation.grad.flatten(),
    ]  # fmt: skip
    launch_slices(
        load_kernel(model.dim), state.position.size, inputs, outputs, model.device,
        gradients=(adj_inputs, [a.grad for a in outputs]),
    )  # fmt: skip


def relax(model: MPMModel, state: MPMState, state_out: MPMState, dt: float) -> None:
    """Deform the Maxwell branches with the matter, and relax the branches over the time `dt` [s]."""
    if state.branch_deformation.size:
        launch(
            relax_kernel(model.dim), state.branch_deformation.size, *_relax(model, state, state_out, dt), model.device
        )


def adj_relax(
    model: MPMModel, state: MPMState, state_out: MPMState, velocity_gradient_adj: wp.array, dt: float
) -> None:
    """Adjoint of `relax`.

    The gradient with respect to the velocity gradient is added to `velocity_gradient_adj`.
    """
    if not state.branch_deformation.size:
        return
    inputs, outputs = _relax(model, state, state_out, dt)
    adj_inputs = [
        model.constituents_adj, None, None, None, velocity_gradient_adj.flatten(),
        state.branch_deformation.grad.flatten(), None,
    ]  # fmt: skip
    launch_adjoint(
        relax_kernel(model.dim), state.branch_deformation.size, inputs, outputs, adj_inputs,
        [state_out.branch_deformation.grad.flatten()], model.device,
    )  # fmt: skip


def _sizes(model: MPMModel) -> list[int]:
    """Number of fibre families, and number of branches, for which the arrays have entries in each particle."""
    return [model.fibre_modulus.shape[-1], model.branch_modulus.shape[-1]]


def _load(model: MPMModel, state: MPMState) -> tuple[list, list]:
    work = model.workspace.constituents
    inputs = [
        model.constituents, model.counts, len(model.matter), *_sizes(model), state.deformation.flatten(),
        state.branch_deformation.flatten(),
    ]  # fmt: skip
    return inputs, [work.stress.flatten(), work.energy.flatten()]


def _relax(model: MPMModel, state: MPMState, state_out: MPMState, dt: float) -> tuple[list, list]:
    inputs = [
        model.constituents, model.counts, len(model.matter), _sizes(model)[1], state_out.velocity_gradient.flatten(),
        state.branch_deformation.flatten(), real(dt),
    ]  # fmt: skip
    return inputs, [state_out.branch_deformation.flatten()]


@functools.cache
def load_kernel(dim: int) -> wp.Kernel:
    """Kernel over the particles of all worlds: computes stress and energy of fibres and branches.

    Warp differentiates the kernel.
    """
    mat, ConstituentArrays = matrix(dim), constituent_arrays(dim)
    fibre_energy, fibre_stress = fibre_reinforcement(dim)
    branch_energy, branch_stress = maxwell(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.constituents_{dim}d"))
    def load_particles(
        # launch
        part: Slice,
        # model
        constituents: ConstituentArrays,
        counts: wp.array[wp.vec2i],
        particles: int,
        families: int,
        branches: int,
        # state
        F: wp.array[mat],
        G: wp.array[mat],
        # out
        stress_out: wp.array[mat],
        energy_out: wp.array[real],
    ):
        """Writes Kirchhoff stress and energy per volume of each particle, summed over its fibres and branches."""
        r = part.start + wp.tid()
        count = counts[r % particles]
        tau = mat()
        psi = real(0.0)
        for k in range(r * families, r * families + count[0]):
            a = constituents.fibre_direction[k]
            tau += fibre_stress(F[r], a, constituents.fibre_modulus[k])
            psi += fibre_energy(F[r], a, constituents.fibre_modulus[k])
        for k in range(r * branches, r * branches + count[1]):
            tau += branch_stress(G[k], constituents.branch_modulus[k])
            psi += branch_energy(G[k], constituents.branch_modulus[k])
        stress_out[r] = tau
        energy_out[r] = psi

    return load_particles


@functools.cache
def relax_kernel(dim: int) -> wp.Kernel:
    """Kernel over all branches of all particles: deforms and relaxes each branch in a step; differentiated by Warp."""
    mat, ConstituentArrays, stepped = matrix(dim), constituent_arrays(dim), maxwell_step(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.mpm.relaxation_{dim}d"))
    def relax_branches(
        # model
        constituents: ConstituentArrays,
        counts: wp.array[wp.vec2i],
        particles: int,
        branches: int,
        # state
        C: wp.array[mat],
        G: wp.array[mat],
        dt: real,
        # out
        G_out: wp.array[mat],
    ):
        """Writes the deformation of the spring of each branch after the step: G' = step(G, I + dt C', T, dt)."""
        k = wp.tid()
        r = k // branches
        if k - r * branches < counts[r % particles][1]:
            M = wp.identity(n=dim, dtype=real) + dt * C[r]
            G_out[k] = stepped(G[k], M, constituents.relaxation_time[k], dt)
        else:
            G_out[k] = G[k]

    return relax_branches
