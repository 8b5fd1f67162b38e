"""The pace of a simulation: simulated time against real time."""

import time

__all__ = ["Pace"]

_LATE = 0.25  # delay after which the simulation no longer catches up [s]
_SPAN = 1.0  # time over which the ratio is measured [s]


class Pace:
    """Simulated time against real time.

    Attributes:
        ratio: Simulated time per real time over about the last second; None if it was not measured.
    """

    def __init__(self):
        self.ratio: float | None = None
        self._setting: tuple[float, float] = (0.0, 0.0)
        self._restart(0.0)

    def _restart(self, simulated: float) -> None:
        self._begun, self._from, self.ratio = time.perf_counter(), simulated, None
        self._marks = [(self._begun, simulated)]

    def due(self, simulated: float, speed: float, dt: float) -> int:
        """Number of control intervals by which the simulation is behind real time.

        Args:
            simulated: Simulated time [s]; if it went back, counting begins anew.
            speed: Simulated time per real time that is wanted; 0 while the simulation is paused.
            dt: Length of a control interval [s].
        """
        if self._setting[0] != speed or simulated < self._setting[1]:
            self._restart(simulated)
        self._setting = speed, simulated
        if speed == 0.0:
            return 0
        now = time.perf_counter()
        self._marks.append((now, simulated))
        while now - self._marks[1][0] >= _SPAN:  # the last one before the span stays: an interval may take longer
            del self._marks[0]
        then, before = self._marks[0]
        if now - then > _SPAN / 2.0:
            self.ratio = (simulated - before) / (now - then)
        behind = self._from + (now - self._begun) * speed - simulated
        if behind > max(_LATE * speed, 1.5 * dt):  # too late to be caught up
            self._begun, self._from = now, simulated
            return 1
        return max(0, int(behind / dt + 1e-9))
