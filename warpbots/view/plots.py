"""Plots the loss of an optimisation, and the control signals of a motion."""

import itertools
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from warpbots.actuation_laws.contraction import contraction
from warpbots.optimize import History
from warpbots.output_files import replacing
from warpbots.scene.field_types import checked
from warpbots.trajectory import Trajectory
from warpbots.view.figure_layout import refuse_format, refuse_no_axes
from warpbots.view.palette import CONTRACT, EXPAND, INK, QUIET

if TYPE_CHECKING:
    from matplotlib.axes import Axes


__all__ = ["controls", "loss_curve", "save_loss", "save_losses"]

_WIDTH, _HEIGHT = 6.4, 2.8  # size of a new figure [inch]
_LINES = 6  # largest number of curves in one plot; more channels are drawn as bands of colour
_CYCLE = ("#3b6ea8", "#d0653a", "#5a9e6f", "#8a62a8", "#c2a13c", "#5f6b76")
_DECADES = 2.0  # range of losses above which the axis is logarithmic


@checked
def loss_curve(history: "History", ax: "Axes | None" = None) -> "Axes":
    """Plot the loss against the iteration.

    The loss axis is logarithmic if all losses are positive and span more than two decades.

    Args:
        history: A history, such as the result of `warpbots.fit`.
        ax: Axes to draw on; None for a new figure.

    Returns:
        The axes.

    Raises:
        ValueError: The history is empty.
    """
    best, loss, iteration = history.best, np.asarray(history.loss), history.iteration
    ax = _axes(ax, "iteration", "loss")
    ax.plot(iteration, loss, color=_CYCLE[0], lw=1.6, marker="o", ms=3.0 if len(loss) <= 60 else 0.0)
    if loss.min() > 0.0 and loss.max() > 10.0**_DECADES * loss.min():
        ax.set_yscale("log")
    ax.plot(iteration[best], loss[best], "o", ms=6.0, mfc="none", mec=INK, mew=1.1)
    ax.annotate(
        f"{loss[best]:.4g}".replace("-", "\u2212"), (iteration[best], loss[best]), xytext=(0.0, -8.0),
        textcoords="offset points", ha="center", va="top", color=INK, fontsize=8,
    )  # fmt: skip
    ax.margins(y=0.16)  # room for the number
    return ax


@checked
def save_loss(path: str | os.PathLike, history: "History") -> Path:
    """Write the plot of `loss_curve` to a file.

    Args:
        path: The file; its ending determines the format (``.png``, ``.pdf``, ``.svg``).
        history: A history, such as the result of `warpbots.fit`.

    Returns:
        `path`.

    Raises:
        ValueError: The history is empty, or the format is unknown.
        OSError: The file cannot be written; a file that was there before is unchanged.
    """
    refuse_format(path, "save_loss")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, _HEIGHT), dpi=150, layout="constrained")
    loss_curve(history, figure.add_subplot())
    with replacing(path) as (temporary,):
        figure.savefig(temporary)
    return Path(path)


@checked
def save_losses(
    path: str | os.PathLike,
    runs: Mapping[str, Sequence[np.ndarray]],
    quantity: str = "loss",
    seconds: Mapping[str, float] | None = None,
    logarithmic: bool = False,
) -> Path:
    """Write a plot of the losses of several groups of runs to a file, with one curve for each group.

    A curve is the mean over the runs of a group, with its 90 % confidence interval by Student's t distribution.

    Args:
        path: The file; its ending determines the format (``.png``, ``.pdf``, ``.svg``).
        runs: The runs of each group, by the label of the group; each run is the array of the losses of all iterations,
            shape (n,). A curve ends with the shortest run of the group.
        quantity: Label of the vertical axis.
        seconds: Mean time of an iteration of each group [s], by the label of the group, for a second plot over time;
            None for iterations alone.
        logarithmic: Whether the vertical axis is logarithmic.

    Returns:
        `path`.

    Raises:
        ValueError: There are no runs, a group has no time, a time or a loss on a logarithmic axis is not positive, or
            the format is unknown.
        OSError: The file cannot be written; a file that was there before is unchanged.
    """
    refuse_format(path, "save_losses")
    from matplotlib.figure import Figure

    if not runs:
        raise ValueError("save_losses: there are no runs to draw")
    if seconds is not None and not all(seconds.get(label, 0.0) > 0.0 for label in runs):
        raise ValueError(f"save_losses: seconds must have a positive time for each of {[*runs]}, got {dict(seconds)}")
    if logarithmic and not all(np.min(loss) > 0.0 for losses in runs.values() for loss in losses):
        raise ValueError("save_losses: a logarithmic axis needs positive losses; leave logarithmic out")
    plots = {"iteration": dict.fromkeys(runs, 1.0)} | ({} if seconds is None else {"time [s]": seconds})
    figure = Figure(figsize=(_WIDTH + 0.5 * _WIDTH * (len(plots) - 1), _HEIGHT), dpi=150, layout="constrained")
    axes = figure.subplots(1, len(plots), sharey=True, squeeze=False)[0]
    for ax, (unit, apart) in zip(axes, plots.items(), strict=True):
        _axes(ax, unit, quantity if ax is axes[0] else "")
        for (label, losses), color in zip(runs.items(), itertools.cycle(_CYCLE)):
            _mean(ax, losses, apart[label], color, label)
        if logarithmic:
            ax.set_yscale("log")
    if len(plots) == 1:
        axes[0].legend(loc="best", frameon=False, fontsize=8)
    else:
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False, fontsize=8)
    with replacing(path) as (temporary,):
        figure.savefig(temporary)
    return Path(path)


