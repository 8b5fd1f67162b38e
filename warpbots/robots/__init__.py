"""Robots from URDF and MJCF files, read by MuJoCo's parser (``pip install "warpbots[robots]"``)."""

from warpbots.robots.holding import hold_pose, set_down
from warpbots.robots.loader import load_robot

__all__ = ["hold_pose", "load_robot", "set_down"]
