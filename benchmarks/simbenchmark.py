"""The rolling and bouncing tests of SimBenchmark (Hwangbo and Kang, ETH Zurich), with MuJoCo in the same run.

    python benchmarks/simbenchmark.py [rolling] [bouncing] [--dt DT] [--balls N] [--time T] [--integrator I]

Rolling: a plate of 20 x 20 x 1 m and 10 kg lies on the ground and carries N x N balls of 0.5 m and 1 kg. A force of
150 N, at 60 degrees to x, pulls it for 4 s. It slides with friction 0.4; the balls roll on it with friction 0.8. If the
plate has the acceleration a, a ball has 2 a / 7. The program prints the mean over time of the squared error of the
velocities of the plate and of one ball.

Bouncing: balls of 0.1 m and 10 kg fall from 5 m and rebound without loss for 20 s, by instant impacts or, with
`--impact compliant`, by contact of 1e7 N/m. The program prints the mean squared error of the kinetic and potential
energy of N x N balls, of which one is simulated, since all move alike.
"""

import argparse
import math
import sys
import warnings
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import warpbots as wb

G = 9.81
WAY = np.array([0.5, math.sqrt(0.75)])
FORCE, PLATE, BALL, RADIUS = 150.0, 10.0, 1.0, 0.5
SLIDE, ROLL = 0.4, 0.8
PUBLISHED = {"rolling": "MuJoCo 2.4e-3, RaiSim 4e-7", "bouncing": "ODE 185, RaiSim 0.019"}
"""Errors published by the authors for steps of 1 ms [m^2/s^2 and J^2]."""


