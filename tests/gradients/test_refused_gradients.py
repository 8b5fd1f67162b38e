"""Gradients that do not exist, or that would be those of another motion, are refused; none is zero in silence."""

import dataclasses

import numpy as np
import pytest
import torch
from cases import SOLVERS, busy, least
from test_checkpoints import INTERVALS, SCHEDULES, SUBSTEPS

from warpbots.optimize import hessian_product
from warpbots.scene import Box, Material, SceneError, SoftBody
from warpbots.simulation import Simulation

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # what torch.func imports
schedules = pytest.mark.parametrize("schedule", SCHEDULES)


def simulation(schedule: str = "sqrt") -> Simulation:
    scene = busy(least("mpm"), solver="mpm")
    return Simulation(scene, SOLVERS["mpm"](1 / 8), 6e-3, SUBSTEPS, checkpoints=SCHEDULES[schedule])


def end(sim: Simulation, control: torch.Tensor, **parameters: torch.Tensor) -> torch.Tensor:
    """A loss that is linear in the final state: all its curvature is that of the motion."""
    return sim.rollout(control, INTERVALS, **parameters).final.position.sum()


def controls(sim: Simulation) -> torch.Tensor:
    return torch.full((INTERVALS, sim.channels), 0.3).to(sim.state().position)


@schedules
def test_a_hessian_is_refused(schedule):
    """Although the loss has none of its own."""
    sim = simulation(schedule)
    with pytest.raises(NotImplementedError, match="first derivatives only"):
        torch.autograd.functional.hessian(lambda u: end(sim, u), controls(sim))


@schedules
def test_a_gradient_penalty_is_refused(schedule):
    """To a parameter, by way of every interval."""
    sim = simulation(schedule)
    E = sim.parameter("youngs_modulus").requires_grad_()
    (g,) = torch.autograd.grad(end(sim, controls(sim), youngs_modulus=E), E, create_graph=True)
    with pytest.raises(NotImplementedError, match="first derivatives only"):
        torch.autograd.grad(g.square().sum(), E)


def test_forward_mode_is_refused():
    sim = simulation()
    u = controls(sim)
    with pytest.raises(NotImplementedError, match=r"control.* torch\.func"):
        torch.func.jvp(lambda u: end(sim, u), (u,), (torch.ones_like(u),))
    with torch.autograd.forward_ad.dual_level(), pytest.raises(NotImplementedError, match="carries a tangent"):
        end(sim, torch.autograd.forward_ad.make_dual(u, torch.ones_like(u)))


@pytest.mark.parametrize("transform", [torch.func.grad, torch.func.hessian, torch.func.jacfwd, torch.func.jacrev])
def test_transforms_are_refused(transform):
    sim = simulation()
    with pytest.raises(NotImplementedError, match=r"torch\.func"):
        transform(lambda u: end(sim, u))(controls(sim))
    with pytest.raises(NotImplementedError, match=r"torch\.func"):
        transform(lambda v: sim.step(sim.state(velocity=v), controls(sim)[0]).position.sum())(torch.ones(sim.scene.dim))


@schedules
@pytest.mark.parametrize("name", ["control", "youngs_modulus", "velocity", "weight"])
def test_what_was_changed_in_place_before_the_gradient_is_refused(name, schedule):
    """A gradient at other values than those of the motion would be the gradient of no motion."""
    sim = simulation(schedule)
    given = {
        "control": controls(sim),
        "youngs_modulus": sim.parameter("youngs_modulus"),
        "velocity": sim.state().velocity,
        "weight": torch.full((sim.scene.dim, sim.channels), 0.5),
    }
    given[name].requires_grad_()
    state = sim.state(velocity=given["velocity"])
    table, weight = given["control"], given["weight"]

    def policy(state, time):
        return torch.tanh((state.velocity @ weight).mean(1))

    controller = policy if name == "weight" else table
    loss = sim.rollout(controller, INTERVALS, state, youngs_modulus=given["youngs_modulus"]).final.position.sum()
    with torch.no_grad():
        given[name].mul_(1.1)
    with pytest.raises(RuntimeError, match="that the gradient of a rollout needs was changed in place"):
        loss.backward()


