"""Hands of the library, for several tests."""

from warpbots.design import Assembly, Node, chain, joint, knuckle, palm, phalanx, star_palm, tip

PARTS = {"palm": palm(), "knuckle": knuckle(), "joint": joint(), "phalanx": phalanx(), "tip": tip()}
SHORT = ("knuckle", "joint", "phalanx", "joint", "phalanx", "tip")


def of(*names: str) -> Node:
    return chain(*(PARTS[name] for name in names))


def finger() -> Assembly:
    """The finger of DiffHand."""
    root = of("palm", "knuckle", *3 * ("joint", "phalanx"), "tip")
    return Assembly(root, constant=("palm.*", "tip.length"))


def two_fingers() -> Assembly:
    """The hand of DiffHand."""
    return Assembly(Node(PARTS["palm"], {"out": of(*SHORT), "back": of(*SHORT)}))


def three_fingers() -> Assembly:
    return Assembly(Node(star_palm(3), {f"finger-{k}": of(*SHORT) for k in range(3)}))
