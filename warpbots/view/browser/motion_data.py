"""A motion as one compressed block of data, which the player of a page unpacks."""

import base64
import json
import struct
import zlib
from typing import Any

import numpy as np

from warpbots.view.browser.scene import BrowserScene
from warpbots.view.color_bar import range_text
from warpbots.view.motion import Motion
from warpbots.view.moving_obstacles import at_start
from warpbots.view.rigid_bodies import BodyPoses
from warpbots.view.ruler import ruler
from warpbots.view.upright_view import upright

__all__ = ["motion_data"]

_LEVELS = 65535  # of a coordinate, between its smallest and its largest value
_OUT = 0.03  # distance of a label from the edge on which its tick is, relative to the longest edge of the view


def motion_data(motion: Motion, note: str = "") -> str:
    """A motion for player.js, as text in base64: the number of bytes of a header, the header in JSON, and arrays.

    The arrays follow one another: the geometry of `BrowserScene`; low bytes and then high bytes of all vertices; their
    colours; positions and rotations of the rigid bodies and obstacles, float32. Coordinates of vertices are divided
    into 65,535 steps. Vertices and colours are stored as differences from the frame before, which compress well
    where little moves.

    Args:
        motion: The motion.
        note: A line of text that is shown above the motion.
    """
    camera = motion.camera()
    obstacles = motion.obstacles
    if obstacles is None:
        obstacles = BodyPoses(*(np.repeat(a[None], len(motion), axis=0) for a in at_start(motion.scene)))
    scene = BrowserScene(
        motion.scene, motion.particles, motion.skins, motion.solids, camera, obstacles,
        shows_values=motion.values is not None,
    )  # fmt: skip
    moments = [scene.moment(x, motion.colors(k), motion.poses[k], obstacles[k]) for k, x in enumerate(motion.position)]
    vertices, colors, position, rotation = (
        np.stack([getattr(m, name) for m in moments]) for name in ("vertices", "colors", "position", "rotation")
    )
    first = vertices.shape[1] - len(scene.radius)
    seen = colors[:, first:, 3].any(axis=0)
    scene.keep(seen)
    kept = np.append(np.ones(first, dtype=bool), seen)
    vertices, colors = vertices[:, kept], colors[:, kept]
    places, lower, step = _quantised(vertices)
    arrays = [
        np.frombuffer(scene.geometry(), dtype=np.uint8),
        (places & 255).astype(np.uint8),
        (places >> 8).astype(np.uint8),
        _differences(colors),
        position,
        rotation,
    ]
    header = scene.header() | {
        "note": "; ".join(filter(None, [note, motion.color_map and range_text(motion.color_map)])),
        "frames": len(motion),
        "times": motion.time.tolist(),
        "vertices": vertices.shape[1],
        "meshes": position.shape[1],
        "geometry": len(arrays[0]),
        "lower": lower.tolist(),
        "step": step.tolist(),
        "ticks": _ticks(motion),
        "goals": [] if motion.goals is None else upright(motion.goals).tolist(),
    }
    words = json.dumps(header).encode()
    block = b"".join([struct.pack("<I", len(words)), words, *(np.ascontiguousarray(a).tobytes() for a in arrays)])
    return base64.b64encode(zlib.compress(block, 9)).decode("ascii")


def _quantised(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coordinates as whole numbers of steps, as differences from frame to frame modulo 65,536.

    Returns:
        The differences, uint16; the smallest coordinates [m], shape (3,); and the sizes of a step [m], shape (3,).
    """
    flat = x.reshape(-1, 3)
    lower, upper = (flat.min(axis=0), flat.max(axis=0)) if len(flat) else (np.zeros(3), np.zeros(3))
    step = np.maximum((upper - lower) / _LEVELS, 1e-30)
    return _differences(np.round((x - lower) / step).astype(np.uint16)), lower, step


def _differences(x: np.ndarray) -> np.ndarray:
    """Differences of unsigned integers from frame to frame, modulo their range; the first frame stays as it is."""
    return np.concatenate([x[:1], x[1:] - x[:-1]])


def _ticks(motion: Motion) -> list[dict[str, Any]]:
    """Texts of the ruler, and the places at which they stand."""
    camera = motion.camera()
    size = float((camera.box[1] - camera.box[0]).max())
    return [
        {"text": tick.text, "at": upright((tick.at + _OUT * size * tick.outward)[None])[0].tolist()}
        for tick in ruler(camera)
    ]
