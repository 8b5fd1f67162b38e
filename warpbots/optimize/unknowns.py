"""Unknowns of an optimisation: the tensors to optimise, their bounds and their scales."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import torch

from warpbots.scene.field_types import shown

__all__ = ["Unknown", "UnknownLike", "Unknowns", "named_unknowns"]


@dataclasses.dataclass(frozen=True, eq=False)
class Unknown:
    """A tensor to optimise, with bounds and a scale.

    Methods work with the tensor divided by its scale, so that one step size suits a stiffness of 10⁵ Pa and a control
    of 1. With a torch optimiser, the tensor is projected onto its bounds after each step; the alternative is
    `warpbots.Bounded`, a reparametrisation.

    Attributes:
        tensor: A leaf tensor that requires a gradient; it is changed in place.
        lower: Smallest allowed value, in the units of `tensor`: a number, or a tensor with the shape of `tensor`; None
            for no bound.
        upper: Largest allowed value, in the same form as `lower`.
        scale: Typical change of the values, in the units of `tensor`: a positive number, or a tensor of positive
            numbers with the shape of `tensor`.
    """

    tensor: torch.Tensor
    lower: float | torch.Tensor | None = None
    upper: float | torch.Tensor | None = None
    scale: float | torch.Tensor = 1.0


UnknownLike: TypeAlias = torch.Tensor | torch.nn.Module | Unknown
"""Anything that can be optimised. A module stands for all its parameters that require a gradient."""


class Unknowns:
    """All unknowns of a problem, as tensors and as one vector of all values divided by their scales.

    Attributes:
        names: Name of each tensor, for messages.
        tensors: The tensors of the user.
        leaves: The tensors that a torch optimiser changes, one for each tensor of the user. If an unknown has a scale
            or bounds, its leaf is a separate tensor with the values divided by the scale; otherwise the leaf is the
            tensor of the user itself.
    """

    def __init__(self, unknowns: UnknownLike | Iterable[UnknownLike] | Mapping[str, UnknownLike]):
        """Collect the tensors to optimise and check them.

        Raises:
            ValueError: There is nothing to optimise; a tensor is empty, is computed from other tensors, or requires no
                gradient; a scale is not positive; a lower bound is above an upper bound; a tensor has values outside
                its bounds; or two unknowns are the same tensor.
            TypeError: An entry is not a tensor, module or `Unknown`, or has complex numbers.
        """
        entries = list(named_unknowns(unknowns))
        if not entries:
            raise ValueError("minimize: needs at least 1 unknown that requires a gradient, got 0")
        self.names = [name for name, _ in entries]
        self.tensors = [entry.tensor for _, entry in entries]
        self._scales, self._lower, self._upper = [], [], []
        for name, entry in entries:
            _check_tensor(name, entry.tensor)
            self._scales.append(_like(name, "scale", entry.scale, entry.tensor))
            self._lower.append(
                _like(name, "lower bound", -torch.inf if entry.lower is None else entry.lower, entry.tensor)
            )
            self._upper.append(
                _like(name, "upper bound", torch.inf if entry.upper is None else entry.upper, entry.tensor)
            )
            _check_range(name, entry.tensor.detach(), self._lower[-1], self._upper[-1], self._scales[-1])
        _check_apart(entries)
        self._same = [  # leaf and tensor
            bool(((s == 1.0) & (lo == -torch.inf) & (up == torch.inf)).all())
            for s, lo, up in zip(self._scales, self._lower, self._upper, strict=True)
        ]
        self.leaves = [
            t if same else (t.detach() / s).requires_grad_()
            for t, s, same in zip(self.tensors, self._scales, self._same, strict=True)
        ]

    @property
    def bounded(self) -> bool:
        """Whether any value has a bound."""
        return bool(np.isfinite(np.concatenate(self.bounds())).any())

    @property
    def boxed(self) -> bool:
        """Whether every value has two finite bounds."""
        return bool(np.isfinite(np.concatenate(self.bounds())).all())

    def about(self) -> list[dict[str, Any]]:
        """Name, bounds and scale of each tensor."""
        columns = zip(self.names, self._lower, self._upper, self._scales, strict=True)
        return [{"name": n, "lower bound": lo, "upper bound": up, "scale": s} for n, lo, up, s in columns]

    def differences(self, there: Iterable[Mapping[str, Any]]) -> list[str]:
        """Text for each difference in names, bounds and scales between these unknowns and others.

        Args:
            there: Result of `about` for the other unknowns, which must have the same shapes.
        """
        faults = []
        for was, now in zip(there, self.about(), strict=True):
            if was["name"] != now["name"]:
                faults.append(f"an unknown was named {was['name']!r} there and is {now['name']!r} here")
            for what in ("lower bound", "upper bound", "scale"):
                old, new = was[what].reshape(-1), now[what].reshape(-1).cpu()
                if not torch.equal(old, new):
                    i = (old != new).nonzero()[0, 0]
                    entry = f" in entry {i}" if len(old) > 1 else ""
                    faults.append(
                        f"unknown {now['name']!r}: its {what} was {old[i].item():g} there and is {new[i].item():g} here"
                        f"{entry}"
                    )
        return faults

    @torch.no_grad()
    def assign(self, values: Iterable[torch.Tensor]) -> None:
        """Set the tensors to `values`."""
        for tensor, value in zip(self.tensors, values, strict=True):
            tensor.copy_(value)

    @torch.no_grad()
    def from_leaves(self) -> None:
        """Set the tensors to the leaves times their scales, clipped to the bounds."""
        for i, (tensor, leaf) in enumerate(zip(self.tensors, self.leaves, strict=True)):
            if not self._same[i]:
                tensor.copy_(leaf * self._scales[i])
                tensor.clamp_(self._lower[i], self._upper[i])

    @torch.no_grad()
    def to_leaves(self) -> None:
        """Set the leaves to the tensors divided by their scales."""
        for i, (tensor, leaf) in enumerate(zip(self.tensors, self.leaves, strict=True)):
            if not self._same[i]:
                leaf.copy_(tensor / self._scales[i])

    def gradients_to_leaves(self) -> None:
        """Move the gradients from the tensors to the leaves, multiplied by the scales."""
        for i, (tensor, leaf) in enumerate(zip(self.tensors, self.leaves, strict=True)):
            if not self._same[i]:
                leaf.grad = None if tensor.grad is None else tensor.grad * self._scales[i]
                tensor.grad = None

    @torch.no_grad()
    def shift(self, directions: Iterable[torch.Tensor], factor: float) -> None:
        """Add to each tensor `factor` times its direction times its scale, and clip the tensor to its bounds."""
        for i, (tensor, direction) in enumerate(zip(self.tensors, directions, strict=True)):
            tensor.add_(factor * self._scales[i] * direction)
            if not self._same[i]:
                tensor.clamp_(self._lower[i], self._upper[i])

    @torch.no_grad()
    def add_gradient(self, directions: Iterable[torch.Tensor], factor: float) -> None:
        """Add to the gradient of each tensor `factor` times its direction, divided by its scale."""
        for tensor, direction, scale in zip(self.tensors, directions, self._scales, strict=True):
            change = factor * direction / scale
            tensor.grad = change if tensor.grad is None else tensor.grad + change

    def vector(self) -> np.ndarray:
        """Values of all unknowns divided by their scales, shape (n,), float64."""
        return self._flat(self.tensors)

    @torch.no_grad()
    def set_vector(self, vector: np.ndarray) -> None:
        """Set the tensors to `vector` times the scales, clipped to the bounds.

        Args:
            vector: Values of all unknowns divided by their scales, shape (n,).
        """
        parts = torch.as_tensor(vector, dtype=torch.float64, device="cpu").split([t.numel() for t in self.tensors])
        for i, (tensor, part) in enumerate(zip(self.tensors, parts, strict=True)):
            tensor.copy_(part.view(tensor.shape) * self._scales[i].double().cpu())
            tensor.clamp_(self._lower[i], self._upper[i])

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds divided by the scales, each of shape (n,); infinite for values without a bound."""
        return self._flat(self._lower), self._flat(self._upper)

    def random_vector(self, center: np.ndarray, deviation: float, rng: np.random.Generator) -> np.ndarray:
        """Draw random values of the unknowns, divided by their scales, shape (n,).

        Values with two finite bounds are uniformly distributed between these bounds; all other values are normally
        distributed.

        Args:
            center: Mean of the normal distribution, divided by the scales, shape (n,).
            deviation: Standard deviation of the normal distribution, in units of the scales.
            rng: Random generator.
        """
        lower, upper = self.bounds()
        values = np.clip(center + deviation * rng.standard_normal(len(lower)), lower, upper)
        between = np.isfinite(lower) & np.isfinite(upper)
        values[between] = rng.uniform(lower[between], upper[between])
        return values

    @torch.no_grad()
    def clip_leaf_gradients(self, largest: float, rows: int = 1) -> float:
        """Reduce the gradients of the leaves by a common factor so that their norm is at most `largest`.

        Args:
            largest: Largest allowed norm.
            rows: If 1, all gradients together have one norm. If above 1, it is the length of the first axis of all
                unknowns, and the gradients of each row have a norm, over all unknowns, and a factor of their own.

        Returns:
            The norm before the reduction; with several rows, the largest norm of a row.
        """
        if rows == 1:
            return torch.nn.utils.clip_grad_norm_(self.leaves, largest).item()
        gradients = [leaf.grad for leaf in self.leaves if leaf.grad is not None]
        norm = torch.cat([g.reshape(rows, -1) for g in gradients], dim=1).norm(dim=1)
        factor = torch.where(norm > largest, largest / norm, torch.ones_like(norm))
        for gradient in gradients:
            gradient.mul_(factor.view(rows, *(1,) * (gradient.dim() - 1)))
        return norm.max().item()

    def scales(self) -> np.ndarray:
        """The scale of each number of the unknowns, shape (n,)."""
        return torch.cat([s.double().reshape(-1).cpu() for s in self._scales]).numpy()

    def number_names(self) -> list[str]:
        """A name for each number: the name of its unknown, with indices if the unknown has several numbers."""
        return [
            f"{name}[{', '.join(map(str, index))}]" if index else name
            for name, tensor in zip(self.names, self.tensors, strict=True)
            for index in np.ndindex(tuple(tensor.shape))
        ]

    def flat_gradient(self, gradients: Iterable[torch.Tensor | None]) -> np.ndarray:
        """Convert gradients with respect to the tensors to the gradient with respect to `vector`, shape (n,)."""
        return np.concatenate(
            [
                np.zeros(t.numel()) if g is None else (g.double() * s.double()).reshape(-1).cpu().numpy()
                for t, g, s in zip(self.tensors, gradients, self._scales, strict=True)
            ]
        )

    def _flat(self, tensors: Iterable[torch.Tensor]) -> np.ndarray:
        parts = [
            (t.detach().double() / s.double()).reshape(-1).cpu() for t, s in zip(tensors, self._scales, strict=True)
        ]
        return torch.cat(parts).numpy()


