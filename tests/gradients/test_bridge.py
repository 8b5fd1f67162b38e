"""The bridge between Warp and torch: one gradient, however it is asked for, and nothing changed on the way."""

import dataclasses

import pytest
import torch
import warp as wp
from cases import SOLVERS, STEPPING, assert_same, block, busy, end_of, fields_of, least, stirred

from warpbots.numerics import precision, real
from warpbots.simulation import Simulation

solvers = pytest.mark.parametrize("solver", SOLVERS)
stepping = pytest.mark.parametrize("solver", STEPPING)


@pytest.mark.verification
@solvers
def test_gradcheck(solver, rng):
    """torch's own check of every entry of the Jacobian of one control interval: 1e-6, in float64, for a tiny body."""
    scene = busy(least(solver), solver=solver)
    scene = dataclasses.replace(scene, actuators=scene.actuators[:2])  # so few particles have no room for a cable
    coarsest = 0.16 if "random" in solver else 0.25  # one of 0.25 at random would lose a quarter of the body
    sim = Simulation(scene, SOLVERS[solver](coarsest), dt=4e-3, substeps=2)
    inputs = stirred(sim, rng, intervals=1)
    inputs["control"] = inputs["control"][:, 0]
    fields = list(fields_of(sim.state()))
    # In units in which everything is of order one, as finite differences need.
    units = {n: float(t.abs().max()) for n, t in inputs.items()}
    names = list(inputs)

    def interval(*values):
        full = {n: units[n] * v for n, v in zip(names, values, strict=True)}
        state = sim.state(**{n: full.pop(n) for n in fields})
        return tuple(fields_of(sim.step(state, full.pop("control"), **full)).values())

    values = [(inputs[n] / units[n]).requires_grad_() for n in names]
    assert torch.autograd.gradcheck(interval, values, eps=1e-6, atol=1e-6, rtol=1e-6)


@pytest.mark.verification(float32=True)
@solvers
def test_a_raw_tape_gives_the_gradient_of_torch(solver, rng):
    """wp.Tape over solver.step, as a user of Warp alone would write it: bitwise the same."""
    sim = Simulation(busy(least(solver), solver=solver), SOLVERS[solver](1 / 8), dt=6e-3, substeps=3, worlds=2)
    inputs = {n: t.requires_grad_() for n, t in stirred(sim, rng, intervals=1).items()}
    final = fields_of(end_of(sim, inputs))
    weights = {n: torch.randn_like(t) for n, t in final.items()}
    loss = sum((weights[n] * final[n]).sum() for n in final)
    expected = dict(zip(inputs, torch.autograd.grad(loss, list(inputs.values())), strict=True))

    def warp(name: str, like: wp.array) -> wp.array:
        value = inputs[name][:, 0] if name == "control" else inputs[name]
        return wp.array(value.detach().cpu().numpy(), dtype=like.dtype, device=like.device, requires_grad=True)

    replaced = {n: warp(n, getattr(sim.model, n)) for n in sim.parameters()}
    model = dataclasses.replace(sim.model, **replaced)
    states = [sim.solver.state(model, requires_grad=True) for _ in range(4)]
    states[0] = dataclasses.replace(states[0], **{n: warp(n, getattr(states[0], n)) for n in final})
    control = warp("control", wp.zeros((1, 1), dtype=real))
    tape = wp.Tape()
    with tape:
        for before, after in zip(states, states[1:], strict=False):
            sim.solver.step(model, before, control, after, sim.dt / sim.substeps)
    for _ in range(2):  # the second time after tape.zero()
        for name, weight in weights.items():
            getattr(states[-1], name).grad.assign(weight.cpu().numpy())
        tape.backward()
        arrays = {**replaced, **{n: getattr(states[0], n) for n in final}}
        for name, array in arrays.items():
            assert_same(wp.to_torch(array.grad), expected[name], name)
        assert_same(wp.to_torch(control.grad), expected["control"][:, 0], "control")
        tape.zero()
        assert all((wp.to_torch(a.grad) == 0).all() for a in [*arrays.values(), control])


@pytest.mark.verification(float32=True)
@solvers
def test_a_loss_may_look_at_every_substep(solver, rng):
    """On a raw tape a step adds to the gradients of the state it read: two losses have the sum of their gradients."""
    sim = Simulation(busy(least(solver), solver=solver), SOLVERS[solver](1 / 8), dt=2e-3)
    states = [sim.solver.state(sim.model, requires_grad=True) for _ in range(3)]
    control = wp.zeros((1, sim.channels), dtype=real)
    names = list(fields_of(sim.state()))
    weights = [{name: rng.normal(size=getattr(state, name).numpy().shape) for name in names} for state in states]

    def gradients(steps: int, *seeded: int) -> dict:
        """Gradients to the first state from losses on the `seeded` ones."""
        with wp.Tape() as tape:
            for before, after in zip(states[:steps], states[1:], strict=False):
                sim.solver.step(sim.model, before, control, after, sim.dt)
        tape.zero()
        for i in seeded:
            for name, weight in weights[i].items():
                getattr(states[i], name).grad.assign(weight)
        tape.backward()
        return {name: getattr(states[0], name).grad.numpy().astype(float) for name in names}

    both, first, second = gradients(2, 1, 2), gradients(1, 1), gradients(2, 2)
    for name, gradient in both.items():
        error = abs(gradient - first[name] - second[name]).max() / abs(gradient).max()
        assert error < {"float32": 1e-5, "float64": 1e-11}[precision], name


