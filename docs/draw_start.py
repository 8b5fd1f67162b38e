"""Draw the films of the start page, for each solver and for the gallery: ``python docs/draw_start.py [NAME ...]``.

Runs scripts of ``docs/gallery/`` in a temporary folder and films their ``motion``; a still picture of each film is for
readers who have asked for less motion.
"""

import contextlib
import os
import runpy
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from PIL import Image, ImageSequence

import warpbots as wb

GALLERY = Path(__file__).parent / "gallery"
FOLDER = Path(__file__).parent / "_static" / "start"
FILMS = {
    "mpm": "walker_that_learns",
    "springs": "crawling_worm",
    "projective": "ball_in_a_hammock",
    "articulated": "hand_from_mjcf",
    "coupled": "robot_on_sand",
    "gallery": "chambers_from_stl",
}
"""Names of films, and the scripts whose motions they show."""
SIZE = (480, 320)  # [pixels]
SECONDS, FPS = 3.0, 16.0


def main() -> None:
    """Draw the films that are named, or all."""
    os.environ.setdefault("TQDM_DISABLE", "1")
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or FILMS:
        print(name, flush=True)
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            motion = runpy.run_path(str(GALLERY / f"{FILMS[name]}.py"))["motion"]
            wb.view.animate("film.gif", motion, fps=FPS, seconds=SECONDS, width=SIZE[0])
            with Image.open("film.gif") as film:
                frames = [fitted(frame.convert("RGB")) for frame in ImageSequence.Iterator(film)]
        first, *others = frames
        first.save(
            FOLDER / f"{name}.webp",
            append_images=others,
            duration=1000 * SECONDS / len(others),
            loop=0,
            quality=60,
            method=6,
        )
        frames[len(frames) // 2].save(FOLDER / f"{name}.png", optimize=True)
        plt.close("all")


def fitted(frame: Image.Image) -> Image.Image:
    """A frame inside `SIZE`, on white."""
    frame.thumbnail(SIZE)
    paper = Image.new("RGB", SIZE, "white")
    paper.paste(frame, ((SIZE[0] - frame.width) // 2, (SIZE[1] - frame.height) // 2))
    return paper


if __name__ == "__main__":
    main()
