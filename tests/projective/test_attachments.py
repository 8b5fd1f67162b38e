"""Bodies that are attached to one another, and global steps with a diagonal instead of a factored matrix."""

import dataclasses

import numpy as np
import pytest
import torch
from skeletons import arm
from soft_bodies import beam, cloth, iterations, rolled, simulation, sliding, stirred, truss

from warpbots.scene import (
    Attachment,
    Box,
    Constraint,
    HalfSpace,
    Load,
    Material,
    Scene,
    SceneError,
    Sheet,
    SoftBody,
    floor,
)
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics

verification = pytest.mark.verification
CORNERS = [(0.16, y, z) for y in (0.02, 0.06) for z in (0.02, 0.06)]
MATTER = Material(1e5, 0.3, 1000.0)


def welded(points: list = CORNERS, gap: float = 0.0) -> Scene:
    """A bar of two halves that is held at its left end."""
    left = SoftBody(
        "left", Box((0, 0, 0), (0.16, 0.08, 0.08)), MATTER, regions={"root": HalfSpace((1e-6, 0, 0), (1, 0, 0))}
    )
    right = SoftBody("right", Box((0.16 + gap, 0, 0), (0.32 + gap, 0.08, 0.08)), MATTER)
    weld = (Attachment("weld", "left", "right", points),) if points else ()
    return Scene((left, right), attachments=weld, constraints=(Constraint("root"),))


def apart(sim: Simulation, x: np.ndarray) -> np.ndarray:
    """From the matter of the second body to that of the first at the points of attachments [m], shape (n, 3)."""
    mesh = sim.model.matter
    return np.einsum("pk,pki->pi", mesh.attachment_weight, x[mesh.attachments])


@pytest.mark.parametrize("collisions", [False, True])
def test_attached_points_stay_together(collisions):
    sim = Simulation(welded(), ProjectiveDynamics(0.04, collisions=collisions), 0.005, substeps=1)
    assert np.abs(apart(sim, sim.model.matter.position)).max() < 1e-12
    final = sim.rollout(None, 60).final
    assert np.abs(apart(sim, final.position[0].double().numpy())).max() < 1e-4
    assert float(final.position[0, :, 2].min()) < -0.1


@verification
def test_the_force_on_an_attachment_is_its_spring_constant_times_what_it_gives_way():
    """At rest the four points carry the weight of the half that hangs on them, which gravity pulls along the bar."""
    scene = dataclasses.replace(welded(), gravity=(9.81, 0.0, 0.0))
    sim = Simulation(scene, ProjectiveDynamics(0.04, tolerance=1e-12, collisions=False), 1.0, substeps=1)
    final = sim.rollout(None, 60).final
    stiffness = sim.model.attachment_stiffness.numpy()[0]
    force = (stiffness[:, None] * apart(sim, final.position[0].numpy())).sum(axis=0)
    np.testing.assert_allclose(force, [-9.81 * 1000.0 * 0.16 * 0.08**2, 0.0, 0.0], atol=1e-6)


def test_one_point_is_a_ball_joint_and_several_weld():
    """A bar that hangs on one point of another one turns about it freely; on four points it stays in line with it."""
    tilt = []
    for points in ([(0.16, 0.04, 0.04)], CORNERS):
        scene = welded(points)
        stiff = tuple(dataclasses.replace(b, material=Material(1e7, 0.3, 1000.0)) for b in scene.bodies)
        scene = dataclasses.replace(scene, bodies=stiff)
        sim = Simulation(scene, ProjectiveDynamics(0.04, collisions=False), 0.01, substeps=1)
        drop = sim.rollout(None, 12).final.position[0].numpy() - sim.model.matter.position
        tilt.append(float(drop[sim.model.matter.position[:, 0] > 0.31, 2].mean()))
    fall = 1.5 * 9.81 * 0.12**2 / 2.0  # of the tip of a bar that turns about its end, while it is level
    assert -1.2 * fall < tilt[0] < -0.7 * fall
    assert abs(tilt[1]) < 0.1 * fall