@stepping
def test_backward_adds_once(solver):
    """.backward() twice through a retained graph adds the gradient twice, no more."""
    sim = Simulation(busy(least(solver), solver=solver), SOLVERS[solver](1 / 8), dt=6e-3, substeps=3)
    control = torch.full((sim.channels,), 0.4, requires_grad=True)
    loss = sim.step(sim.state(), control).position.square().sum()
    loss.backward(retain_graph=True)
    once = control.grad.clone()
    assert (once != 0).any()
    loss.backward(retain_graph=True)
    assert torch.equal(control.grad, 2 * once)


@stepping
def test_nothing_that_was_passed_in_changes(solver, rng):
    """States, controls, parameters and the model are the same bits after a rollout and its gradient."""
    sim = Simulation(busy(least(solver), solver=solver), SOLVERS[solver](1 / 8), dt=6e-3, substeps=3, worlds=2)
    inputs = {n: t.requires_grad_() for n, t in stirred(sim, rng, intervals=4).items()}
    model = {n: sim.parameter(n) for n in sim.parameters()}
    before = {n: t.detach().clone() for n, t in inputs.items()}
    final = end_of(sim, inputs)
    end = {n: t.detach().clone() for n, t in vars(final).items()}
    sum(t.square().sum() for t in vars(final).values()).backward()
    end_of(sim, inputs)
    for name, value in before.items():
        assert torch.equal(inputs[name].detach(), value), name
    for name, value in model.items():
        assert torch.equal(sim.parameter(name), value), name
    for name, value in end.items():
        assert torch.equal(getattr(final, name).detach(), value), name


@stepping
def test_one_interval_after_another_is_a_rollout(solver):
    """`step` in a loop gives the states and the gradients of `rollout`, bitwise, and `states` gives them again."""
    sim = Simulation(busy(least(solver), solver=solver), SOLVERS[solver](1 / 8), dt=6e-3, substeps=3, worlds=2)
    gradients, finals = [], []
    table = 0.8 * torch.rand(2, 5, sim.channels) - 0.4
    for loop in (True, False):
        control = table.clone().requires_grad_()
        if loop:
            state = sim.state()
            for i in range(5):
                state = sim.step(state, control[:, i])
        else:
            trajectory = sim.rollout(control, 5)
            state = trajectory.final
            *_, (time, again) = trajectory.states()
            assert time == pytest.approx(5 * sim.dt)
            assert torch.equal(again.position, state.position.detach())
        gradients += torch.autograd.grad(state.position.square().sum(), control)
        finals.append(state.position.detach())
    assert torch.equal(*finals)
    assert torch.equal(*gradients)


@solvers
def test_only_what_is_wanted_is_computed_and_it_is_the_same(solver, rng):
    """The gradient to one input does not depend on which others were asked for."""
    sim = Simulation(busy(least(solver), solver=solver), SOLVERS[solver](1 / 8), dt=6e-3, substeps=3)
    inputs = stirred(sim, rng, intervals=2)
    together = {n: t.clone().requires_grad_() for n, t in inputs.items()}
    loss = end_of(sim, together).position.square().sum()
    expected = dict(zip(together, torch.autograd.grad(loss, list(together.values())), strict=True))
    for name in inputs:
        alone = {**inputs, name: inputs[name].clone().requires_grad_()}
        (gradient,) = torch.autograd.grad(end_of(sim, alone).position.square().sum(), alone[name])
        assert torch.equal(gradient, expected[name]), name


@stepping
def test_a_second_derivative_is_refused(solver):
    """There is none, so asking for it raises instead of giving zero."""
    sim = Simulation(busy(least(solver), solver=solver), SOLVERS[solver](1 / 8), dt=6e-3, substeps=3)
    control = torch.full((sim.channels,), 0.4, requires_grad=True)
    loss = sim.step(sim.state(), control).position.square().sum()
    (gradient,) = torch.autograd.grad(loss, control, create_graph=True)
    with pytest.raises(RuntimeError, match="first derivatives only"):
        gradient.sum().backward()


@stepping
def test_a_tape_through_states_without_gradients_is_refused(solver):
    """A silent zero otherwise."""
    sim = Simulation(block(least(solver)), SOLVERS[solver](1 / 8), dt=6e-3, substeps=3)
    first, last = sim.solver.state(sim.model, requires_grad=True), sim.solver.state(sim.model)
    tape = wp.Tape()
    with tape:
        sim.solver.step(sim.model, first, wp.zeros((1, 0), dtype=real), last, 1e-3)
    with pytest.raises(RuntimeError, match="requires_grad=True"):
        tape.backward()


@pytest.mark.skipif(precision != "float32", reason="doubles are no news to float64")
@stepping
def test_doubles_are_taken_and_give_gradients_as_doubles(solver):
    """A float64 tensor goes into a float32 simulation, and its gradient comes back in float64."""
    sim = Simulation(busy(least(solver), solver=solver), SOLVERS[solver](1 / 8), dt=6e-3, substeps=3)
    control = torch.full((sim.channels,), 0.4, dtype=torch.float64, requires_grad=True)
    sim.step(sim.state(), control).position.square().sum().backward()
    assert control.grad.dtype == torch.float64
    assert (control.grad != 0).all()


def test_what_runs_in_inference_mode_leaves_nothing_of_it_behind():
    """Buffers that were made there serve gradients later, and parameters that were made there are taken."""
    sim = Simulation(busy(least("mpm")), SOLVERS["mpm"](1 / 8), dt=6e-3, substeps=3)
    with torch.inference_mode():
        E = torch.full((1,), 2e4)
        expected = [sim.rollout(None, 2, youngs_modulus=E).final.position for _ in range(2)]
    found = sim.rollout(None, 2, youngs_modulus=torch.full((1,), 2e4, requires_grad=True)).final.position
    assert torch.equal(expected[0], expected[1])
    assert torch.equal(found, expected[0])
    found.sum().backward()
