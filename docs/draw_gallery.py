"""Draw the pictures of the gallery: ``python docs/draw_gallery.py [NAME ...]``.

Runs scripts of ``docs/gallery/`` in a temporary folder. The picture that a script writes goes to
``gallery/pictures/``; one moment of its ``motion``, or the picture where that says more, to ``gallery/thumbnails/``.
"""

import contextlib
import io
import os
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from PIL import Image

import warpbots as wb

FOLDER = Path(__file__).parent / "gallery"
SIZE = (480, 320)  # of a thumbnail [pixels]
MOMENT = {
    "bones_in_an_arm": 1.0,
    "bouncing_balls": 0.42,
    "ball_in_a_hammock": 0.4,
    "design_kept_in_usd": 0.6,
    "chambers_from_stl": 1.0,
    "double_pendulum": 0.3,
    "flag_in_the_wind": 0.8,
    "hand_from_mjcf": 1.0,
    "pneumatic_finger": 1.0,
    "squeezed_through_a_gap": 0.2,
    "swimmer": 0.55,
    "walker_that_learns": 0.8,
    "yielding_truss": 1.0,
}
"""Share of a motion at which it is drawn; by default 0.5."""
PLOTS = {
    "friction_on_an_incline", "gravity_compensation", "hands_from_a_grammar", "one_finger_three_solvers",
    "optimise_a_throw", "worlds_of_stiffness",
}  # fmt: skip
"""Scripts whose plot is their thumbnail."""
CUTS = {"bones_in_an_arm": wb.shapes.HalfSpace((0, 0, 0), (0, 1, 0))}
"""Soft matter that is left out."""


def main() -> None:
    """Run the scripts that are named, or all."""
    names = sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("*.py"))
    for name in names:
        print(name, flush=True)
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            motion = runpy.run_path(str(FOLDER / f"{name}.py"))["motion"]
            with Image.open(f"{name}.png") as image:
                picture = image.convert("RGB")
        save(picture, FOLDER / "pictures" / f"{name}.png")
        save(fitted(picture) if name in PLOTS else moment(motion, name), FOLDER / "thumbnails" / f"{name}.png")
        plt.close("all")


def save(image: Image.Image, path: Path) -> None:
    """Write an image with a palette, which is a third of its size."""
    image.quantize(200, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(path, optimize=True)


def fitted(image: Image.Image) -> Image.Image:
    """An image inside a thumbnail, on white."""
    small = image.copy()
    small.thumbnail(SIZE)
    paper = Image.new("RGB", SIZE, "white")
    paper.paste(small, ((SIZE[0] - small.width) // 2, (SIZE[1] - small.height) // 2))
    return paper


def moment(motion: Any, name: str) -> Image.Image:
    """One moment of a motion as a thumbnail."""
    index = round(MOMENT.get(name, 0.5) * motion.steps)
    state = next(state for i, (_, state) in enumerate(motion.states()) if i == index)
    control = motion.control[0, max(index - 1, 0)].detach().numpy()
    poses = next((x, R) for i, (_, x, R) in enumerate(motion.poses()) if i == index) if motion.scene.rigid else None
    position = None if motion.matter is None else state.position[0].detach().numpy()
    ax = wb.view.draw(motion.scene, motion.matter, position, poses=poses, control=control, cut=CUTS.get(name))
    ax.set_axis_off()
    picture = io.BytesIO()
    ax.figure.savefig(picture, dpi=200, bbox_inches="tight", pad_inches=0.05)
    with Image.open(picture) as image:
        return fitted(image.convert("RGB"))


if __name__ == "__main__":
    os.environ.setdefault("TQDM_DISABLE", "1")
    main()