def _mean(ax: "Axes", losses: Sequence[np.ndarray], apart: float, color: str, label: str) -> None:
    """Plot the mean of runs and its 90 % confidence interval, with iterations `apart` from each other."""
    from scipy.stats import t

    table = np.stack([loss[: min(map(len, losses))] for loss in losses])
    count, at, mean = len(table), apart * np.arange(table.shape[1]), table.mean(axis=0)
    ax.plot(at, mean, color=color, lw=1.6, label=f"{label} ({count} runs)" if count > 1 else label)
    if count > 1:
        half = t.ppf(0.95, count - 1) * table.std(axis=0, ddof=1) / math.sqrt(count)
        ax.fill_between(at, mean - half, mean + half, color=color, alpha=0.2, lw=0.0)


@checked
def controls(trajectory: "Trajectory[Any]", ax: "Axes | None" = None, *, world: int = 0) -> "Axes":
    """Plot control signals over time: a curve for each actuator, or coloured bands for more than six actuators.

    Bands are red for contraction and blue for expansion, as in pictures.

    Args:
        trajectory: The motion.
        ax: Axes to draw on; None for a new figure.
        world: Index of the world.

    Returns:
        The axes.

    Raises:
        ValueError: The scene has no actuators, or there is no such world.
    """
    actuators, worlds = trajectory.scene.actuators, trajectory.control.shape[0]
    if not actuators:
        raise ValueError(f"controls: scene {trajectory.scene.name!r} has no actuators")
    if not 0 <= world < worlds:
        raise ValueError(f"controls: world must be in 0 to {worlds - 1}, got {world}")
    signal = trajectory.control[world].detach().cpu().numpy()
    edges = trajectory.control_interval * np.arange(trajectory.steps + 1)
    if len(actuators) > _LINES:
        pull = np.array([[contraction(a, u) for a, u in zip(actuators, row, strict=True)] for row in signal.tolist()])
        return _bands(_axes(ax, "time [s]", "", height=0.9 + 0.2 * len(actuators)), edges, pull, actuators)
    ax = _axes(ax, "time [s]", "control")
    for k, actuator in enumerate(actuators):
        ax.stairs(signal[:, k], edges, baseline=None, color=_CYCLE[k], lw=1.5, label=actuator.name)
    ax.set(xlim=(0.0, edges[-1]), ylim=(-1.08, 1.08))
    ax.legend(
        loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8, labelcolor=INK, handlelength=1.2
    )  # fmt: skip
    return ax


def _bands(ax: "Axes", edges: np.ndarray, pull: np.ndarray, actuators: tuple) -> "Axes":
    from matplotlib.colors import LinearSegmentedColormap

    colors = LinearSegmentedColormap.from_list("contraction", [tuple(EXPAND), (0.97, 0.97, 0.97), tuple(CONTRACT)])
    shown = ax.pcolormesh(edges, np.arange(len(actuators) + 1), pull.T, cmap=colors, vmin=-1.0, vmax=1.0)
    bar = ax.figure.colorbar(shown, ax=ax, pad=0.02, aspect=24, ticks=[-1.0, 0.0, 1.0])
    bar.ax.set_yticklabels(["expands", "0", "contracts"])
    bar.outline.set_visible(False)
    bar.ax.tick_params(color=QUIET, labelcolor=QUIET, labelsize=8, width=0.7, length=3)
    ax.set_yticks(np.arange(len(actuators)) + 0.5, [a.name for a in actuators])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.invert_yaxis()
    return ax


def _axes(ax: "Axes | None", x: str, y: str, height: float = _HEIGHT) -> "Axes":
    """The axes `ax`, or the axes of a new figure if `ax` is None, with labels and in an unobtrusive style."""
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(_WIDTH, height), layout="constrained")
    refuse_no_axes(ax, "a plot")
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set(color=QUIET, linewidth=0.7)
    ax.tick_params(color=QUIET, labelcolor=QUIET, labelsize=8, width=0.7, length=3)
    ax.set_xlabel(x, color=QUIET, fontsize=8)
    ax.set_ylabel(y, color=QUIET, fontsize=8)
    return ax
