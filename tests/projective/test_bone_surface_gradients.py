"""Gradients through contacts of bare bones."""

import pytest
import torch
from bare_bones import CELL, legs

from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics


@pytest.mark.verification
def test_gradients_are_those_of_differences(rng):
    """Relative 1e-4, by every input, with a bone on the floor and under a block, sticking and sliding."""
    sim = Simulation(legs(), ProjectiveDynamics(CELL, tolerance=1e-12), 0.004)
    model, steps, counted = sim.model, 2, {"floor": 0, "pairs": 0}

    def noise(value: torch.Tensor, scale: float) -> torch.Tensor:
        return scale * torch.as_tensor(rng.uniform(-1, 1, value.shape))

    names = (
        "youngs_modulus", "density", "friction", "body_friction", "mass", "motor_torque", "joint_position",
        "body_position",
    )  # fmt: skip
    inputs = {n: sim.parameter(n) for n in names}
    rest = sim.state()
    inputs |= {"position": rest.position + noise(rest.position, 1e-4), "q": rest.q}
    inputs |= {"velocity": rest.velocity + noise(rest.velocity, 0.02), "qd": rest.qd + noise(rest.qd, 0.1)}
    inputs["control"] = noise(torch.zeros(1, steps, 1), 0.8)
    by = {n: torch.as_tensor(rng.normal(size=inputs[n].shape)) for n in ("position", "velocity", "q", "qd")}

    def loss(values: dict) -> torch.Tensor:
        state = sim.state(**{n: values[n] for n in by})
        for k in range(steps):
            state = sim.step(state, values["control"][:, k], **{n: values[n] for n in names})
            counts = model.workspace.contact.contacts.listed.numpy() > 0
            of_solids = len(model.topology.candidates) * model.topology.sizes.solids
            meets = model.workspace.contact.search.node.numpy()[counts[of_solids:]]
            counted["floor"] += int((model.topology.candidates[counts[:of_solids]] >= model.topology.sizes.nodes).sum())
            counted["pairs"] += int((meets >= model.topology.sizes.nodes).any(axis=1).sum())
        return sum((by[n] * getattr(state, n)).sum() * (0.01 if n in ("velocity", "qd") else 1.0) for n in by)

    leaves = {n: v.clone().requires_grad_() for n, v in inputs.items()}
    loss(leaves).backward()
    assert min(counted.values()) >= 2
    assert model.workspace.contact.search.searches.numpy().max() <= 30  # planes have followed to the end

    def differences(name: str, direction: torch.Tensor):
        """Slopes along a direction, by a large step and, if that one is refused, by a small one."""
        scale = float(inputs[name].abs().median()) or 0.1
        for step in (1e-5, 1e-7):
            ends = [inputs | {name: inputs[name] + s * step * scale * direction} for s in (1.0, -1.0)]
            with torch.no_grad():
                there, back = (float(loss(end)) for end in ends)
            yield (there - back) / (2.0 * step * scale)

    for name, value in inputs.items():
        direction = torch.as_tensor(rng.normal(size=value.shape))
        slope = float((leaves[name].grad * direction).sum())
        assert slope != 0.0, name
        assert any(abs(slope - s) < 1e-4 * abs(slope) for s in differences(name, direction)), (name, slope)
