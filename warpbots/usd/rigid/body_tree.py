"""Kinematic trees: the joints of a file in the order from the world, or from a floating base, to the leaves."""

from collections import deque
from typing import NamedTuple

from pxr import Sdf, Usd

from warpbots.scene import SceneError
from warpbots.usd.rigid.joint_reader import JointPrim
from warpbots.usd.stage.attributes import schemas
from warpbots.usd.stage.inventory import Note
from warpbots.usd.stage.ledger import mark_named

__all__ = ["Branch", "branches"]


class Branch(NamedTuple):
    """The connection of a body, or of the world, to a child.

    Attributes:
        joints: One joint, or several joints in series between the same two bodies, as in MuJoCo.
        reversed: Whether the first body of the joints is the child.
        parent: Path of the parent, or None for the world.
        child: Path of the child.
        robot: Path of the root body of its tree.
    """

    joints: tuple[JointPrim, ...]
    reversed: bool
    parent: Sdf.Path | None
    child: Sdf.Path
    robot: Sdf.Path


def branches(
    bodies: list[Usd.Prim], joints: list[JointPrim], roots: list[Usd.Prim], cut: Note | None = None
) -> list[Branch]:
    """The connections of all trees, parents first; a body that is not the child of any connection floats.

    Args:
        bodies: All rigid bodies.
        joints: All joints.
        roots: Prims with PhysicsArticulationRootAPI.
        cut: Receives a note on each joint that closes a loop and is left out; None to refuse such joints.

    Raises:
        SceneError: Joints close a loop, or a tree has two roots; the message names the prims.
    """
    bundles = _bundles(joints)
    found: list[Branch] = []
    placed: dict[Sdf.Path, Sdf.Path] = {}
    parts = _components([b.GetPath() for b in bodies], bundles)
    for part in parts:
        chosen = _root_of(part, bundles, roots)
        found += _grow(part, bundles, chosen, placed)
    used = {id(j) for branch in found for j in branch.joints}
    left = [b for b in bundles if id(b[0]) not in used]
    if left and cut is None:
        remedy = "take the joint away, switch it off (physics:jointEnabled), or pass ignore_loops=True"
        raise SceneError(
            "\n  ".join(f"{b[0].prim.GetPath()}: {_loop(b, found)}; a robot must be a tree: {remedy}" for b in left)
        )
    for bundle in left:
        for joint in bundle:
            mark_named(joint.prim)
        cut(bundle[0].prim, f"{_loop(bundle, found)}; it is left out, which opens the loop there")
    return found


def _paths(joint: JointPrim) -> tuple[Sdf.Path | None, Sdf.Path | None]:
    return tuple(end.body and end.body.GetPath() for end in joint.ends)


def _bundles(joints: list[JointPrim]) -> list[tuple[JointPrim, ...]]:
    """Groups of joints: all MuJoCo joints between the same two bodies form one group, every other joint is a group.

    Joints that the file excludes from articulations come last.
    """
    found: dict[object, list[JointPrim]] = {}
    for joint in joints:
        mujoco = "MjcJointAPI" in schemas(joint.prim) and joint.freedoms
        found.setdefault(_paths(joint) if mujoco else joint.prim.GetPath(), []).append(joint)
    return sorted(map(tuple, found.values()), key=lambda b: b[0].excluded)


def _components(bodies: list[Sdf.Path], bundles: list[tuple[JointPrim, ...]]) -> list[list[Sdf.Path]]:
    """Groups of bodies that joints connect with each other; within a group, bodies are in the order of the file."""
    group = {body: body for body in bodies}

    def top(body: Sdf.Path) -> Sdf.Path:
        while group[body] != body:
            body = group[body]
        return body

    for bundle in bundles:
        a, b = _paths(bundle[0])
        if a is not None and b is not None:
            group[top(b)] = top(a)
    parts: dict[Sdf.Path, list[Sdf.Path]] = {}
    for body in bodies:
        parts.setdefault(top(body), []).append(body)
    return list(parts.values())


def _root_of(part: list[Sdf.Path], bundles: list, roots: list[Usd.Prim]) -> Sdf.Path:
    """The root body of the connected bodies `part`; the caller uses it only if no joint connects `part` to the world.

    Raises:
        SceneError: Two prims are marked as the root of `part`.
    """
    own = [b[0] for b in bundles if set(_paths(b[0])) & set(part)]
    inside = {joint.prim.GetPath(): joint for joint in own}
    said = [
        root for root in roots
        if root.GetPath() in inside or any(body.HasPrefix(root.GetPath()) for body in part)
    ]  # fmt: skip
    nested = [r for r in said if r.GetPath() in part or r.GetPath() in inside] or said[:1]
    if len(said) > 1:
        raise SceneError(
            f"{said[0].GetPath()} and {said[1].GetPath()}: two roots of one articulation (PhysicsArticulationRootAPI); "
            f"take one away"
        )
    if nested and nested[0].GetPath() in part:
        return nested[0].GetPath()
    if nested and nested[0].GetPath() in inside:
        return next(p for p in _paths(inside[nested[0].GetPath()]) if p is not None)
    second = {_paths(joint)[1] for joint in own}
    return next((body for body in part if body not in second), part[0])


def _grow(part: list[Sdf.Path], bundles: list, root: Sdf.Path, placed: dict) -> list[Branch]:
    """Connections of the bodies `part`, starting at the world, or at `root` if no joint leads to the world.

    Joints that close loops are left out.
    """
    at: dict[Sdf.Path | None, list] = {}
    for bundle in bundles:
        for end in set(_paths(bundle[0])):
            at.setdefault(end, []).append(bundle)
    found: list[Branch] = []
    held = [b for b in at.get(None, []) if set(_paths(b[0])) & set(part)]
    first = next((p for p in _paths(held[0][0]) if p is not None), root) if held else root
    waiting: deque = deque()
    if held:
        a, _ = _paths(held[0][0])
        found.append(Branch(held[0], a is not None, None, first, first))
    placed[first] = first
    waiting.append(first)
    while waiting:
        body = waiting.popleft()
        for bundle in at.get(body, []):
            a, b = _paths(bundle[0])
            other = b if a == body else a
            if other is None or other in placed:
                continue
            placed[other] = first
            found.append(Branch(bundle, a != body, body, other, first))
            waiting.append(other)
    return found


def _loop(bundle: tuple[JointPrim, ...], found: list[Branch]) -> str:
    """Description of a joint that closes a loop, with the bodies of the loop."""
    carrier = {branch.child: branch for branch in found}

    def way(body: Sdf.Path | None) -> list[Sdf.Path | None]:
        result = [body]
        while result[-1] is not None and result[-1] in carrier:
            result.append(carrier[result[-1]].parent)
        return result

    a, b = map(way, _paths(bundle[0]))
    shared = next(body for body in [*a, None] if body in [*b, None])
    up = a[: a.index(shared) + 1] if shared in a else a
    down = b[: b.index(shared)] if shared in b else b
    ring = [*up, *reversed(down)]
    names = " - ".join("the world" if body is None else str(body) for body in ring)
    said = " (physics:excludeFromArticulation)" if bundle[0].excluded else ""
    return f"the joint{said} closes the loop {names}"