def named_unknowns(
    unknowns: UnknownLike | Iterable[UnknownLike] | Mapping[str, UnknownLike],
) -> Iterator[tuple[str, Unknown]]:
    """Yield the name of each tensor to optimise, and the tensor as an `Unknown`."""
    if isinstance(unknowns, torch.Tensor | torch.nn.Module | Unknown):
        unknowns = [unknowns]
    if not isinstance(unknowns, Iterable):
        raise TypeError(
            f"unknowns must be a tensor, a torch module, a warpbots.Unknown, several of them, or several by name, got "
            f"{shown(unknowns)}"
        )
    named = unknowns.items() if isinstance(unknowns, Mapping) else ((str(i), u) for i, u in enumerate(unknowns))
    for name, unknown in named:
        if isinstance(unknown, torch.nn.Module):
            yield from ((f"{name}.{n}", Unknown(p)) for n, p in unknown.named_parameters() if p.requires_grad)
        elif isinstance(unknown, torch.Tensor):
            yield name, Unknown(unknown)
        elif isinstance(unknown, Unknown):
            yield name, unknown
        else:
            raise TypeError(
                f"unknown {name!r}: must be a tensor, a torch module or a warpbots.Unknown, got "
                f"{type(unknown).__name__}"
            )


def _check_tensor(name: str, tensor: torch.Tensor) -> None:
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"unknown {name!r}: its tensor must be a torch tensor, got {shown(tensor)}")
    if not tensor.is_leaf:
        raise ValueError(f"unknown {name!r} is computed from other tensors; give those instead, or detach() it")
    if not tensor.requires_grad:
        raise ValueError(f"unknown {name!r} requires no gradient; call requires_grad_() on it, or leave it out")
    if not tensor.is_floating_point():
        raise TypeError(f"unknown {name!r}: its tensor must be of real numbers, such as float64, got {tensor.dtype}")
    if not tensor.numel():
        raise ValueError(f"unknown {name!r}: its tensor must have at least 1 number, got {tuple(tensor.shape)}")


