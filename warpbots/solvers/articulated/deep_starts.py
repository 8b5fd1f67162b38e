"""A warning about bodies that start deep in what they touch, so that contact pushes them out."""

import numpy as np

from warpbots.scene import RigidBody
from warpbots.solvers.articulated.contact_time_step import contacts_at_start
from warpbots.solvers.articulated.model import ArticulatedModel, ArticulatedState
from warpbots.solvers.scene_parts import immovable

__all__ = ["starts_deep"]

_DEEP = 0.1
"""Depth of a contact at the start from which there is a warning [smallest extent of the smaller body]."""

_RESTING = 3.0
"""Largest force of a contact of a body that rests [weight of all bodies]."""


def starts_deep(model: ArticulatedModel, state: ArticulatedState) -> str | None:
    """A warning that names the body that starts deepest in an obstacle or body that it touches; None without one.

    Bodies that rest on soft contact, or on contact of small area, start as deep as their weight presses them.

    Args:
        model: The model.
        state: State at the start.
    """
    topology, scene = model.contact_topology, model.scene
    if not (topology.pairs and model.tree.freedom):
        return None
    depth = contacts_at_start(model, state)[2][0]
    group, solid, law = (getattr(topology, f"pair_{name}").numpy() for name in ("group", "solid", "law"))
    bodies = np.stack([topology.group_body.numpy()[group], model.solids.body.numpy()[solid]], axis=1)
    bodies = np.maximum(bodies, -1)  # -1 for all obstacles
    size = np.array([*map(_size, scene.rigid), np.inf])[bodies].min(axis=1)
    moves = np.append(~immovable(scene), False)[bodies].any(axis=1)
    area = np.add.reduceat(model.contact_area.numpy()[0], topology.group_first.numpy())[group]
    stiffness = model.contact_stiffness.numpy()[0, law] * model.contact_scale.numpy()[0]
    weight = model.mass.numpy()[0].sum() * np.linalg.norm(model.gravity.numpy()[0])
    pressed = depth * stiffness * area <= _RESTING * weight
    share = np.where(moves & ~pressed, depth / size, 0.0)
    p = int(share.argmax())
    if share[p] <= _DEEP:
        return None
    contact = scene.laws[law[p]]
    body, *others = (scene.rigid[k].name for k in bodies[p] if k >= 0)
    return (
        f"RigidBody {body!r} starts {depth[p]:.2g} m deep in {[*others, contact.solid][0]!r}, and Contact "
        f"{contact.name!r} pushes it out with all its force: start it outside, or at most {_DEEP * size[p]:.1g} m "
        f"deep, a tenth of the smallest extent"
    )


def _size(body: RigidBody) -> float:
    """Smallest extent of the shape of a body [m]; infinity without a shape."""
    return np.inf if body.shape is None else float(np.ptp(body.shape.bounds, axis=0).min())
