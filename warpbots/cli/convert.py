"""``warpbots convert``: writes a robot or a scene as USD, MJCF or URDF."""

import argparse

import warpbots as wb
from warpbots.cli.simulations import read
from warpbots.robots.robot_xml import NAMED

__all__ = ["convert"]


def convert(options: argparse.Namespace) -> None:
    """Read a file and write its scene: as MJCF or URDF if the new file ends in .xml, .mjcf or .urdf, else as USD."""
    scene = read(options.scene, options.asset_root)
    write = wb.robots.save if options.out.suffix.lower() in NAMED else wb.usd.write
    write(options.out, scene)
    print(
        f"wrote {options.out}: {len(scene.bodies)} bodies, {len(scene.joints)} joints, {len(scene.actuators)} "
        f"actuators, {len(scene.obstacles)} obstacles"
    )
