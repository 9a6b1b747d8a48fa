#!/usr/bin/env python3
"""Draws (first product / best known code) against products to an entry of C and entries of A to a tile of 8 x 8:
plot-fill.py TSV METHOD TITLE > SVG"""
import math
import sys

COLOURS = {"diagonal": "#1f6feb", "block": "#8250df", "shape": "#1a7f37", "rowmerge": "#bf8700", "hash": "#cf222e"}
WIDTH, HEIGHT, PANEL, TOP, LEFT = 1100, 470, 470, 52, 60
BOTTOM = HEIGHT - 62


def panel(out, x0, label, points, top):
    """points: x, y, name, method; x on a logarithmic axis"""
    lo = math.floor(math.log2(min(p[0] for p in points)))
    hi = math.ceil(math.log2(max(p[0] for p in points)))
    across = lambda x: x0 + (math.log2(x) - lo) / (hi - lo) * PANEL
    down = lambda y: BOTTOM - y / top * (BOTTOM - TOP)
    for k in range(lo, hi + 1):
        out.append('<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#eaeef2"/>' % (across(2.0**k), across(2.0**k), TOP, BOTTOM))
        out.append('<text x="%.1f" y="%d" text-anchor="middle" fill="#57606a">%g</text>' % (across(2.0**k), BOTTOM + 16, 2.0**k))
    for k in range(int(top * 5) + 1):
        out.append('<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#eaeef2"/>' % (x0, x0 + PANEL, down(k / 5), down(k / 5)))
        out.append('<text x="%d" y="%.1f" text-anchor="end" fill="#57606a">%.1f</text>' % (x0 - 6, down(k / 5) + 4, k / 5))
    out.append('<text x="%d" y="%d" text-anchor="middle" fill="#1f2328">%s</text>' % (x0 + PANEL / 2, BOTTOM + 34, label))
    taken = []
    for x, y, name, method in sorted(points, key=lambda p: p[1]):
        cx, cy = across(x), down(y)
        out.append('<circle cx="%.1f" cy="%.1f" r="4.5" fill="%s"/>' % (cx, cy, COLOURS.get(method, "#57606a")))
        right = cx < x0 + PANEL - 110
        ly = cy + 4
        while any(abs(ly - b) < 11 and abs(cx - a) < 130 for a, b in taken):
            ly -= 3
        taken.append((cx, ly))
        out.append('<text x="%.1f" y="%.1f" text-anchor="%s" font-size="10" fill="#57606a">%s</text>' % (cx + (7 if right else -7), ly, "start" if right else "end", name))


def main():
    rows = []
    for line in open(sys.argv[1]):
        c = line.rstrip("\n").split("\t")
        if not line.startswith("#") and len(c) > 10 and c[1] == sys.argv[2] and float(c[8]):
            rows.append((float(c[6]) / float(c[7]), float(c[10]), float(c[3]) / float(c[8]), c[0], c[2]))
    if not rows:
        sys.exit("plot-fill.py: no row of method %s has what is drawn" % sys.argv[2])
    top = max(1.0, max(r[2] for r in rows) * 1.08)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">' % (WIDTH, HEIGHT),
           '<rect width="100%" height="100%" fill="#ffffff"/>', '<text x="12" y="22" font-size="14" fill="#1f2328">%s</text>' % sys.argv[3]]
    panel(out, LEFT, "products to an entry of C", [(r[0], r[2], r[3], r[4]) for r in rows], top)
    panel(out, LEFT + PANEL + 70, "entries of A to a tile of 8 x 8", [(r[1], r[2], r[3], r[4]) for r in rows], top)
    for k, method in enumerate(m for m in COLOURS if any(r[4] == m for r in rows)):
        out.append('<circle cx="%d" cy="%d" r="4.5" fill="%s"/>' % (LEFT + 4 + 110 * k, 38, COLOURS[method]))
        out.append('<text x="%d" y="42" fill="#1f2328">%s</text>' % (LEFT + 14 + 110 * k, method))
    out.append("</svg>")
    print("\n".join(out))


main()
