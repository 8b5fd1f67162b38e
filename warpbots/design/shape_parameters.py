"""The shape parameters of an assembly: the sizes of components that are free, and the sizes that change together."""

import dataclasses
import fnmatch
import itertools
from collections.abc import Sequence

import numpy as np
import torch

from warpbots.design.tree import Instance

__all__ = ["ShapeParameters", "shape_parameters"]


@dataclasses.dataclass(frozen=True, eq=False)
class ShapeParameters:
    """Sizes of all components as functions of a few scale factors.

    Two ports that join have the same section; therefore their widths have a common factor, and their heights have a
    common factor. If such a size is fixed in one of the two components, it is also fixed in the other component. The
    remaining sizes follow from the free parameters (Xu et al. 2021, section III-A).

    Attributes:
        names: Names of the factors.
        index: Index of the factor of each size, -1 for a constant size, shape (n_sizes,), int.
        nominal: Sizes with all factors at 1 [m], shape (n_sizes,).
        starts: Index of the first size of each instance, followed by the number of all sizes, shape (n_instances + 1,),
            int.
    """

    names: tuple[str, ...]
    index: torch.Tensor
    nominal: torch.Tensor
    starts: np.ndarray

    def sizes(self, factors: torch.Tensor) -> list[torch.Tensor]:
        """Sizes of each instance [m], each of shape (n,), in the order of `Component.sizes`.

        Raises:
            ValueError: The number of factors is not the number of names, or a factor is not positive.
        """
        if tuple(factors.shape) != (len(self.names),):
            raise ValueError(f"factors must have shape ({len(self.names)},), got {tuple(factors.shape)}")
        if not (factors > 0.0).all():
            at = int((~(factors > 0.0)).nonzero()[0])
            raise ValueError(f"the factor of {self.names[at]!r} must be positive, got {factors[at].item():g}")
        scale = torch.cat([factors.to(self.nominal), self.nominal.new_ones(1)])[self.index]
        return list((self.nominal * scale).split(np.diff(self.starts).tolist()))


def shape_parameters(instances: Sequence[Instance], constant: Sequence[str]) -> ShapeParameters:
    """The free parameters of joined components.

    Args:
        instances: The result of `instances_of`.
        constant: Patterns of the names of constant factors, in the notation of `fnmatch`.

    Raises:
        ValueError: A pattern matches no name.
    """
    starts = np.cumsum([0] + [len(i.component.sizes) for i in instances])
    sizes = [(n, size) for n, i in enumerate(instances) for size in i.component.sizes]
    number = {size: k for k, size in enumerate(sizes)}
    groups = _groups(len(sizes), [(number[a], number[b]) for a, b in _ties(instances)])
    free = [group for group in groups if not any(sizes[k][1] in instances[sizes[k][0]].component.fixed for k in group)]
    names = [_name(instances, [sizes[k] for k in group]) for group in free]
    for pattern in constant:
        if not fnmatch.filter(names, pattern):
            raise ValueError(f"Assembly: no parameter is called {pattern!r}; there are {', '.join(names)}")
    kept = [not any(fnmatch.fnmatchcase(name, pattern) for pattern in constant) for name in names]
    index = np.full(len(sizes), -1)
    for at, group in enumerate(group for group, keep in zip(free, kept, strict=True) if keep):
        index[group] = at
    nominal = [instances[n].component.sizes[size] for n, size in sizes]
    chosen = tuple(name for name, keep in zip(names, kept, strict=True) if keep)
    return ShapeParameters(chosen, torch.as_tensor(index), torch.tensor(nominal, dtype=torch.float64), starts)


_Size = tuple[int, str]
"""An instance and the name of one of its sizes."""


def _ties(instances: Sequence[Instance]) -> list[tuple[_Size, _Size]]:
    """Pairs of sizes that must have the same factor."""
    found: list[tuple[_Size, _Size]] = []
    for n, instance in enumerate(instances):
        found += [((n, a), (n, b)) for group in instance.component.tied for a, b in itertools.pairwise(group)]
        if instance.port is not None:
            own = instance.component.ports["in"]
            found.append(((instance.parent, instance.port.width), (n, own.width)))
            found.append(((instance.parent, instance.port.height), (n, own.height)))
    return found


def _groups(count: int, ties: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Groups of the numbers from 0 to `count` - 1 that `ties` connect, ordered by the first member of each group."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    pairs = np.array(ties, dtype=int).reshape(-1, 2).T
    graph = coo_array((np.ones(pairs.shape[1]), (pairs[0], pairs[1])), shape=(count, count))
    label = connected_components(graph, directed=False)[1]
    return [np.flatnonzero(label == k).tolist() for k in dict.fromkeys(label.tolist())]


def _name(instances: Sequence[Instance], sizes: Sequence[_Size]) -> str:
    """Name of a group of sizes, made from its hinge, its only component, or the two components that join."""
    owners = list(dict.fromkeys(n for n, _ in sizes))
    owners = [n for n in owners if instances[n].component.hinge is not None][:1] or owners
    own = [size for n, size in sizes if n == owners[0]]
    size = own[0] if len(own) == len(owners) == 1 else own[0].rpartition(".")[2]
    return "|".join(instances[n].name for n in owners) + f".{size}"
