"""What a user may write, for type checkers: ``mypy --strict`` and ``pyright`` have nothing against it."""

import torch

import warpbots as wb


def distance(trajectory: wb.Trajectory) -> torch.Tensor:
    """How far matter has come, under whichever solver [m]."""
    return trajectory.final.position[..., 0].mean()


def main() -> None:
    """A block that learns to push itself, a cloth on a bone, and a hinge."""
    body = wb.SoftBody("block", wb.shapes.Box([0.2, 0.2], [0.4, 0.3]), wb.Material(1e4, 0.3), velocity=[0.1, 0.0])
    scene = wb.Scene(
        [body], [wb.actuators.Cable("pull", [[0.2, 0.25], [0.4, 0.25]], 500.0)], [wb.floor(dim=2)], gravity=[0, -9.81]
    )
    simulation = wb.Simulation(scene, wb.MPM(dx=0.02), dt=5e-3, substeps=10)
    policy = wb.controllers.OpenLoop(simulation, 20)
    history = wb.fit(policy.parameters(), lambda: -distance(simulation.rollout(policy, 20)), iterations=5)
    pull = torch.zeros(5, 1, requires_grad=True)
    problem = lambda: wb.Outcome(-distance(simulation.rollout(pull, 5)), {}, {"effort": pull.square().sum() - 1.0})
    slsqp = wb.methods.SciPy("SLSQP", ftol=1e-6)
    wb.minimize(problem, {"pull": wb.Unknown(pull, -1.0, 1.0, scale=0.5)}, slsqp, iterations=2)
    smooth = wb.methods.Torch(torch.optim.Adam, lr=0.1, smoothing=wb.methods.Smoothing(0.1))
    wb.minimize(lambda: -distance(simulation.rollout(policy, 20)), policy, wb.methods.MultiStart(smooth, 2))
    state = simulation.step(simulation.state(velocity=torch.tensor([1.0, 0.0])), torch.zeros(1))
    kept: wb.Scene = simulation.scene_with(density=2.0 * simulation.parameter("density"))
    wb.usd.write("kept.usdz", kept)
    print(
        history.best,
        [field.values.shape for field in kept.fields],
        state.deformation.shape,
        simulation.parameter("density").sum().item(),
    )

    springs = wb.Simulation(scene, wb.MassSpring(0.02), 5e-3, None)
    print(distance(springs.rollout(None, 5)), springs.state().broken.sum(), springs.model.summary())

    cloth = wb.SoftBody("cloth", wb.shapes.Sheet.rectangle([0, 0], [1, 1], 1e-3, [4, 4]), wb.Material(1e5))
    drape = wb.Simulation(wb.Scene([cloth]), wb.ProjectiveDynamics(0.1), dt=5e-3)
    print(distance(drape.rollout(lambda state, time: state.velocity.new_zeros(0), 3)))

    door = wb.RigidBody("door", wb.shapes.Box([0, 0, 0], [1, 0.1, 2]), color=[0.5, 0.5, 0.5])
    hinge = wb.Joint("hinge", "revolute", None, "door", axis=[0, 0, 1], lower=[-1.0], upper=[1.0])
    swing = wb.Simulation(
        wb.Scene([door], [wb.actuators.Torque("motor", "hinge", 1.0)], joints=[hinge]), wb.Articulated(), 1e-2
    )
    angle: torch.Tensor = swing.rollout(None, 10, observe=lambda state: state.q).final.qd
    wb.usd.write("door.usda", swing.rollout(None, 5))
    print(angle, wb.view.film_strip(swing.rollout(None, 5), 3))


if __name__ == "__main__":
    main()
