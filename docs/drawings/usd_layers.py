"""A layer over another: the stronger value counts, and the weaker file stays as it is."""

from canvas import Drawing
from pxr import Sdf, Usd

PATH, NAME, BELOW, ABOVE = "/Lab/Rubber", "physics:youngsModulus", 500_000.0, 2_000_000.0


def composed() -> dict[str, float]:
    """The value in the weaker file before and after a layer was put over it, and in the stage that both make."""
    lab, stiffer = Sdf.Layer.CreateAnonymous(), Sdf.Layer.CreateAnonymous()
    alone = Usd.Stage.Open(lab)
    alone.DefinePrim(PATH, "Material").CreateAttribute(NAME, Sdf.ValueTypeNames.Float).Set(BELOW)
    stiffer.subLayerPaths.append(lab.identifier)
    stage = Usd.Stage.Open(stiffer)
    stage.OverridePrim(PATH).GetAttribute(NAME).Set(ABOVE)
    return {
        "lab.usda": alone.GetPrimAtPath(PATH).GetAttribute(NAME).Get(),
        "stiff.usda": stiffer.GetAttributeAtPath(f"{PATH}.{NAME}").default,
        "stage": stage.GetPrimAtPath(PATH).GetAttribute(NAME).Get(),
    }


def written(value: float) -> str:
    """The attribute with a value."""
    return f"{NAME.split(':')[1]} = {value:,.0f}".replace(",", " ")


def draw() -> Drawing:
    """Two layers and their stage; a motion and its scene."""
    values = composed()
    d = Drawing(
        "Layers of USD",
        "Left: the layer stiff.usda lies over lab.usda and states another Young's modulus; the stage shows the "
        "stronger value, and lab.usda is unchanged. Right: a motion is a layer as well, with positions over time above "
        "the scene.",
        330,
    )
    for x, words in ((20, "a change"), (370, "a motion")):
        d.text((x, 34), words, anchor="start", bold=True)
    layers = (
        (20, "stiff.usda", written(values["stiff.usda"]), "orange", "sand"),
        (20, "lab.usda", written(values["lab.usda"]), "blue", "sky"),
        (370, "fall_results.usdc", "positions over time", "orange", "sand"),
        (370, "lab.usda", "bodies, materials", "blue", "sky"),
    )
    for k, (x, name, what, colour, fill) in enumerate(layers):
        y = 54 + 82 * (k % 2)
        d.box((x, y), (310, 66), fill, colour)
        d.text((x + 14, y + 28), name, colour, 19, "start", bold=True)
        d.text((x + 296, y + 54), what, "ink", 19, "end")
    for x, shown in ((20, written(values["stage"])), (370, "the scene moves")):
        d.arrow((x + 155, 206), (x + 155, 240), "grey", 3)
        d.box((x, 246), (310, 66), "mint", "green")
        d.text((x + 14, 274), "the stage", "green", 19, "start", bold=True)
        d.text((x + 296, 300), shown, "ink", 19, "end")
    return d
