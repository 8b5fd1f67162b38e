"""Opens a stage in Blender with default settings and renders it: ``python render_in_blender.py stage.usda folder``.

Run by the Python that has Blender as the module `bpy`. It prints, as JSON, what Blender has made of the stage, and
writes ``<frame>.png`` for the start, the middle and the end.
"""

import json
import sys
from pathlib import Path

import bpy

stage, folder = sys.argv[1], Path(sys.argv[2])
bpy.ops.wm.read_factory_settings()
for thing in list(bpy.data.objects):
    bpy.data.objects.remove(thing)
bpy.ops.wm.usd_import(filepath=stage)
scene = bpy.context.scene
cameras = [thing for thing in bpy.data.objects if thing.type == "CAMERA"]
if cameras:
    scene.camera = cameras[0]  # the importer chooses none
scene.render.engine = "CYCLES"
scene.cycles.samples, scene.cycles.use_denoising = 8, False
scene.render.resolution_x, scene.render.resolution_y, scene.render.resolution_percentage = 160, 120, 100
frames = sorted({scene.frame_start, (scene.frame_start + scene.frame_end) // 2, scene.frame_end})
for frame in frames if cameras else ():
    scene.frame_set(frame)
    scene.render.filepath = str(folder / f"{frame}.png")
    bpy.ops.render.render(write_still=True)
meshes = {thing.name: len(thing.data.polygons) for thing in bpy.data.objects if thing.type == "MESH"}
print("FOUND " + json.dumps({"cameras": len(cameras), "frames": frames, "meshes": meshes}))
