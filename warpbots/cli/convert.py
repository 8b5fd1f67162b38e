"""``warpbots convert``: a robot or a scene as USD."""

import argparse

import warpbots as wb
from warpbots.cli.simulations import read

__all__ = ["convert"]


def convert(options: argparse.Namespace) -> None:
    """Read a file and write what it holds."""
    scene = read(options.scene, options.asset_root)
    wb.usd.write(options.out, scene)
    print(
        f"wrote {options.out}: {len(scene.bodies)} bodies, {len(scene.joints)} joints, {len(scene.actuators)} "
        f"actuators, {len(scene.obstacles)} obstacles"
    )
