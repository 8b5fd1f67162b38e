"""Prims of rigid bodies and joints as text, which the tests of robots in files share."""

import dataclasses

from usd_cases import prim, turn, write_text

from warpbots import usd
from warpbots.scene import (
    Box,
    Capsule,
    Joint,
    RigidBody,
    Scene,
)
from warpbots.solvers.articulated.inertia import body_inertia

HEAD = '( metersPerUnit = 1\n upAxis = "Z" )\n'


LOCK = dict.fromkeys(("transX", "transY", "transZ", "rotX", "rotY", "rotZ"), (1, -1))


def cube(name, at=(0, 0, 0), text="", apis=(), inside=""):
    """A rigid cube of 0.2 m with the transform and the properties that `text` adds."""
    moved = f"double3 xformOp:translate = {tuple(at)}\n uniform token[] xformOpOrder = ["
    moved += '"xformOp:translate"]\n' if "xformOpOrder" not in text else ""
    moved = moved if "xformOpOrder" not in text else ""
    collider = prim("Cube", "Box", "PhysicsCollisionAPI", text="double size = 0.2")
    return prim("Xform", name, "PhysicsRigidBodyAPI", *apis, text=moved + text + "\n" + collider + inside)


def joint(kind, name="Hinge", first="/Base", second="/Arm", text="", apis=()):
    ends = (f"rel physics:body0 = <{first}>\n" if first else "") + (
        f"rel physics:body1 = <{second}>\n" if second else ""
    )
    return prim(kind, name, *apis, text=ends + text)


def limits(**said):
    """The properties and schemas of a PhysicsJoint with these limits: low and high."""
    text = "".join(
        f"float limit:{a}:physics:low = {lo}\n float limit:{a}:physics:high = {hi}\n" for a, (lo, hi) in said.items()
    )
    return {"text": text, "apis": tuple(f"PhysicsLimitAPI:{a}" for a in said)}


def locked(*free, **said):
    """Limits of a PhysicsJoint that locks all but some axes."""
    return limits(**{a: pair for a, pair in LOCK.items() if a not in free}, **said)


def stage(folder, *parts, head=HEAD):
    return write_text(folder / "robot.usda", head + "".join(parts))


def read(folder, *parts, head=HEAD, **options):
    return usd.read(stage(folder, *parts, head=head), **options)


def pair(folder, *parts, **options):
    """A floating base, an arm at 1 m, and the joints between them."""
    return read(folder, cube("Base"), cube("Arm", (1, 0, 0)), *parts, **options)


def notes(heard):
    """The notes of the warning, by prim."""
    return {line.split(":")[0]: line for line in heard.lines}


PLACES = "point3f physics:localPos0 = (0.5, 0, 0)\n point3f physics:localPos1 = (-0.5, 0, 0)\n"


def mass(folder, text="", *apis, collider="", more=""):
    """Inertia of a cube of 0.2 m with this text."""
    box = prim(
        "Cube",
        "Box",
        "PhysicsCollisionAPI",
        "PhysicsMassAPI",
        "MaterialBindingAPI",
        text="double size = 0.2\n" + collider,
    )
    scene = read(folder, prim("Xform", "Body", "PhysicsRigidBodyAPI", "PhysicsMassAPI", *apis, text=text + box), more)
    return body_inertia(scene.rigid[0])


FLOOR = prim("Plane", "Floor", "PhysicsCollisionAPI")


def chain(folder, *parts, text="", hinge="", **options):
    """Three cubes on two hinges above a floor."""
    bodies = [cube(n, (k, 0, 1), text if n == "A" else "", ("MaterialBindingAPI",)) for k, n in enumerate("ABC")]
    bodies = [b.replace(", 1)", ", 1)") for b in bodies]
    at = "point3f physics:localPos0 = (1, 0, 0)\n"
    joints = [joint("PhysicsRevoluteJoint", f"J{a}{b}", f"/{a}", f"/{b}", text=at + hinge) for a, b in ("AB", "BC")]
    return read(folder, FLOOR, *bodies, *joints, *parts, **options)


def pendulum(**changes):
    bodies = [RigidBody("base", Box((-0.1,) * 3, (0.1,) * 3)), RigidBody("rod", Capsule((0, 0, 0), (0.5, 0, 0), 0.05))]
    joints = [
        Joint("free", "free", None, "base", start_velocity=(0.1, 0.2, 0.3, 1.0, 2.0, 3.0)),
        Joint("hinge", "revolute", "base", "rod", axis=(0, 1, 0), start=0.5, position=(0.1, 0, 0), rotation=turn(3)),
    ]
    return dataclasses.replace(Scene(bodies, joints=joints), **changes)
