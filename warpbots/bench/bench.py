"""A simulation that runs while one watches it, moves its sliders and pulls at its bodies."""

import asyncio
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from warpbots.bench.conversation import Conversation
from warpbots.bench.curves import Curve, Curves
from warpbots.bench.drag import Drag
from warpbots.bench.drawing import Drawing
from warpbots.bench.factors import ParameterFactors
from warpbots.bench.pull import Pull, held_at
from warpbots.bench.ray import Ray, first_hit
from warpbots.bench.recording import Recording, recorded
from warpbots.bench.sensitivity import Loss, improvements, stiffness_colors, travel
from warpbots.bench.server import served
from warpbots.bench.tool import tool_at
from warpbots.bench.widget import show
from warpbots.notebook_cells import in_notebook
from warpbots.observers.observer import forget
from warpbots.scene.field_types import checked
from warpbots.view.browser.scene import DrawnMoment
from warpbots.view.upright_view import upright

if TYPE_CHECKING:
    from PIL.Image import Image

    from warpbots.simulation import Simulation

__all__ = ["Bench"]

_HORIZON = 50  # control intervals that a gradient looks ahead
_ARROW = 0.12  # length of the longest arrow, relative to the size of the view


class Bench:
    """A live view of a simulation, with sliders, a mouse that pulls at bodies, curves, recordings and gradients.

    In a notebook the bench is shown if it is the last expression of a cell; ``bench.serve()`` shows it in the browser.
    The simulation runs between cells, in real time if the computer is fast enough. If it is not, the bench leaves out
    pictures, never control intervals, and shows the ratio of simulated time to real time.

    Attributes:
        simulation: The simulation.
        world: Index of the world that is shown; controls and parameters apply to all worlds.
        state: The current state.
        time: Time since the last reset [s].
        control: Control signals of the sliders, shape (channels,).
        playing: Whether the simulation runs.
        speed: Simulated time per real time that is wanted.
        message: The last message to the user; empty if there is none.
        recording: The last recorded motion; None if nothing was recorded.
        drawing: The shapes that a browser draws.
        conversation: The conversation with the browsers that show the bench.
        on_recorded: A function of a new recording that returns a message to the user, such as one that writes a file;
            None if nothing is to be done.
    """

    @checked
    def __init__(
        self,
        simulation: "Simulation[Any]",
        *,
        controller: Callable[..., torch.Tensor] | None = None,
        parameters: Sequence[str] | None = None,
        curves: Mapping[str, Curve] | None = None,
        loss: Loss | None = None,
        horizon: int = _HORIZON,
        state: Any = None,
        world: int = 0,
    ):
        """Prepare a bench; the simulation stands still until it is shown and played.

        Args:
            simulation: The simulation.
            controller: A function (state, time) -> control, which drives the channels until a slider is moved; None
                for the sliders alone.
            parameters: Names of the parameters that get a slider; None for up to four usual ones.
            curves: Functions of a state that return a number, by name; None for energies.
            loss: A function of a trajectory, whose gradient the bench shows; None for minus the distance travelled.
            horizon: Number of control intervals of this trajectory, which begins at the current state.
            state: The state in which the bench begins, and to which it is reset; None for the start of the scene.
            world: Index of the world that is shown.

        Raises:
            KeyError: The simulation has no such parameter.
            ValueError: `horizon` is below 1, there is no such world, or a parameter is zero everywhere.
        """
        if not 0 <= world < simulation.worlds:
            raise ValueError(f"bench: world must be from 0 to {simulation.worlds - 1}, got {world}")
        if horizon < 1:
            raise ValueError(f"bench: horizon must be at least 1, got {horizon}")
        self.simulation, self.world, self._start = simulation, world, state
        self._controller, self._loss, self._horizon = controller, loss or travel(simulation), horizon
        self._factors, self._curves = ParameterFactors(simulation, parameters), Curves(simulation, curves, world)
        self.state, self.time = self._beginning(), 0.0
        self.drawing, self.conversation = Drawing(simulation, self.state, world), Conversation(self)
        self.control, self._by_hand = np.zeros(simulation.channels), controller is None
        self._signal = torch.zeros(simulation.worlds, simulation.channels)  # of the last control interval
        self.playing, self.speed, self.message = False, 1.0, ""
        self.recording: Recording[Any] | None = None
        self.on_recorded: Callable[[Recording[Any]], str] | None = None
        self._at_end: list[Callable[[], None]] = []
        self._drag: Drag | None = None
        self._states: list[Any] | None = None  # of the recording that is made now
        self._signals: list[torch.Tensor] = []
        self._began = self._recorded_from = 0.0  # times at which recordings began, the one made now and the last [s]
        self._arrows: tuple[np.ndarray, np.ndarray] | None = None
        self._colors: np.ndarray | None = None

    def _beginning(self) -> Any:
        return self.simulation.state() if self._start is None else self._start

    def play(self) -> None:
        """Let the simulation run while somebody watches."""
        self.playing, self.message = True, ""

    def pause(self) -> None:
        """Stop the simulation; it can be continued."""
        self.playing = False

    @checked
    @torch.no_grad()
    def step(self, intervals: int = 1) -> None:
        """Simulate some control intervals.

        Args:
            intervals: Number of control intervals.

        Raises:
            SimulationError: The motion diverged or left the grid, or no world can go on.
        """
        self._arrows = self._colors = None
        for _ in range(intervals):
            parameters, loads = self._factors.parameters(), dict[str, torch.Tensor]()
            if self._drag is not None:
                loads = self._drag.loads(self.state, parameters)
                self._set_controls(self._drag.signals(self.state, parameters))
            signal = self._next_signal()
            self.state = self.simulation.step(self.state, signal, **(parameters | loads))
            self.time, self._signal = self.time + self.simulation.dt, signal
            if self._states is not None:
                self._states.append(self.state)
                self._signals.append(signal)

    @torch.no_grad()
    def _next_signal(self) -> torch.Tensor:
        """Control signals of the next control interval, shape (worlds, channels)."""
        given = self.control if self._by_hand else self._controller(self.state, self.time)
        given = torch.as_tensor(given, dtype=self._signal.dtype, device=self._signal.device).detach()
        return given.expand(self._signal.shape).clone()

    def reset(self) -> None:
        """Return to the beginning; sliders stay where they are, and a recording ends."""
        self.stop()
        self.release()
        self.state, self.time, self.message = self._beginning(), 0.0, ""
        self._signal, self._arrows, self._colors = torch.zeros_like(self._signal), None, None
        forget(self._controller)

    @checked
    def set_control(self, channel: int, value: float) -> None:
        """Move the slider of a channel; a controller then no longer drives any channel.

        Args:
            channel: Index of the channel.
            value: The signal, in [-1, 1].

        Raises:
            ValueError: There is no such channel, or `value` is out of its range.
        """
        if not 0 <= channel < len(self.control):
            raise ValueError(f"bench: channel must be from 0 to {len(self.control) - 1}, got {channel}")
        if not -1.0 <= value <= 1.0:
            raise ValueError(f"bench: a control signal must be from -1 to 1, got {value}")
        if not self._by_hand:
            self.control, self._by_hand = self.shown_control, True
        self.control[channel] = value

    def _set_controls(self, signals: Mapping[int, float]) -> None:
        for channel, value in signals.items():
            self.set_control(channel, value)

    @checked
    def set_factor(self, parameter: str, factor: float) -> None:
        """Multiply a parameter by a factor, from the next control interval on.

        Args:
            parameter: Name of a parameter that has a slider.
            factor: The factor of the value in the scene.

        Raises:
            KeyError: The bench has no slider for this parameter.
            ValueError: The parameter is out of its range, or steps would no longer be stable.
        """
        before = self._factors.set(parameter, factor)
        try:
            with torch.no_grad():  # a step on trial: the parameters decide how long a stable step is
                self.simulation.step(self.state, self._signal, **self._factors.parameters())
        except ValueError:
            self._factors.set(parameter, before)
            raise

    @property
    def factors(self) -> dict[str, float]:
        """ParameterFactors of the parameters that have a slider, by name."""
        return dict(self._factors.values)

    def grab(self, ray: Ray) -> bool:
        """Hold what is seen along a ray; `drag` then pulls at a body, or moves an obstacle by its drives.

        Returns:
            Whether there is a body, or an obstacle that can be dragged (`warpbots.bench.drives.tools_of`).
        """
        self.release()
        hit = first_hit(ray, self.drawing, self.moment(), len(self.simulation.scene.rigid))
        if hit is None:
            return False
        if hit.obstacle is not None:
            self._drag = tool_at(self.simulation, self.state, hit, self.world, **self._factors.parameters())
            return self._drag is not None
        held = held_at(self.simulation, self.state, hit, self.world)
        self._drag = Pull(hit.point, hit.point, held, self.drawing.size, self.simulation.dt)
        return True

    def drag(self, ray: Ray) -> None:
        """Pull the held point towards a ray, parallel to the screen."""
        if self._drag is not None:
            self._drag.follow(ray)

    def release(self) -> None:
        """Let go of what is held; an obstacle stops."""
        if self._drag is not None:
            self._set_controls(self._drag.released())
        self._drag = None

    @property
    def pulled(self) -> list[list[float]] | None:
        """The held point and the place to which it is pulled, in the frame of the browser [m]; None without a pull."""
        return None if self._drag is None else [self._drag.point.tolist(), self._drag.target.tolist()]

    def record(self) -> None:
        """Begin a recording at the current state."""
        self._states, self._signals, self.message, self._began = [self.state], [], "", self.time

    def stop(self) -> Recording[Any] | None:
        """End the recording.

        Returns:
            The recorded motion, also in the attribute `recording`; None if nothing was recorded. It is a trajectory:
            ``wb.view.animate("film.mp4", bench.recording)``, ``wb.usd.write("motion.usda", bench.recording)``.
        """
        states, self._states = self._states, None
        if not self._signals or states is None:
            return None
        self.recording = recorded(self.simulation, states, self._signals, self._factors.parameters())
        self._recorded_from = self._began
        self.message = f"{len(self._signals) * self.simulation.dt:.2f} s are in bench.recording"
        if self.on_recorded is not None:
            self.message = self.on_recorded(self.recording)
        return self.recording

    @checked
    def seek(self, time: float) -> None:
        """Pause, and return to a state of the last recording, from which the simulation then goes on.

        Args:
            time: Time since the start of the recording [s], between its states; the nearest state is taken.

        Raises:
            ValueError: Nothing was recorded, a recording is being made, or `time` is outside of the recording.
        """
        if self.recording is None or self._states is not None:
            what = "nothing was recorded; call record()" if self._states is None else "it is recording; call stop()"
            raise ValueError(f"bench: seek({time:g}) needs a recording, but {what} first")
        dt, steps = self.simulation.dt, self.recording.steps
        if not -0.5 * dt <= time <= (steps + 0.5) * dt:
            raise ValueError(f"bench: time must be from 0 to {steps * dt:g} s, the end of the recording, got {time:g}")
        self.pause()
        self.release()
        k = min(max(round(time / dt), 0), steps)
        self.state, self.time = (self.recording.start, *self.recording.moments)[k], self._recorded_from + k * dt
        self._signal, self._arrows, self._colors = self.recording.control[:, max(k - 1, 0)], None, None
        forget(self._controller)

    @property
    def recorded_span(self) -> list[float] | None:
        """Times since the last reset at which the last recording begins and ends [s]; None without a recording."""
        if self.recording is None or self._states is not None:
            return None
        return [self._recorded_from, self._recorded_from + self.recording.steps * self.simulation.dt]

    @property
    def recorded_time(self) -> float | None:
        """Length of the recording that is made now [s]; None if none is made."""
        return None if self._states is None else len(self._signals) * self.simulation.dt

    @torch.enable_grad()
    def show_gradient(self, stiffness: bool = False) -> float:
        """Pause, and show the gradient of the loss over the coming control intervals, under constant controls.

        Args:
            stiffness: Whether colours show d loss / d Young's modulus: blue where stiffer matter lowers the loss. If
                not, arrows show directions in which displaced matter, or a force on a rigid body, lowers the loss.

        Returns:
            The loss.

        Raises:
            ValueError: The scene has no Young's modulus.
            RuntimeError: The gradient cannot be computed.
        """
        self.pause()
        if stiffness and "youngs_modulus" not in self.simulation.parameters():
            raise ValueError("bench: the scene has no Young's modulus, so that nothing can be stiffer")
        self._arrows = self._colors = None
        controls = self._next_signal()[:, None].expand(-1, self._horizon, -1)
        given = self.simulation, self.state, self._loss, controls, self._factors.parameters(), self.world
        if stiffness:
            self._colors, loss = stiffness_colors(*given)
        else:
            *self._arrows, loss = improvements(*given)
        self.message = f"loss {loss:.4g} after {self._horizon * self.simulation.dt:.3g} s"
        return loss

    def arrows(self) -> np.ndarray:
        """Start and end of all arrows in the frame of the browser [m], shape (2 n, 3), float32."""
        if self._arrows is None:
            return np.zeros((0, 3), dtype=np.float32)
        points, directions = self._arrows
        ends = points + _ARROW * self.drawing.size * directions
        return np.stack([upright(points), upright(ends)], axis=1).reshape(-1, 3)

    def moment(self) -> DrawnMoment:
        """The places and colours of all bodies now."""
        return self.drawing.at(self.state, self.shown_control, self._colors, **self._factors.parameters())

    def curves(self) -> list[float]:
        """The numbers that are plotted, now."""
        return self._curves.at(self.state, self._factors.parameters())

    @property
    def shown_control(self) -> np.ndarray:
        """Control signals that a browser shows, shape (channels,): those of the sliders or of the controller."""
        return self.control.copy() if self._by_hand else self._signal[self.world].double().cpu().numpy()

    def header(self) -> dict[str, Any]:
        """What a browser needs to know before the first picture."""
        return self.drawing.header() | {
            "dt": self.simulation.dt,
            "channels": [{"name": a.name, "kind": type(a).__name__} for a in self.simulation.scene.actuators],
            "parameters": self._factors.header(),
            "curves": self._curves.names,
            "stiffness": "youngs_modulus" in self.simulation.parameters(),
        }

    def picture(self) -> "Image":
        """The current state as a picture, without sliders."""
        return self.drawing.picture(self.state, self.shown_control, self.time, **self._factors.parameters())

    def serve(self, port: int = 0, opened: Callable[[str], object] = webbrowser.open) -> None:
        """Show the bench in the browser until Ctrl-C or `close`, from a server that only this computer reaches.

        Args:
            port: Port of the server; 0 for a free one.
            opened: A function that gets the address, such as one that opens it in a browser.

        Raises:
            ImportError: tornado is not installed.
            OSError: The port is taken.
            RuntimeError: A notebook runs, in which the bench is shown without a server.
        """
        if in_notebook():
            raise RuntimeError("bench: in a notebook, make the bench the last expression of a cell instead")
        asyncio.run(served(self, port, opened))

    def close(self) -> None:
        """Stop the simulation, and leave all browsers; in a notebook, a picture remains."""
        self.pause()
        self.conversation.end()
        for leave_picture in self._at_end:
            leave_picture()
        self._at_end.clear()

    def at_end(self, leave_picture: Callable[[], None]) -> None:
        """Call a function when the bench is closed."""
        self._at_end.append(leave_picture)

    def _ipython_display_(self) -> None:
        """Show the bench below a cell; see `warpbots.bench.widget.show`."""
        show(self)

    def __repr__(self) -> str:
        return f"Bench of {self.simulation.scene.name!r} at {self.time:.2f} s"