@schedules
@pytest.mark.parametrize("writer", ["numpy", "torch"])
def test_a_controller_may_fill_the_memory_of_its_signal_again(writer, schedule):
    """The gradient is the one of the signals of the motion, although torch does not count what NumPy writes."""
    sim = simulation(schedule)
    memory = np.zeros(sim.channels, sim.state().position.numpy().dtype)
    signal = torch.from_numpy(memory)

    def again(state, time):
        (memory if writer == "numpy" else signal)[:] = np.cos(300.0 * time)
        return signal

    def gradient(controller):
        E = sim.parameter("youngs_modulus").requires_grad_()
        loss = sim.rollout(controller, INTERVALS, youngs_modulus=E).final.position.square().sum()
        return torch.autograd.grad(loss, E)[0]

    anew = gradient(lambda state, time: torch.full((sim.channels,), float(np.cos(300.0 * time)), dtype=signal.dtype))
    assert torch.equal(gradient(again), anew) and anew.any()


@schedules
@pytest.mark.parametrize("writer", ["numpy", "torch"])
@pytest.mark.parametrize("name", ["youngs_modulus", "velocity"])
def test_the_memory_of_a_parameter_or_a_start_may_be_filled_again(name, writer, schedule):
    """The gradient to a policy is the one at the values of the motion."""
    sim = simulation(schedule)
    rest = sim.state()

    def gradient(factor):
        memory = {
            "youngs_modulus": sim.parameter("youngs_modulus").cpu().numpy(),
            "velocity": np.full(rest.velocity.shape, 0.3, rest.velocity.cpu().numpy().dtype),
        }
        given = {n: torch.from_numpy(m).to(rest.velocity.device) for n, m in memory.items()}
        weight = torch.full((sim.scene.dim, sim.channels), 0.5).to(rest.velocity).requires_grad_()

        def policy(state, time):
            return torch.tanh((state.velocity @ weight).mean(1))

        start = dataclasses.replace(rest, velocity=given["velocity"])
        final = sim.rollout(policy, INTERVALS, start, youngs_modulus=given["youngs_modulus"]).final
        (memory if writer == "numpy" else given)[name][:] *= factor
        return torch.autograd.grad(final.position.square().sum(), weight)[0]

    kept = gradient(1.0)
    assert torch.equal(gradient(0.5), kept) and kept.any()


@pytest.mark.parametrize("name", ["control", "youngs_modulus", "deformation"])
def test_readings_keep_what_their_gradient_needs(name):
    """Memory that NumPy changes before the gradient is computed."""
    sim = simulation()
    rest = sim.state()

    def gradient(factor):
        memory = {
            "control": np.full(sim.channels, 0.3, rest.position.cpu().numpy().dtype),
            "youngs_modulus": sim.parameter("youngs_modulus").cpu().numpy(),
            "deformation": 1.1 * rest.deformation.cpu().numpy(),
        }
        given = {n: torch.from_numpy(m).to(rest.position.device) for n, m in memory.items()}
        wanted = given["youngs_modulus" if name == "deformation" else "deformation"].requires_grad_()
        state = dataclasses.replace(rest, deformation=given["deformation"])
        stress = sim.sense(state, given["control"], youngs_modulus=given["youngs_modulus"]).stress
        memory[name][:] *= factor
        return torch.autograd.grad(stress.square().sum(), wanted)[0]

    kept = gradient(1.0)
    assert torch.equal(gradient(0.5), kept) and kept.any()


def test_a_second_gradient_of_a_step_keeps_the_state():
    """It computes the step again, from a state whose memory NumPy has changed since."""
    sim = simulation()
    state, u = sim.state(), controls(sim)[0].requires_grad_()
    loss = sim.step(state, u).position.square().sum()
    (first,) = torch.autograd.grad(loss, u, retain_graph=True)
    state.velocity.numpy()[:] += 1.0
    assert torch.equal(*torch.autograd.grad(loss, u), first) and first.any()


