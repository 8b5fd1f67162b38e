"""The conversation between a bench and the browsers that show it."""

import asyncio
import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from warpbots.bench.pace import Pace
from warpbots.bench.ray import Ray

if TYPE_CHECKING:
    from warpbots.bench.bench import Bench

__all__ = ["Conversation", "Send"]

_FRAME = 1.0 / 30.0  # shortest time between two pictures [s]
_REST = 0.002  # shortest pause in which messages are heard [s]
_UNANSWERED = 2  # largest number of pictures on their way to a browser
_FAULTS = (RuntimeError, ValueError, FloatingPointError)  # what a simulation raises about its motion and its inputs

Send = Callable[[dict, list[bytes]], None]


class Conversation:
    """Runs a simulation while browsers watch, sends them pictures, and does what their users ask for.

    A picture is sent only to browsers that have drawn the earlier ones, so that slow browsers skip pictures.
    """

    def __init__(self, bench: "Bench"):
        self._bench, self._pace = bench, Pace()
        self._viewers: dict[Any, _Viewer] = {}
        self._task: asyncio.Task | None = None

    def join(self, viewer: Any, send: Send) -> None:
        """Show the bench to a browser.

        Args:
            viewer: An object that identifies the browser.
            send: A function that sends a message and some buffers to it.
        """
        send({"type": "scene", **self._bench.header()}, [self._bench.drawing.geometry()])
        self._viewers[viewer] = _Viewer(send)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    def leave(self, viewer: Any) -> None:
        """Forget a browser that was closed; the simulation stands still when there is none left."""
        self._viewers.pop(viewer, None)

    def end(self) -> None:
        """Forget all browsers."""
        self._viewers.clear()

    def hear(self, viewer: Any, message: Mapping[str, Any]) -> None:
        """Do what the user of a browser asks for; a fault pauses the simulation and becomes a message.

        Args:
            viewer: The object that identifies the browser.
            message: Its message; ``type`` names the action.
        """
        if message["type"] == "drawn":
            if viewer in self._viewers:
                self._viewers[viewer].waiting -= 1
            return
        try:
            self._do(viewer, message)
        except (*_FAULTS, KeyError) as fault:
            self._bench.pause()
            self._bench.message = fault.args[0] if isinstance(fault, KeyError) else str(fault)

    def _do(self, viewer: Any, message: Mapping[str, Any]) -> None:
        bench, what = self._bench, message["type"]
        if what in ("play", "pause", "reset", "release", "record", "stop"):
            getattr(bench, what)()
        elif what == "step":
            bench.pause()
            bench.step()
        elif what == "seek":
            bench.seek(float(message["value"]))
        elif what == "speed":
            bench.speed = float(message["value"])
        elif what == "control":
            bench.set_control(int(message["channel"]), float(message["value"]))
        elif what == "factor":
            bench.set_factor(str(message["name"]), float(message["value"]))
        elif what == "gradient":
            bench.show_gradient(bool(message["stiffness"]))
        elif what in ("grab", "drag"):
            ray = Ray.of(message["origin"], message["direction"], message["forward"])
            if what == "drag":
                bench.drag(ray)
            elif not bench.grab(ray):
                self._viewers[viewer].send({"type": "missed"}, [])
        else:
            raise ValueError(f"bench: a browser asked for {what!r}, which is unknown")

    async def _run(self) -> None:
        """Simulate and send pictures until nobody watches."""
        bench = self._bench
        while self._viewers:
            begun = time.perf_counter()
            try:
                for _ in range(self._pace.due(bench.time, bench.speed if bench.playing else 0.0, bench.simulation.dt)):
                    bench.step()
                    if time.perf_counter() - begun > _FRAME:
                        break
                self._send_pictures()
            except _FAULTS as fault:
                bench.pause()
                bench.message = str(fault)
            await asyncio.sleep(max(_REST, begun + _FRAME - time.perf_counter()))

    def _send_pictures(self) -> None:
        ready = [viewer for viewer in list(self._viewers.values()) if viewer.waiting < _UNANSWERED]
        if not ready:
            return
        bench = self._bench
        with torch.no_grad():
            moment, curves = bench.moment(), bench.curves()
        frame = {
            "type": "frame",
            "time": bench.time,
            "playing": bench.playing,
            "ratio": self._pace.ratio,
            "speed": bench.speed,
            "recording": bench.recorded_time,
            "recorded": bench.recorded_span,
            "control": bench.shown_control.tolist(),
            "factors": bench.factors,
            "curves": curves,
            "message": bench.message,
            "pull": bench.pulled,
        }
        arrays = (moment.vertices, moment.colors, moment.position, moment.rotation, bench.arrows())
        buffers = [np.ascontiguousarray(array).tobytes() for array in arrays]
        for viewer in ready:
            viewer.waiting += 1
            viewer.send(frame, buffers)


@dataclasses.dataclass
class _Viewer:
    """A browser that watches.

    Attributes:
        send: Function that sends a message and some buffers to it.
        waiting: Number of pictures that it has not drawn yet.
    """

    send: Send
    waiting: int = 0