def _check_apart(entries: list[tuple[str, Unknown]]) -> None:
    """Raise if two unknowns share their memory."""
    first: dict[tuple[torch.device, int], str] = {}
    for name, entry in entries:
        place = entry.tensor.device, entry.tensor.data_ptr()
        if (other := first.setdefault(place, name)) != name:
            raise ValueError(
                f"unknowns {other!r} and {name!r} are one tensor of shape {tuple(entry.tensor.shape)}, so that each "
                f"would undo the steps and the bounds of the other; name it once"
            )


def _like(name: str, what: str, value: float | torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """Convert a bound or scale to a tensor with the shape of `tensor`; `name` and `what` are words for messages."""
    try:
        value = torch.as_tensor(value, dtype=tensor.dtype, device=tensor.device).detach()
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"unknown {name!r}: its {what} must be a number or a tensor, got {shown(value)}") from None
    if value.isnan().any():
        raise ValueError(f"unknown {name!r}: its {what} must be a number, got nan")
    try:
        return value.expand(tensor.shape)
    except RuntimeError:
        raise ValueError(
            f"unknown {name!r}: its {what} must be a number or have the shape {tuple(tensor.shape)} of the tensor, got "
            f"{tuple(value.shape)}"
        ) from None


def _check_range(name: str, value: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor, scale: torch.Tensor) -> None:
    if not ((scale > 0) & scale.isfinite()).all():
        raise ValueError(f"unknown {name!r}: its scale must be positive and finite, got {scale.min().item():g}")
    if not (lower <= upper).all():
        worst = (~(lower <= upper)).reshape(-1).nonzero()[0, 0]
        raise ValueError(
            f"unknown {name!r}: its lower bound {lower.reshape(-1)[worst].item():g} is above the upper bound "
            f"{upper.reshape(-1)[worst].item():g}; exchange them"
        )
    outside = ~((value >= lower) & (value <= upper))
    if outside.any():
        worst = outside.reshape(-1).nonzero()[0, 0]
        raise ValueError(
            f"unknown {name!r} starts at {value.reshape(-1)[worst].item():g}, outside its bounds "
            f"{lower.reshape(-1)[worst].item():g} to {upper.reshape(-1)[worst].item():g}; start inside"
        )
