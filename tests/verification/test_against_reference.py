"""States and gradients of MLS-MPM against an implementation that shares no code (`mpm_reference`), in float64.

Two worlds with different states, parameters and controls; every actuator at work; loads on all particles; contact with
a floor that has friction and with a slippery wall; then with damping, too, and with parts that are held. Sums are taken in another order, so results agree to a few
hundred roundings: measured 6e-15 for states and 2e-14 for gradients, relative to the largest entry.
"""

import numpy as np
import pytest
import torch
from cases import CONSTITUTIONS, DIMENSIONS, busy, end_of, held, stirred
from mpm_reference import Particles, step

from warpbots.simulation import Simulation
from warpbots.solvers import MPM

pytestmark = pytest.mark.verification

DX, DT, SUBSTEPS, INTERVALS = 1 / 8, 2e-3, 3, 2
FIELDS = {"position": "x", "velocity": "v", "velocity_gradient": "C", "deformation": "F"}
PARAMETERS = {
    "youngs_modulus": "E",
    "poissons_ratio": "nu",
    "density": "rho",
    "volume": "V",
    "load": "f",
    "damping": "beta",
}


def reference(scene, rest: torch.Tensor, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Final states of all worlds, by name, shape (worlds, ...)."""
    worlds = []
    for w in range(len(inputs["position"])):
        s = Particles(**{short: inputs[name][w] for name, short in (FIELDS | PARAMETERS).items() if name in inputs})
        for i in range(INTERVALS * SUBSTEPS):
            u = inputs["control"][w, i // SUBSTEPS]
            s = step(scene, rest, s, u, inputs["gravity"][w], inputs["friction"][w], DX, DT)
        worlds.append(s)
    return {name: torch.stack([getattr(s, short) for s in worlds]) for name, short in FIELDS.items()}


@pytest.mark.parametrize("dim", DIMENSIONS)
@pytest.mark.parametrize(("law", "incompressibility"), CONSTITUTIONS)
def test_states_and_gradients_equal_the_reference(law, incompressibility, dim):
    compare(busy(dim, law, incompressibility))


@pytest.mark.parametrize(("dim", "law", "incompressibility"), [(2, *CONSTITUTIONS[1]), (3, *CONSTITUTIONS[0])])
def test_held_and_damped_matter_equals_the_reference(dim, law, incompressibility):
    compare(held(busy(dim, law, incompressibility)))


def compare(scene):
    """States and gradients of a stirred scene."""
    rng = np.random.default_rng(1)  # pulls at every cable
    sim = Simulation(scene, MPM(DX), DT * SUBSTEPS, SUBSTEPS, worlds=2, device="cpu")
    rest = sim.state().position[0]
    inputs = {n: t.requires_grad_() for n, t in stirred(sim, rng, INTERVALS).items()}
    ours, theirs = vars(end_of(sim, inputs)), reference(scene, rest, inputs)
    for name, expected in theirs.items():
        scale = float(expected.detach().abs().max())
        error = float((ours[name] - expected).detach().abs().max())
        print(f"{name}: {error / scale:.1e}")
        assert error < 1e-12 * scale, name

    weights = {n: torch.as_tensor(rng.normal(size=t.shape)) / t.detach().abs().max() for n, t in theirs.items()}

    def loss(state):
        return sum((weights[n] * state[n]).sum() for n in weights)

    for name, ours_g, theirs_g in zip(
        inputs,
        torch.autograd.grad(loss(ours), list(inputs.values())),
        torch.autograd.grad(loss(theirs), list(inputs.values())),
        strict=True,
    ):
        scale = float(theirs_g.abs().max())
        error = float((ours_g - theirs_g).abs().max())
        print(f"gradient to {name}: {error / scale:.1e}")
        assert scale > 0.0, f"nothing depends on {name}"
        assert error < 1e-12 * scale, f"gradient to {name}: {error / scale:.1e}"
        if name == "control":
            assert (theirs_g.abs().amax(dim=(0, 1)) > 0.0).all(), "an actuator does nothing"
