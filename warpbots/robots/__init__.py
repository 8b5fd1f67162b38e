"""Robots from URDF and MJCF files, read by MuJoCo's parser (``pip install "warpbots[robots]"``)."""

from warpbots.robots.loader import load_robot
from warpbots.robots.pose_holding import hold_pose, set_down

__all__ = ["hold_pose", "load_robot", "set_down"]
