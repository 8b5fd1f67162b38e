"""Trees of components: each component joins its parent component at a port."""

import dataclasses
from collections import Counter
from collections.abc import Mapping

import numpy as np

from warpbots.design.component import Component, Port
from warpbots.scene.field_types import checked, conform

__all__ = ["Instance", "Node", "chain", "instances_of"]

_FIT = 1e-9
"""Largest difference of the sections of ports that join [m]."""


@dataclasses.dataclass(frozen=True, eq=False)
class Node:
    """A component in a robot, and its children.

    Attributes:
        component: The component; several nodes may share the same component object.
        children: Children of the node, by the name of the port of `component` at which they join.
        name: Name of the node, unique in the robot; None for the name of the component, with a number appended if
            several nodes have the same name.
    """

    component: Component
    children: Mapping[str, "Node"] = dataclasses.field(default_factory=dict)
    name: str | None = None

    def __post_init__(self):
        conform(self)


@checked
def chain(*components: "Component | Node") -> Node:
    """A chain of components: each component joins the port "out" of the previous component.

    Args:
        components: The components from the first to the last. Each may be a `Node` with children at ports other than
            "out"; the last one may also have a child at "out".

    Raises:
        ValueError: A node before the last node already has a child at its port "out".
    """
    if not components:
        raise ValueError("chain: components must be at least one, got none")
    *before, last = components
    node = last if isinstance(last, Node) else Node(last)
    for component in reversed(before):
        parent = component if isinstance(component, Node) else Node(component)
        if "out" in parent.children:
            raise ValueError(f"chain: {parent.component.name!r} has a child at its port 'out' already")
        node = dataclasses.replace(parent, children={**parent.children, "out": node})
    return node


@dataclasses.dataclass(frozen=True, eq=False)
class Instance:
    """A component at a node of a tree.

    Attributes:
        name: Unique name of the instance.
        component: The component.
        parent: Index of the parent instance, which this instance joins; -1 for the root.
        port: Port of the parent component at which this instance joins; None for the root.
    """

    name: str
    component: Component
    parent: int
    port: Port | None


def instances_of(root: Node) -> tuple[Instance, ...]:
    """The components of a tree, parents before children, one branch after the other.

    Raises:
        ValueError: Two instances have the same name, a child is at the port "in", or the sections of two ports do not
            fit.
        KeyError: A child is at a port that its parent component does not have.
    """
    found: list[tuple[Node, int, str | None]] = []

    def visit(node: Node, parent: int, port: str | None) -> None:
        number = len(found)
        found.append((node, parent, port))
        for name, child in node.children.items():
            _refuse_misfit(node.component, name, child.component)
            visit(child, number, name)

    visit(root, -1, None)
    several = Counter(node.component.name for node, _, _ in found if node.name is None)
    numbers: Counter[str] = Counter()
    instances = []
    for node, parent, port in found:
        name = node.name
        if name is None:
            own = node.component.name
            name = f"{own}-{numbers[own]}" if several[own] > 1 else own
            numbers[own] += 1
        of_parent = None if port is None else found[parent][0].component.ports[port]
        instances.append(Instance(name, node.component, parent, of_parent))
    twice = [name for name, count in Counter(i.name for i in instances).items() if count > 1]
    if twice:
        raise ValueError(f"Assembly: {twice[0]!r} is the name of several components; give each its own")
    return tuple(instances)


def _refuse_misfit(parent: Component, port: str, child: Component) -> None:
    if port == "in":
        raise ValueError(f"Component {parent.name!r}: no child can join its port 'in', where it joins its own parent")
    here, there = parent.section(port), child.section("in")
    if not np.allclose(here, there, rtol=0.0, atol=_FIT):
        raise ValueError(
            f"Components {parent.name!r} and {child.name!r} do not fit: port {port!r} of the former is "
            f"{here[0]:.4g} x {here[1]:.4g} m, port 'in' of the latter {there[0]:.4g} x {there[1]:.4g} m"
        )
