"""Checks of components: whatever the sizes are, ports must remain rectangles and hinges must remain round."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from warpbots.design.component import Component

__all__ = ["check_hinge", "check_port", "check_sizes"]

_CORNERS = np.array([(0.0, 0.0), (-0.5, -0.5), (0.5, -0.5), (-0.5, 0.5), (0.5, 0.5)])
"""Positions of the handles of a port in the frame of the port, in widths along y and heights along z."""

_SAME = 1e-12
"""Largest difference of entries of a layout that count as equal [1]."""


def check_sizes(own: "Component") -> None:
    """Check that sizes are positive, that named sizes exist, and that the layout has a column for each size.

    Raises:
        ValueError: A check fails.
    """
    for name, size in own.sizes.items():
        if not 0.0 < size < np.inf:
            raise ValueError(f"its {name} must be positive [m], got {size:g}")
    named = {*own.fixed, *(size for group in own.tied for size in group)}
    named |= {size for port in own.ports.values() for size in (port.width, port.height)}
    if unknown := sorted(named - set(own.sizes)):
        raise ValueError(f"it has no size {unknown[0]!r}; its sizes are {', '.join(own.sizes)}")
    shape = np.shape(own.layout)
    if len(shape) != 3 or shape[1:] != (3, len(own.sizes)):
        raise ValueError(f"its layout must have shape (k, 3, {len(own.sizes)}), got {shape}")


def check_port(own: "Component", name: str) -> None:
    """Check that the handles of a port are the middle and the corners of a rectangle of the cage, for all sizes.

    Raises:
        ValueError: The handles are not the middle and the corners, or the frame of the port "in" is not the frame of
            the component.
    """
    port, count = own.ports[name], len(own.layout)
    if len(port.handles) != 5 or not all(0 <= k < count for k in port.handles):
        raise ValueError(f"port {name!r} must have five of the handles 0 to {count - 1}, got {tuple(port.handles)}")
    R, sizes = np.asarray(port.rotation, dtype=float), list(own.sizes)
    if R.shape != (3, 3) or not np.allclose(R @ R.T, np.eye(3), rtol=0.0, atol=1e-9) or np.linalg.det(R) < 0.0:
        raise ValueError(f"the rotation of port {name!r} must be a rotation matrix, got {R.tolist()}")
    rectangle = np.zeros((5, 3, len(sizes)))
    for axis, size in enumerate((port.width, port.height)):
        rectangle[:, :, sizes.index(size)] += np.outer(_CORNERS[:, axis], R[:, 1 + axis])
    found = own.layout[list(port.handles)]
    wrong = np.abs(found - found[0] - rectangle).max(axis=(1, 2)) > _SAME
    if wrong.any():
        raise ValueError(
            f"handle {port.handles[int(wrong.argmax())]} of port {name!r} must be half of {port.width!r} and "
            f"{port.height!r} from its middle, handle {port.handles[0]}, along its y and z axes in all sizes"
        )
    inside = np.isin(own.faces, port.handles).all(axis=1)
    if inside.sum() != 4 or not (own.faces[inside] == port.handles[0]).any(axis=1).all():
        raise ValueError(f"port {name!r} must consist of four faces of the cage, from its middle to its corners")
    if name == "in" and (np.abs(found[0]).max() > _SAME or np.abs(R - np.eye(3)).max() > _SAME):
        raise ValueError("its frame must be that of its port 'in': with the origin in the middle and the same axes")


def check_hinge(own: "Component") -> None:
    """Check that a component has one part, or two parts with a hinge, and that it is scaled only along the hinge axis.

    Raises:
        ValueError: The parts and the hinge do not match, or a size that is not fixed moves handles perpendicular to the
            axis.
    """
    parts = 1 if own.hinge is None else 2
    if len(own.parts) != parts:
        kind = "without a hinge must have one part" if parts == 1 else "with a hinge must have two parts"
        raise ValueError(f"a component {kind}, got {len(own.parts)}")
    if own.hinge is None:
        return
    axis = np.asarray(own.hinge.axis, dtype=float) / np.linalg.norm(own.hinge.axis)
    for k, name in enumerate(own.sizes):
        along = own.layout[:, :, k] @ axis
        across = np.abs(own.layout[:, :, k] - np.outer(along, axis)).max()
        if name not in own.fixed and across > _SAME:
            raise ValueError(
                f"its {name} moves handles across the axis of its hinge, whose axle is of standard size: name it in "
                f"`fixed`"
            )
