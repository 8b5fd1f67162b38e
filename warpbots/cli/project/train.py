"""Train the robot to walk: ``python train.py [--iterations 25] [--steps 300] [--resume]``."""

import argparse
from pathlib import Path

import torch
from scene import controller, simulation

import warpbots as wb

OUTPUT = Path("output")


def train(iterations: int, steps: int, resume: bool) -> wb.optimize.History:
    """Train the controller to travel far; write the controller, the loss and the motion to ``output/``."""
    OUTPUT.mkdir(exist_ok=True)
    sim = simulation()
    policy = controller(sim)
    start = sim.center_of_mass(sim.state())

    def loss() -> torch.Tensor:
        motion = sim.rollout(policy, steps)
        distance = (sim.center_of_mass(motion.final) - start)[:, 0].mean()
        return -distance + 1e-6 * motion.control.square().mean()

    history = wb.fit(
        policy.parameters(),
        loss,
        torch.optim.Adam,
        lr=3e-2,
        iterations=iterations,
        max_norm=0.1,
        checkpoint=OUTPUT / "checkpoint.pt",
        resume=resume,
    )
    torch.save(policy.state_dict(), OUTPUT / "controller.pt")
    wb.view.save_loss(OUTPUT / "loss.png", history)
    with torch.no_grad():
        motion = sim.rollout(policy, steps)
    wb.view.animate(OUTPUT / "motion.gif", motion)
    wb.usd.write(OUTPUT / "motion.usda", motion)
    print(f"{-history.loss[history.best]:.3f} m in {steps * sim.dt:g} s")
    return history


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=25)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--resume", action="store_true")
    train(**vars(parser.parse_args()))