def rolling_speeds(balls: int, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Exact speeds of the plate and of a ball at the times t [m/s]."""
    drag = SLIDE * (PLATE + balls * BALL) * G
    plate = (FORCE - drag) / (PLATE + balls * BALL * 2.0 / 7.0)
    return plate * t, 2.0 / 7.0 * plate * t


def rolling_scene(side: int) -> wb.Scene:
    """The plate and its balls, at rest at the depth at which contact carries their weights."""
    stiffness, viscosity = 1e6, 1e6  # per point [N/m, N s/m]
    half = np.array([10.0, 10.0, 0.5])
    corner, patch = float(8.0 * half @ np.roll(half, 1)) / 8.0, 4.0 * math.pi * RADIUS**2 / 64.0
    sunk = [(PLATE + side**2 * BALL) * G / (4.0 * stiffness), BALL * G / stiffness]
    bodies = [wb.RigidBody("plate", wb.shapes.Box(tuple(-half), tuple(half)), PLATE / 400.0, points=8)]
    joints = [wb.Joint("plate", "free", None, "plate", start=(0, 0, half[2] - sunk[0], 0, 0, 0, 1))]
    density = BALL / (4.0 / 3.0 * math.pi * RADIUS**3)
    for k, place in enumerate(2.0 * (np.stack(np.mgrid[:side, :side], axis=-1).reshape(-1, 2) - (side - 1) / 2.0)):
        height = 2.0 * half[2] + RADIUS - sum(sunk)
        bodies.append(wb.RigidBody(f"ball{k}", wb.shapes.Sphere((0, 0, 0), RADIUS), density, points=8, surface="balls"))
        joints.append(wb.Joint(f"ball{k}", "free", None, f"ball{k}", start=(*place, height, 0, 0, 0, 1)))

    def law(points: str, solid: str, area: float, mu: float) -> wb.Contact:
        return wb.Contact(points, solid, stiffness / area, 1e2 * stiffness / area, mu, viscosity / area)

    laws = [law("plate", "floor", corner, SLIDE), law("balls", "plate", patch, ROLL)]
    motors = [
        wb.actuators.Torque(f"pull {axis}", "plate", FORCE * way, k)
        for k, (axis, way) in enumerate(zip("xy", WAY, strict=True))
    ]
    return wb.Scene(bodies, motors, (wb.floor(),), joints=joints, contacts=laws, gravity=(0, 0, -G))


def rolling_here(side: int, dt: float, time: float, integrator: str) -> np.ndarray:
    """Velocities of the plate and of the first ball, shape (steps, 2, 3)."""
    sim = wb.Simulation(rolling_scene(side), wb.Articulated(integrator), dt=dt)
    pull = torch.ones(1, round(time / dt), 2, dtype=torch.float64)
    seen = sim.rollout(pull, pull.shape[1], observe=lambda s: s.qd[:, [0, 1, 2, 6, 7, 8]]).observation
    return seen[0].reshape(-1, 2, 3).numpy()


def rolling_in_mujoco(side: int, dt: float, time: float) -> np.ndarray:
    """Velocities of the plate and of the first ball in MuJoCo, which uses the larger friction coefficient of a pair."""
    import mujoco

    balls = "".join(
        f'<body pos="{2 * i - side + 1} {2 * j - side + 1} 1.49998"><freejoint/>'
        f'<geom type="sphere" size="{RADIUS}" mass="{BALL}" friction="{ROLL} 0 0"/></body>'
        for i in range(side) for j in range(side)
    )  # fmt: skip
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{dt}" gravity="0 0 -{G}" tolerance="1e-30" iterations="1000" cone="elliptic"/>'
        f'<worldbody><geom type="plane" size="100 100 1" friction="{SLIDE} 0 0"/>'
        f'<body pos="0 0 0.49999"><freejoint/><geom type="box" size="10 10 0.5" mass="{PLATE}" '
        f'friction="{SLIDE} 0 0"/></body>{balls}</worldbody></mujoco>'
    )
    data, seen = mujoco.MjData(model), []
    data.xfrc_applied[1, :2] = FORCE * WAY
    for _ in range(round(time / dt)):
        mujoco.mj_step(model, data)
        seen.append(data.qvel[[0, 1, 2, 6, 7, 8]].copy())
    return np.array(seen).reshape(-1, 2, 3)


def rolling_error(velocities: np.ndarray, side: int, dt: float) -> float:
    """Mean squared error of velocities [m^2/s^2]."""
    speeds = rolling_speeds(side**2, dt * np.arange(1, len(velocities) + 1))
    exact = np.stack(speeds, axis=1)[:, :, None] * np.array([*WAY, 0.0])
    return float(((velocities - exact) ** 2).sum(axis=(1, 2)).mean())


def bouncing_here(dt: float, time: float, integrator: str, impact: str) -> np.ndarray:
    """Kinetic and potential energy of a ball after each step [J]."""
    ball = wb.RigidBody("ball", wb.shapes.Sphere((0, 0, 0), 0.1), 10.0 / (4.0 / 3.0 * math.pi * 1e-3), points=8)
    joint = wb.Joint("ball", "free", None, "ball", start=(0, 0, 5.0, 0, 0, 0, 1))
    area = 4.0 * math.pi * 0.1**2 / 64.0
    law = wb.Contact("ball", "floor", 1e7 / area, restitution=1.0, impact=impact)
    scene = wb.Scene([ball], obstacles=[wb.floor(friction=0.0)], joints=[joint], contacts=[law], gravity=(0, 0, -G))
    with warnings.catch_warnings(action="ignore"):  # the warning that steps do not resolve a compliant impact
        sim = wb.Simulation(scene, wb.Articulated(integrator), dt=dt)
        seen = sim.rollout(None, round(time / dt), observe=lambda s: torch.cat([s.q[:, 2:3], s.qd], dim=1)).observation
    return (10.0 * G * seen[0, :, 0] + 5.0 * seen[0, :, 1:4].square().sum(dim=1)).numpy()


def bouncing_in_mujoco(dt: float, time: float) -> np.ndarray:
    """Kinetic and potential energy of a ball in MuJoCo [J], with contact as stiff as possible and without damping."""
    import mujoco

    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{dt}" gravity="0 0 -{G}"/><default><geom friction="0 0 0" condim="1" '
        f'solref="-1e6 0"/></default><worldbody><geom type="plane" size="5 5 1"/><body pos="0 0 5"><freejoint/>'
        f'<geom type="sphere" size="0.1" mass="10"/></body></worldbody></mujoco>'
    )
    data, seen = mujoco.MjData(model), []
    for _ in range(round(time / dt)):
        mujoco.mj_step(model, data)
        seen.append(10.0 * G * data.qpos[2] + 5.0 * float(data.qvel[:3] @ data.qvel[:3]))
    return np.array(seen)


def main() -> None:
    """Print the errors."""
    parser = argparse.ArgumentParser()
    parser.add_argument("tests", nargs="*", metavar="TEST", help="rolling or bouncing; both")
    parser.add_argument("--dt", type=float, default=1e-3, help="length of a step [s]")
    parser.add_argument("--balls", type=int, default=0, help="balls along an edge; 5 that roll, 7 that bounce")
    parser.add_argument("--time", type=float, default=0.0, help="duration [s]; 4 of rolling, 20 of bouncing")
    parser.add_argument("--integrator", default="sdirk2", help="sdirk2 or bdf1")
    parser.add_argument("--impact", default="instant", help="instant or compliant")
    given = parser.parse_args()
    for test in given.tests or PUBLISHED:
        if test == "rolling":
            side, time = given.balls or 5, given.time or 4.0
            here = rolling_error(rolling_here(side, given.dt, time, given.integrator), side, given.dt)
            there = rolling_error(rolling_in_mujoco(side, given.dt, time), side, given.dt)
            unit = "squared velocity error [m^2/s^2]"
        else:
            count, time = (given.balls or 7) ** 2, given.time or 20.0
            energies = bouncing_here(given.dt, time, given.integrator, given.impact), bouncing_in_mujoco(given.dt, time)
            here, there = (float(np.mean((count * (e - 10.0 * G * 5.0)) ** 2)) for e in energies)
            unit = "squared energy error [J^2]"
        print(f"{test}, {given.dt:g} s, {unit}: warpbots {here:.2g}, MuJoCo {there:.2g}; published {PUBLISHED[test]}")


if __name__ == "__main__":
    main()
