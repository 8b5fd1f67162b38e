"""Random mechanisms, for warpbots and for MuJoCo as an independent engine."""

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from warpbots.scene import Inertia, Joint, RigidBody, Scene
from warpbots.solvers.articulated.joints import BALL, FIXED
from warpbots.solvers.articulated.robot import ArticulatedRobot, Element

KINDS = ("revolute", "prismatic", "ball", "fixed", "planar", "translational", "free_2d")


def random_tree(rng: np.random.Generator, count: int, kinds: tuple[str, ...] = KINDS) -> Scene:
    """A tree of `count` bodies with random frames, inertias, axes, springs and armatures; its root floats or hangs."""
    bodies, joints = [], []
    for k in range(count):
        kind = str(rng.choice(kinds)) if k else str(rng.choice([*kinds, "free"]))
        parent = None if k == 0 else f"b{rng.integers(k)}"
        moments = np.diag(rng.uniform(1.0, 1.9, 3)) * 1e-2
        turn = Rotation.random(random_state=rng).as_matrix()
        inertia = Inertia(rng.uniform(0.2, 2.0), tuple(rng.uniform(-0.1, 0.1, 3)), turn @ moments @ turn.T)
        frame = Rotation.random(random_state=rng).as_matrix()
        position = tuple(rng.uniform(-0.5, 0.5, 3))
        bodies.append(RigidBody(f"b{k}", None, inertia=inertia, position=position, rotation=frame))
        joints.append(
            Joint(
                f"j{k}",
                kind,
                parent,
                f"b{k}",
                position=tuple(rng.uniform(-0.5, 0.5, 3)),
                rotation=Rotation.random(random_state=rng).as_matrix(),
                axis=tuple(rng.normal(size=3)),
                damping=rng.uniform(0.0, 0.2),
                armature=rng.uniform(0.0, 0.05),
            )
        )
    order = rng.permutation(count)
    return Scene(
        [bodies[i] for i in order], joints=[joints[i] for i in rng.permutation(count)], gravity=(0.4, -0.3, -9.81)
    )


def mujoco_model(scene: Scene) -> mujoco.MjModel:
    """The same mechanism in MuJoCo, with a body for every elementary joint; its coordinates are in the same order as
    those of `robot_of`."""
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.compiler.autolimits = False
    spec.option.gravity = scene.gravity
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    joints = {j.child: j for j in scene.joints}
    places = {None: (np.zeros(3), np.eye(3), spec.worldbody)}
    waiting = list(scene.rigid)
    while waiting:
        for body in waiting:
            joint = joints[body.name]
            if joint.parent in places:
                break
        waiting.remove(body)
        p_up, R_up, up = places[joint.parent]
        p, R = np.array(body.position), np.array(body.rotation)
        own = up.add_body(name=body.name)
        own.pos, own.quat = R_up.T @ (p - p_up), Rotation.from_matrix(R_up.T @ R).as_quat(scalar_first=True)
        anchor = R.T @ (np.array(joint.position) - p)
        frame = R.T @ np.array(joint.rotation)
        for k, (kind, axis) in enumerate(_parts(joint)):
            values = {f: getattr(joint, f)[min(k, joint.freedom - 1)] for f in ("damping", "armature", "stiffness")}
            element = own.add_joint(name=f"{joint.name}.{k}", type=kind, axis=frame @ axis, pos=anchor)
            element.damping[0], element.armature, element.stiffness[0] = (
                values["damping"],
                values["armature"],
                values["stiffness"],
            )
        own.mass, own.ipos = body.inertia.mass, body.inertia.center
        own.explicitinertial = True
        m = body.inertia.moments
        own.fullinertia = [m[0, 0], m[1, 1], m[2, 2], m[0, 1], m[0, 2], m[1, 2]]
        places[body.name] = (p, R, own)
    return spec.compile()


def _parts(joint: Joint) -> list:
    slide, hinge, ball = mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_BALL
    x, y, z = np.eye(3)
    return {
        "fixed": [],
        "revolute": [(hinge, np.array(joint.axis))],
        "prismatic": [(slide, np.array(joint.axis))],
        "planar": [(slide, x), (slide, y)],
        "translational": [(slide, x), (slide, y), (slide, z)],
        "ball": [(ball, z)],
        "free_2d": [(slide, x), (slide, y), (hinge, z)],
        "free": [(slide, x), (slide, y), (slide, z), (ball, z)],
    }[joint.kind]


def to_mujoco(scene: Scene, robot: ArticulatedRobot, model: mujoco.MjModel) -> np.ndarray:
    """Matrix T from our velocities to MuJoCo's: balls turn about axes of the body there, of the joint here."""
    T = np.zeros((model.nv, robot.freedom))
    for name, address, element in _placed(robot, model):
        turns = _axes(scene, robot, element).T if element.kind == BALL else np.eye(1)
        T[address : address + len(turns), element.dof : element.dof + len(turns)] = turns
    return T


def set_state(
    scene: Scene, robot: ArticulatedRobot, model: mujoco.MjModel, data: mujoco.MjData, q: np.ndarray, v: np.ndarray
) -> None:
    """Put MuJoCo into our state and compute its dynamics."""
    for name, _, element in _placed(robot, model):
        at = model.joint(name).qposadr[0]
        if element.kind == BALL:
            axes = _axes(scene, robot, element)
            turn = Rotation.from_quat(q[element.coordinate : element.coordinate + 4]).as_matrix()
            data.qpos[at : at + 4] = Rotation.from_matrix(axes.T @ turn @ axes).as_quat(scalar_first=True)
        else:
            data.qpos[at] = q[element.coordinate]
    data.qvel[:] = to_mujoco(scene, robot, model) @ v
    mujoco.mj_forward(model, data)


def _placed(robot: ArticulatedRobot, model: mujoco.MjModel):
    """Names of MuJoCo's joints, their first velocities, and our elements."""
    for element in robot.elements:
        own = [e for e in robot.elements if e.body == element.body]
        if element.kind != FIXED:
            name = f"{robot.joints[element.body].name}.{own.index(element)}"
            yield name, model.joint(name).dofadr[0], element


def _axes(scene: Scene, robot: ArticulatedRobot, element: Element) -> np.ndarray:
    """Axes of the body in the frame of its joint at zero."""
    return np.array(robot.joints[element.body].rotation).T @ np.array(scene.rigid[element.body].rotation)


def random_state(robot: ArticulatedRobot, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates and velocities of about 1."""
    q, v = rng.normal(size=len(robot.start)), rng.normal(size=robot.freedom)
    for element in robot.elements:
        if element.kind == BALL:
            at = slice(element.coordinate, element.coordinate + 4)
            q[at] /= np.linalg.norm(q[at])
    return q, v
