"""DiffHand figure 5 and table III: random designs of both hands, and the numbers of parameters of every task.

    python benchmarks/papers/diffhand_designs.py [--seed N] [--designs N]

A design is drawn uniformly in the logarithm of its scale factors, within the bounds of Flip Box and Assemble. A design
is sound if the mesh of every part is closed, has a positive volume and no two faces that cross, if parts of the same
link meet to a tenth of a millimetre, and if the axis of every joint passes through the link that it carries. psi_p are
the parameters of the simulation that depend on the design. Writes ``diffhand_designs.png`` beside this file.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[0]))

from diffhand_grasp import fingers, moved, parameters
from diffhand_gripper import Gripper
from diffhand_hands import DOWN, finger, two_fingers
from diffhand_tasks import TASKS
from fast import figures, sized

import warpbots as wb
from warpbots.contact import signed_distance
from warpbots.design import Assembly
from warpbots.meshing.self_intersection import crossings

HANDS = {"finger": (finger, 3.0), "two fingers": (two_fingers, 3.0)}
"""Hands, and the largest scale factors of their tasks."""
PRINTED = {
    "reach": (120, 9, 376), "flip": (180, 9, 1478), "rotate": (240, 9, 1478), "assemble": (800, 17, 1226),
    "gripper": (0, 396, 9228),
}  # fmt: skip
"""Numbers of controls, of design numbers and of parameters of the simulation in table III of the paper."""
ROWS, COLUMNS = sized((5, 2), (1, 2))
"""Designs of each hand in the figure."""


def drawn(hand: Assembly, largest: float, rng: np.random.Generator) -> torch.Tensor:
    """Random scale factors of a hand."""
    upper = np.array([6.0 if name == "palm.length" else largest for name in hand.names])
    return torch.as_tensor(np.exp(rng.uniform(np.log(0.5), np.log(upper))))


def scene(hand: Assembly, factors: torch.Tensor) -> wb.Scene:
    """The hand without anything else."""
    bodies = hand.bodies(factors, rotation=DOWN, points=0, color=(0.93, 0.55, 0.25))
    fixed = wb.Joint("base", "fixed", None, bodies[0].name)
    return wb.Scene(bodies, joints=[fixed, *hand.joints(factors, rotation=DOWN, limits=False)])


def parts_of(body: wb.RigidBody) -> tuple[wb.shapes.TriangleMesh, ...]:
    """The meshes of a link, each of which touches the one before it."""
    return body.shape.shapes if isinstance(body.shape, wb.shapes.Union) else (body.shape,)


def sound(made: wb.Scene) -> bool:
    """Whether the parts of a hand are closed, do not cross themselves, and meet, within links and at the joints."""
    import trimesh

    for body in made.rigid:
        parts = parts_of(body)
        for part in parts:
            mesh = trimesh.Trimesh(part.vertices, part.faces, process=False)
            if not mesh.is_volume or len(crossings(part.vertices, part.faces)):
                return False
        for number, part in enumerate(parts[1:], 1):
            if min(signed_distance(other, part.vertices).min() for other in parts[:number]) > 1e-4:
                return False
    links = {body.name: body for body in made.rigid}
    for joint in made.joints[1:]:
        link = links[joint.child]
        place = (np.array(joint.position) - np.array(link.position)) @ np.array(link.rotation)
        if signed_distance(link.shape, place[None])[0] > 0.0:
            return False
    return True


def draw(hands: dict[str, list[wb.Scene]]) -> None:
    """Draw the designs of each hand below one another at the same scale, obliquely from above."""
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 7.0), dpi=110, layout="constrained")
    right, up = np.array([0.94, 0.34, 0.0]), np.array([-0.15, 0.41, 0.9])
    for ax, (label, designs) in zip(figure.subplots(1, len(hands)), hands.items(), strict=True):
        for k, made in enumerate(designs):
            corners = np.concatenate([
                part.vertices[part.faces] @ np.array(body.rotation).T + np.array(body.position)
                for body in made.rigid for part in parts_of(body)
            ])  # fmt: skip
            normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
            normal /= np.linalg.norm(normal, axis=1, keepdims=True)
            viewer = np.cross(right, up)
            seen = np.flatnonzero(normal @ viewer > 0.0)
            seen = seen[np.argsort(corners[seen].mean(axis=1) @ viewer)]
            shade = np.clip(0.4 + 0.6 * normal[seen] @ (0.3, -0.5, 0.8), 0.2, 1.0)[:, None] * (0.95, 0.6, 0.3)
            flat = np.stack([corners[seen] @ right, corners[seen] @ up], axis=-1)
            flat -= flat.reshape(-1, 2).mean(axis=0)
            place = np.array([0.36 * (k % COLUMNS), -0.14 * (k // COLUMNS)])
            ax.add_collection(PolyCollection(1e2 * (flat + place), facecolors=shade, edgecolors=shade))
        ax.autoscale_view()
        ax.set(aspect="equal", title=label, xlabel="[cm]")
    figure.savefig(figures(__file__) / "diffhand_designs.png")


def sizes() -> None:
    """Print the table of the numbers of parameters, with the printed ones in brackets."""
    print("| task | controls | design | parameters of the simulation |\n|---|---|---|---|")
    generator = np.random.default_rng(0)
    found = {}
    for name, make in TASKS.items():
        task = make()
        other = torch.as_tensor(generator.uniform(0.9, 1.1, len(task.upper)))
        own = [task.hand.model_parameters(task.alone, task.hand.shape(f)) for f in (task.hand.rest, other)]
        found[name] = int(np.prod(task.shape)), len(task.upper), changed(*own)
    bodies = fingers(sized(32, 8), sized(300, 40))
    gripper = Gripper.of(bodies)
    moves = gripper.start(0)
    own = [parameters(gripper.sim, bodies, moved(bodies, gripper.free, m)) for m in (0.0 * moves, moves)]
    found["gripper"] = 0, moves.numel(), changed(*own)
    for name, numbers in found.items():
        print("| " + " | ".join([name, *(f"{a} ({b})" for a, b in zip(numbers, PRINTED[name], strict=True))]) + " |")


def changed(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> int:
    """How many parameters differ between two designs."""
    return sum(int((first[name] != second[name]).sum()) for name in first)


def main() -> None:
    """Draw random designs, count the sound ones, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--designs", type=int, default=sized(30, 2), help="of each hand (%(default)s)")
    options = parser.parse_args()
    shown: dict[str, list[wb.Scene]] = {}
    for label, (make, largest) in HANDS.items():
        hand, rng, good = make(), np.random.default_rng(options.seed), 0
        for k in range(options.designs):
            made = scene(hand, drawn(hand, largest, rng))
            good += sound(made)
            if k < ROWS * COLUMNS:
                shown.setdefault(label, []).append(made)
        print(f"{label}, {len(hand.names)} numbers: {good} of {options.designs} random designs are sound", flush=True)
    draw(shown)
    sizes()


if __name__ == "__main__":
    main()