@pytest.mark.parametrize("gradient", [False, True])
def test_an_observer_may_fill_the_same_tensor_again(gradient):
    """Every interval has its own observation, with the gradient of that observation."""
    sim = simulation()
    u = controls(sim).requires_grad_(gradient)

    def anew(state):
        return state.position.mean(1)

    def again():
        memory = torch.zeros_like(anew(sim.state()))
        return lambda state: memory.copy_(anew(state))

    found = [sim.rollout(u, INTERVALS, observe=o).observation for o in (again(), anew)]
    assert torch.equal(*found)
    if gradient:
        assert torch.equal(*(torch.autograd.grad(o.square().sum(), u)[0] for o in found))


def test_a_trajectory_does_not_change_with_what_it_was_made_of():
    """An optimiser moves parameters in place; the motion of the last iteration stays what it was."""
    sim = simulation()
    E, start = sim.parameter("youngs_modulus"), sim.state()
    t = sim.rollout(controls(sim), INTERVALS, start, youngs_modulus=E)
    E *= 0.3
    start.velocity.add_(1.0)
    *_, (_, again) = t.states()
    assert torch.equal(again.position, t.final.position)


@pytest.mark.verification
def test_a_hessian_product_is_that_of_differences_of_the_loss():
    """v . H v = (L(u + h v) - 2 L(u) + L(u - h v)) / h^2 to 1e-4, and H is symmetric to 1e-5."""
    sim = simulation()
    u = controls(sim)
    a, b = torch.randn_like(u), torch.randn_like(u)

    def loss(u):
        return sim.rollout(u, INTERVALS).final.position.square().sum()

    Ha, Hb = hessian_product(loss, u, a), hessian_product(loss, u, b)
    h = 1e-3
    curvature = (loss(u + h * a) - 2 * loss(u) + loss(u - h * a)) / h**2
    assert (a * Ha).sum().item() == pytest.approx(curvature.item(), rel=1e-4)
    assert (b * Ha).sum().item() == pytest.approx((a * Hb).sum().item(), rel=1e-5)


def test_a_hessian_from_noisy_gradients_is_symmetric():
    """Gradients with a noise of half the digits, and unknowns that differ by six orders of magnitude.

    f = a² b / a₀² b₀ has the Hessian (2, 2; 2, 0) in units of (a₀, b₀). At the optimal step the error is
    1.5 ε / (3 ε)^(1/3), 0.5 % in float32; at a step of the cube root of the rounding unit it would be ten times that.
    """
    x = torch.tensor([2e5, 0.3])
    eps = torch.finfo(x.dtype).eps ** 0.5
    generator = torch.Generator().manual_seed(1)

    def noisy(z):
        return z * (1.0 + eps * (2.0 * torch.rand(z.shape, generator=generator, dtype=z.dtype) - 1.0))

    class Loss(torch.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            ctx.save_for_backward(z)
            return z[0] ** 2 * z[1]

        @staticmethod
        def backward(ctx, g):
            (z,) = ctx.saved_tensors
            return g * noisy(torch.stack([2 * z[0] * z[1], z[0] ** 2]))

    H = torch.stack([hessian_product(lambda y: Loss.apply(y / x), x, e) for e in torch.eye(2)]) * torch.outer(x, x)
    assert torch.allclose(H, torch.tensor([[2.0, 2.0], [2.0, 0.0]]), atol=4.5 * eps / (3 * eps) ** (1 / 3))


@pytest.mark.parametrize("numbers", [{"step": 0.0}, {"noise": -1e-3}])
def test_a_step_that_is_not_positive_is_refused(numbers):
    with pytest.raises(ValueError, match="hessian_product: step and noise must be positive or None, got"):
        hessian_product(lambda y: y.sum(), torch.ones(2), torch.ones(2), **numbers)


def test_a_scene_of_a_tensor_with_a_gradient_is_refused():
    """A scene has numbers, so that the gradient would be lost without a word; a tensor without one is a number."""
    E, v = torch.tensor(1e5, requires_grad=True), torch.zeros(2, requires_grad=True)
    with pytest.raises(
        SceneError, match=r"youngs_modulus is a number and would lose the gradient .* the tensor to the rollout"
    ):
        Material(E)
    with pytest.raises(SceneError, match=r"velocity\[0\] is a number and would lose the gradient"):
        SoftBody("body", Box((0, 0), (1, 1)), Material(1e5), velocity=v)
    assert Material(E.detach()) == Material(1e5)
