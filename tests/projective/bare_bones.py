"""A sled: a bone of which the upper side is in a small soft body and the rest is bare; what hits it; two legs."""

import dataclasses

import numpy as np
import torch
from scipy.spatial.transform import Rotation

from warpbots.contact import signed_distance
from warpbots.scene import Box, Joint, Material, Posed, RigidBody, Scene, SoftBody, Torque, TriangleMesh, floor
from warpbots.simulation import Simulation

CELL = 0.02
G = 9.81
NOWHERE = (0.0, 0.0, 0.0)
SOFT = Material(5e4, 0.3, 1000.0)
STIFF = dataclasses.replace(SOFT, youngs_modulus=2e5)
TURNS = {
    "face": Rotation.from_euler("z", 20, degrees=True),
    "edge": Rotation.from_euler("yz", [45, 20], degrees=True),
    "corner": Rotation.from_euler("xyz", [40, 35, 20], degrees=True),
}
"""How what comes from below looks up."""


def sled(
    position=NOWHERE, turn=None, velocity=None, names=("soft", "bone"), material: Material = SOFT
) -> tuple[SoftBody, RigidBody]:
    """A bone of 12 cm, of which the upper side is in a small soft body and the rest is bare."""
    R = np.eye(3) if turn is None else turn.as_matrix()
    cap = Posed(Box((-0.04, -0.04, 0.04), (0.04, 0.04, 0.10)), position, R)
    bone = Box((-0.06, -0.03, -0.03), (0.06, 0.03, 0.03))
    middle = R @ [0.0, 0.0, 0.03] + position
    return (
        SoftBody(names[0], cap, material, velocity=velocity),
        RigidBody(names[1], bone, density=2000.0, position=middle, rotation=R),
    )


def bare(sim: Simulation, state) -> list[np.ndarray]:
    """Vertices of the surface of each bone [m], where the bones are."""
    bone_surfaces, found, readings = sim.model.topology.bone_surfaces, [], sim.sense(state)
    for k, bone in enumerate(sim.scene.rigid):
        own = (bone_surfaces.position[bone_surfaces.bone == k] - np.array(bone.position)) @ np.array(bone.rotation)
        found.append(own @ readings.rotation[0, k].numpy().T + readings.position[0, k].numpy())
    return found


def gap(sim: Simulation, state) -> float:
    """Smallest signed distance of a vertex of any body from another one that is no part of it [m]."""
    particles, readings, points, smallest = sim.model.matter, sim.sense(state), bare(sim, state), np.inf
    x = state.position[0].double().numpy()
    for k, bone in enumerate(sim.scene.rigid):
        own = np.unique(particles.body[particles.bone == k])
        R, p = readings.rotation[0, k].numpy(), readings.position[0, k].numpy()
        others = [x[~np.isin(particles.body, own)], *(points[j] for j in range(len(points)) if j != k)]
        smallest = min(smallest, *(signed_distance(bone.shape, (y - p) @ R).min() for y in others if len(y)))
        for part in particles.meshes:
            if part.body not in own and len(part.faces) and len(particles.tets):
                smallest = min(smallest, signed_distance(TriangleMesh(x[part.nodes], part.faces), points[k]).min())
    return smallest


def momentum(sim: Simulation, state) -> torch.Tensor:
    """Momentum of soft bodies and bones [kg m/s], shape (3,)."""
    particles, readings = sim.model.matter, sim.sense(state)
    soft = torch.as_tensor(particles.density * particles.volume)
    arm_of_center = readings.center[0] - readings.position[0]
    of_center = readings.velocity[0] + torch.linalg.cross(readings.angular_velocity[0], arm_of_center)
    return soft @ state.velocity[0].double() + torch.as_tensor(sim.model.parameter("mass").numpy()[0]) @ of_center


def weight(sim: Simulation) -> float:
    """Of soft bodies and bones [N]."""
    particles = sim.model.matter
    return G * float((particles.density * particles.volume).sum() + sim.model.parameter("mass").numpy()[0].sum())


def forces(sim: Simulation) -> tuple[np.ndarray, np.ndarray]:
    """Forces of the obstacles in the last step [N], shape (n, 3), and whether they are on bone surfaces, shape (n,)."""
    model = sim.model
    z = model.matrices.of(sim.dt / sim.substeps).iteration.history.z.numpy()
    first = model.topology.sizes.points + model.topology.sizes.freedom
    return z[
        first : first + len(model.topology.candidates) * model.topology.sizes.solids, :3
    ], model.topology.candidates >= model.topology.sizes.nodes


def thrown(other: str, turn: str, speed: float) -> tuple:
    """A sled at rest, and a block or another sled that comes from below, bone ahead."""
    if other == "block":
        shape = Posed(Box((-0.03,) * 3, (0.03,) * 3), (0.01, 0.005, -0.08), TURNS[turn].as_matrix())
        return *sled(), SoftBody("block", shape, SOFT, velocity=(0.0, 0.1 * speed, speed))
    over = Rotation.from_euler("x", 180, degrees=True) * TURNS[turn]
    return *sled(), *sled((0.01, 0.005, -0.10), over, (0.0, 0.0, speed), ("second soft", "second"))


def legs() -> Scene:
    """A body on two legs with a hip between them, on a floor; a block hits one of the legs, and a motor drives both."""
    soft = SoftBody("soft", Box((-0.06, -0.03, 0.04), (0.06, 0.03, 0.08)), SOFT, friction=0.2)
    left = RigidBody("left", Box((-0.05, -0.02, 0.0), (-0.02, 0.02, 0.06)), density=2000.0, friction=0.7)
    right = RigidBody("right", Box((0.02, -0.02, 0.0), (0.05, 0.02, 0.06)), density=2000.0, friction=0.3)
    R = TURNS["edge"].as_matrix()
    reach = 0.02 * np.abs(R[0]).sum()
    shape = Posed(Box((-0.02,) * 3, (0.02,) * 3), (0.0503 + reach, 0.005, 0.029), R)
    block = SoftBody("block", shape, SOFT, velocity=(-0.8, 0.3, 0.0), friction=0.6)
    root = Joint("root", "free", None, "left", start_velocity=(0.3, 0.1, -0.2, 0.5, 0.3, -0.4))
    hip = Joint("hip", "revolute", "left", "right", (0.0, 0.0, 0.06), axis=(0, 1, 0), stiffness=0.1, damping=0.002)
    motors = (Torque("motor", "hip", 0.5),)
    return Scene((soft, block, left, right), motors, (floor(-0.0003, friction=0.4),), joints=(root, hip))
