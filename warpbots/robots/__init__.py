"""Robots from files, URDF and MJCF, read by MuJoCo's parser (``pip install "warpbots[robots]"``)."""

from warpbots.robots.loader import load_robot

__all__ = ["load_robot"]
