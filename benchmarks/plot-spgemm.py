#!/usr/bin/env python3
"""Draws the rows of one method of benchmarks/results/spgemm-*.tsv as bars of (first product / best known code):
plot-spgemm.py TSV METHOD TITLE > SVG"""
import math
import sys


def main():
    rows = []
    for line in open(sys.argv[1]):
        c = line.rstrip("\n").split("\t")
        if line.startswith("#") or len(c) < 9 or c[1] != sys.argv[2]:
            continue
        if float(c[8]): # a best code is known
            rows.append((c[0], c[2], float(c[3]), float(c[8])))
    if not rows:
        sys.exit("plot-spgemm.py: no row of method " + sys.argv[2])
    left, right, top, tall = 210, 150, 44, 22
    width, height = 760, top + tall * len(rows) + 34
    most = max(max(f / b for _, _, f, b in rows) * 1.05, 1.1)
    scale = (width - left - right) / most
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">' % (width, height),
           '<rect width="100%" height="100%" fill="#ffffff"/>', '<text x="12" y="22" font-size="14" fill="#1f2328">%s</text>' % sys.argv[3]]
    x = left + scale
    out.append('<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#8c959f" stroke-dasharray="4 3"/>' % (x, x, top - 6, height - 30))
    for k, (name, ran, first, best) in enumerate(rows):
        y = top + k * tall
        ratio = first / best
        out.append('<text x="%d" y="%d" text-anchor="end" fill="#1f2328">%s</text>' % (left - 8, y + 14, name))
        out.append('<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>' % (left, y + 2, ratio * scale, tall - 6, "#1f6feb" if ratio <= 1 else "#d4a72c"))
        out.append('<text x="%.1f" y="%d" fill="#57606a">%.2f  (%.2f ms, %s)</text>' % (left + ratio * scale + 6, y + 14, ratio, first, ran))
    mean = math.exp(sum(math.log(f / b) for _, _, f, b in rows) / len(rows))
    out.append('<text x="%.1f" y="%d" text-anchor="middle" fill="#1f2328">1 = best known code; geometric mean %.2f</text>' % (x, height - 12, mean))
    out.append("</svg>")
    print("\n".join(out))


main()
