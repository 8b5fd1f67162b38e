"""Bodies that hit or rest on matter that constraints hold: gradients at the default tolerance, and motion at rest."""

import numpy as np
import pytest
import torch

import warpbots as wb

S = wb.shapes
STEP = 2e-3
PAD = wb.SoftBody("pad", S.Box((0, 0, 0), (0.4, 0.4, 0.2)), wb.Material(2e4, 0.25, 1000.0), friction=0.1,
                  regions={"all": S.Box((-1, -1, -1), (1, 1, 1))})  # fmt: skip
HELD = [wb.Constraint("all")]
SOLVERS = {"masses": wb.MassSpring(0.1), "particles": wb.MPM(0.1)}


def thrown(matter: str, integrator: str, **options) -> wb.Simulation:
    """A ball that touches the pad, flies down and to a side, and spins, so that it slides over several points."""
    ball = wb.RigidBody("ball", S.Sphere((0, 0, 0), 0.3), 20.0, position=(0.19, 0.17, 0.475), friction=0.1)
    joint = wb.Joint("free", "free", None, "ball", start_velocity=(4.0, 3.0, -2.0, 1.0, -2.0, 3.0))
    scene = wb.Scene([PAD, ball], joints=[joint], constraints=HELD, domain=((-0.5,) * 3, (1.1,) * 3), gravity=(0, 0, 0))
    return wb.Simulation(scene, wb.Coupled(SOLVERS[matter], wb.Articulated(integrator, **options)), STEP, 1)


@pytest.mark.verification(float32=False)
@pytest.mark.parametrize("matter", SOLVERS)
@pytest.mark.parametrize("integrator", ["bdf1", "sdirk2"])
def test_gradients_of_a_ball_that_slides_over_held_matter_are_those_of_differences(matter, integrator):
    """At the default tolerance, for several motions at the start: a correction within it changes forces of friction."""
    sim, rng = thrown(matter, integrator), np.random.default_rng(3)
    constants = "body_mass" if matter == "masses" else "mass", "body_friction"
    start, weight = sim.state(), torch.tensor(rng.normal(size=(1, 6)))
    for _ in range(3):
        moving = {n: getattr(start, n) for n in ("velocity", "qd")}
        at = moving | {"qd": start.qd + 0.1 * torch.tensor(rng.normal(size=start.qd.shape))}
        at |= {n: sim.parameter(n) for n in constants}

        def loss(values):
            state = sim.state(velocity=values["velocity"], qd=values["qd"])
            return (weight * sim.step(state, torch.zeros(1, 0), **{n: values[n] for n in constants}).qd).sum()

        leaves = {n: t.clone().requires_grad_(True) for n, t in at.items()}
        gradients = dict(zip(leaves, torch.autograd.grad(loss(leaves), list(leaves.values())), strict=True))
        for name, value in at.items():
            direction, e = torch.tensor(rng.normal(size=value.shape)), 1e-3
            with torch.no_grad():
                pair = [float(loss(at | {name: value + s * e * direction})) for s in (1.0, -1.0)]
            slope = float((gradients[name] * direction).sum())
            assert abs(slope) > 1e-4, name
            assert slope == pytest.approx((pair[0] - pair[1]) / (2.0 * e), rel=1e-5, abs=5e-6), name


@pytest.mark.parametrize("ratio", [1e-2, 1.0, 1e2])
def test_a_body_at_rest_on_held_masses_keeps_its_place_at_every_ratio_of_masses(ratio):
    """It may move with a small part of the velocity that gravity gives it in a step."""
    block = wb.RigidBody("block", S.Box((-0.15,) * 3, (0.15,) * 3), 1e3 * ratio, position=(0.2, 0.2, 0.35))
    sim = wb.Simulation(wb.Scene([PAD, block], constraints=HELD), wb.Coupled(SOLVERS["masses"]), STEP, 1)
    end = sim.rollout(None, 20).final
    assert -end.qd[0, 2].item() < 1e-5 * 9.81 * STEP
    assert sim.sense(end, torch.zeros(1, 0)).matter_force[0, 0, 2].item() == pytest.approx(
        27.0 * ratio * 9.81, rel=1e-4
    )


def test_a_step_that_does_not_converge_advises_no_softer_contacts_where_only_matter_touches():
    """One correction is not enough for a ball that hits matter."""
    sim = thrown("masses", "bdf1", max_iterations=1)
    with pytest.raises(
        wb.SimulationError, match=r"after 1 iterations .* use a shorter step \(this one has 0\.002 s\)$"
    ):
        sim.rollout(None, 1)