@verification
def test_gradients_of_attachments_are_those_of_differences(rng):
    """Sheet, truss and block hang on one another; relative 1e-5 by every input, which is what differences are good for."""
    block = beam().bodies[0]
    mast = truss().bodies[0]
    mast = SoftBody("mast", mast.shape, mast.material)
    sail = SoftBody(
        "sail", Sheet.rectangle((0.16, 0.0), (0.32, 0.08), 1e-2, (3, 2), height=0.08), Material(1e5, 0.3, 800.0)
    )
    attachments = (
        Attachment("clamp", "beam", "sail", [(0.16, 0.02, 0.08), (0.16, 0.06, 0.08)]),
        Attachment("foot", "beam", "mast", [(0.1, 0.02, 0.0)]),
    )
    scene = Scene(
        (block, sail, mast),
        constraints=(Constraint("root"),),
        attachments=attachments,
        loads=(Load("top", (1.0, 2.0, 0.5)),),
    )
    sim = simulation(scene)
    inputs = stirred(sim, rng, 3)
    inputs["attachment_stiffness"] = 0.5 * inputs["attachment_stiffness"]
    weight = torch.as_tensor(rng.normal(size=sim.state().position.shape))

    def loss(values: dict) -> torch.Tensor:
        return (weight * rolled(sim, values).position).sum()

    leaves = {n: v.clone().requires_grad_() for n, v in inputs.items()}
    value = loss(leaves)
    value.backward()
    rounding = 1e-13 * abs(float(value.detach())) / 1e-4
    for name, array in inputs.items():
        if not array.numel():
            continue
        direction = torch.as_tensor(rng.normal(size=array.shape))
        scale, slopes = float(array.abs().mean()) or 1.0, []
        for step in (1e-3, 1e-4, 1e-5):
            with torch.no_grad():
                there, back, far, far_back = (
                    float(loss(inputs | {name: array + s * step * scale * direction})) for s in (1.0, -1.0, 2.0, -2.0)
                )
            slopes.append((8.0 * (there - back) - (far - far_back)) / (12.0 * step * scale))
        slope = float((leaves[name].grad * direction).sum())
        assert slope != 0.0, name
        error = min(abs(slope - s) for s in slopes)
        assert error <= 1e-5 * abs(slope) or error * scale <= rounding, (name, slope, slopes)


def test_an_attachment_to_nothing_is_refused():
    with pytest.raises(SceneError, match=r"'weld'.*is 0\.\d+ m away from SoftBody 'right'; move it onto the body"):
        ProjectiveDynamics(0.04).build(welded(gap=0.1))


SPLIT = {
    "air": lambda: beam("corotated"),
    "cloth": cloth,
    "slides": lambda: sliding("corotated", (floor(friction=0.3),)),
    "bones": lambda: arm("revolute"),
}


@verification
@pytest.mark.parametrize("case", SPLIT)
def test_split_steps_end_where_those_of_the_factored_matrix_do(case):
    """At h = 1/30 s, to 1e-8 of the displacement; with more iterations.

    The block that slides takes h = 1/60 s: at 1/30 s its split steps end in another equilibrium for some lengths of a
    step, 8 cm off and compressed to 0.3 to 0.6 of its volume, without inverted elements.
    """
    ends, counts, dt = [], [], 1.0 / 60.0 if case == "slides" else 1.0 / 30.0
    for splitting in (False, True):
        solver = ProjectiveDynamics(
            0.02 if case == "bones" else 0.04, 1e-12, 20000, collisions=False, splitting=splitting
        )
        sim = Simulation(SPLIT[case](), solver, dt, substeps=1)
        ends.append(sim.rollout(None, 2).final.position[0].numpy())
        counts.append(iterations(sim))
    moved = np.abs(ends[0] - sim.model.matter.position).max()
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-8 * moved)
    assert counts[1] > counts[0]


def test_bones_cost_no_iterations():
    """Nodes follow the bones in the global step, so that no iteration is spent on dragging soft bodies behind them."""
    sim = Simulation(arm("revolute"), ProjectiveDynamics(0.02, 1e-5, collisions=False), 0.01, substeps=1)
    sim.rollout(torch.full((10, 1), 0.5), 10)
    assert iterations(sim) <= 18
