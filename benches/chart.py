"""One chart: what a token costs, for holdback, the floor and each peer, with 4 and with 256 stops.
Bars on a logarithmic scale.
"""

from __future__ import annotations

import math
from typing import Any
from xml.sax.saxutils import escape

LEFT, TOP, ROW, WIDE = 190, 62, 34, 560
COUNTS = (4, 256)

STYLE = """
  text { font: 13px ui-sans-serif, system-ui, sans-serif; fill: #223 } .small { font-size: 11px; fill: #667 }
  .head { font-weight: 600; font-size: 15px } .grid { stroke: #ccd; stroke-width: 1 }
  .few { fill: #7aa6d6 } .many { fill: #35608f } .ours .few { fill: #f0a868 } .ours .many { fill: #c9651b }
  @media (prefers-color-scheme: dark) { text { fill: #eef } .small { fill: #aab } .grid { stroke: #445 } }
"""


def shown(value: float) -> str:
    for unit, scale in (("ns", 1), ("us", 1e3)):
        if value < 1000 * scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e6:.3g} ms"


def draw(suites: dict[str, dict[str, Any]]) -> str:
    """The chart as SVG; sides in the order of their time with 4 stops."""
    sides = {
        count: suites.get(f"token stream, {count} stops", {}).get("sides", {}) for count in COUNTS
    }
    names = sorted(sides[COUNTS[0]], key=lambda name: sides[COUNTS[0]][name]["min"])
    values = [side[name]["min"] for side in sides.values() for name in names if name in side] or [
        10,
        100,
    ]
    low, high = math.floor(math.log10(min(values))), math.log10(max(values))
    height = TOP + ROW * len(names) + 30

    def x(value: float) -> float:
        return LEFT + (math.log10(value) - low) / (high - low) * WIDE

    parts = []
    for power in range(low, math.ceil(high)):
        at = x(10**power)
        parts.append(f'<path class="grid" d="M{at:.1f} {TOP - 8}V{height - 26}"/>')
        parts.append(
            f'<text class="small" text-anchor="middle" x="{at:.1f}" y="{height - 12}">{shown(10**power)}</text>'
        )
    for row, name in enumerate(names):
        y = TOP + row * ROW
        parts.append(f'<g class="{"ours" if name == "holdback" else "other"}">')
        weight = ' font-weight="600"' if name in ("holdback", "floor") else ""
        parts.append(
            f'<text text-anchor="end" x="{LEFT - 10}" y="{y + 17}"{weight}>{escape(name)}</text>'
        )
        for at, (count, kind) in enumerate(zip(COUNTS, ("few", "many"), strict=True)):
            if name in sides[count]:
                value, top = sides[count][name]["min"], y + at * 13
                parts.append(
                    f'<rect class="{kind}" x="{LEFT}" y="{top}" width="{x(value) - LEFT:.1f}" height="12"/>'
                )
                parts.append(
                    f'<text class="small" x="{x(value) + 5:.1f}" y="{top + 10}">{shown(value)}</text>'
                )
        parts.append("</g>")
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDE + 90} {height}" role="img" aria-labelledby="t d">',
            '<title id="t">What a token costs</title>',
            '<desc id="d">Time for one chunk of about four characters, with 4 and with 256 stops, on a logarithmic scale.</desc>',
            f"<style>{STYLE}</style>",
            '<text class="head" x="16" y="24">One token, about four characters: best time, logarithmic</text>',
            '<rect class="few" x="16" y="34" width="12" height="12"/><text class="small" x="34" y="44">4 stops</text>',
            '<rect class="many" x="96" y="34" width="12" height="12"/><text class="small" x="114" y="44">256 stops</text>',
            *parts,
            "</svg>\n",
        ]
    )
