"""Reduces pictures to few colours, which makes their files three times smaller."""

import base64
import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from warpbots.view.palette import PAPER

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["palette_of", "png_of", "reduced"]

_NEARLY = 8  # difference, of 255, up to which a colour counts as background


def palette_of(images: Iterable["Image"], count: int) -> "Image":
    """A palette for all `images`: first the background, then the most frequent other colours, at most `count` - 1."""
    from PIL import Image

    pixels = np.concatenate([np.asarray(image).reshape(-1, 3) for image in images])
    paper = np.round(255.0 * np.array(PAPER)).astype(np.uint8)
    others = pixels[(pixels != paper).any(axis=1)]
    sample = Image.fromarray((others if len(others) else pixels)[None])
    colors = sample.quantize(count - 1, dither=Image.Dither.NONE).getpalette()[: 3 * (count - 1)]
    colors = np.array(colors).reshape(-1, 3)
    colors = colors[
        np.abs(colors - paper.astype(int)).max(axis=1) > _NEARLY
    ]  # Pillow would use them for the background
    palette = Image.new("P", (1, 1))
    palette.putpalette([*paper.tolist(), *colors.reshape(-1).tolist()])
    return palette


def reduced(image: "Image", palette: "Image") -> "Image":
    """The picture `image`, reduced to the colours of `palette` without dithering."""
    from PIL import Image

    return image.quantize(palette=palette, dither=Image.Dither.NONE)


def png_of(image: "Image") -> str:
    """A picture as a small PNG of at most 256 colours, in base64, as notebooks store it."""
    png = io.BytesIO()
    reduced(image, palette_of([image], 256)).save(png, format="PNG", optimize=True)
    return base64.b64encode(png.getvalue()).decode("ascii")
