"""Protocols for loggers of other libraries."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

__all__ = ["Logger", "RunLogger", "ScalarWriter", "loggers_of", "write"]


@runtime_checkable
class ScalarWriter(Protocol):
    """A logger with the interface of TensorBoard, such as `torch.utils.tensorboard.SummaryWriter`."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int, /) -> Any:
        """Record one value."""


@runtime_checkable
class RunLogger(Protocol):
    """A logger with the interface of Weights & Biases, such as the result of ``wandb.init``."""

    def log(self, data: dict[str, Any], /, step: int) -> Any:
        """Record several values, given by name."""


Logger: TypeAlias = ScalarWriter | RunLogger
"""Any object with a method ``add_scalar`` or ``log``."""


def loggers_of(loggers: Logger | Sequence[Logger] | None) -> list[Logger]:
    """Return a list of loggers from `loggers`, which may be one logger, a sequence of loggers, or None.

    Raises:
        TypeError: A logger has neither ``add_scalar`` nor ``log``.
    """
    several = [] if loggers is None else list(loggers) if isinstance(loggers, list | tuple) else [loggers]
    for logger in several:
        if not isinstance(logger, ScalarWriter | RunLogger):
            raise TypeError(f"a logger needs a method add_scalar or log, {type(logger).__name__} has neither")
    return several


def write(loggers: Sequence[Logger], values: Mapping[str, float], iteration: int) -> None:
    """Pass the values of an iteration to the loggers."""
    for logger in loggers:
        if isinstance(logger, ScalarWriter):
            for name, value in values.items():
                logger.add_scalar(name, value, iteration)
        else:
            logger.log(dict(values), step=iteration)
