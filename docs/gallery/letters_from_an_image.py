"""Letters of jelly from an image.

The dark pixels of any image become a body in two dimensions; here Pillow draws them. Strokes a few cells wide lose some
of their mass to the grid, and a warning says how much.
"""

from PIL import Image, ImageDraw

import warpbots as wb

image = Image.new("L", (920, 260), "white")
ImageDraw.Draw(image).text((40, 0), "jelly", fill="black", font_size=220)
image.save("jelly.png")
word = wb.shapes.load_silhouette("jelly.png", height=0.25, lower=(0.1, 0.25))
jelly = wb.Material(youngs_modulus=3e4, poissons_ratio=0.4, density=1000.0)
scene = wb.Scene(
    [wb.SoftBody("word", word, jelly, color=(0.45, 0.7, 0.4))],
    obstacles=[wb.floor(dim=2)],
    domain=((-0.2, 0.0), (1.2, 0.8)),
)
sim = wb.Simulation(scene, wb.MPM(dx=0.008), dt=0.01, substeps=None)
motion = sim.rollout(None, steps=60)
wb.view.film_strip(motion).save("letters_from_an_image.png")
