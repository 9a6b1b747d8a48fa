#!/usr/bin/env python3
"""Draws the table of `make demo` (build/.../demo/table.txt) as an SVG of grouped bars: benchmarks/plot-demo.py TABLE
TITLE > benchmarks/results/demo-host.svg"""
import re
import sys

COLUMNS = ["setup", "first product", "reuse product", "setup again", "solve"]
COLOURS = ["#1f6feb", "#8c959f", "#d4a72c"]


def read(path):
    rows = []
    for line in open(path):
        if line.startswith('#'):
            continue
        m = re.match(r"(.*?)\s{2,}(\S+\s+\S+\s+\S+\s+\S+\s+\S+\s+\S+)\s*$", line)
        if m and re.match(r"[-0-9]", m.group(2)):
            cells = m.group(2).split()
            rows.append((m.group(1), [None if c == "-" else float(c) for c in cells[:5]], cells[5]))
    if not rows:
        sys.exit("plot-demo.py: no row of figures in " + path)
    return rows


def main():
    rows, title = read(sys.argv[1]), sys.argv[2]
    width, height, left, top, bottom = 760, 330, 56, 64, 36
    plot = height - top - bottom
    most = max(v for _, values, _ in rows for v in values if v is not None) * 1.12
    group = (width - left - 16) / len(COLUMNS)
    bar = group * 0.8 / len(rows)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">' % (width, height),
           '<rect width="100%" height="100%" fill="#ffffff"/>',
           '<text x="%d" y="20" font-size="14" fill="#1f2328">%s</text>' % (left, title)]
    x = left
    for k, (name, _, iterations) in enumerate(rows):
        label = "%s (%s iterations)" % (name, iterations)
        out.append('<rect x="%d" y="32" width="11" height="11" fill="%s"/><text x="%d" y="42" fill="#1f2328">%s</text>' % (x, COLOURS[k % 3], x + 16, label))
        x += 26 + 6.7 * len(label)
    step = next(s for s in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if most / s <= 6)
    tick = 0.0
    while tick <= most:
        y = top + plot * (1 - tick / most)
        out.append('<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#d0d7de"/><text x="%d" y="%.1f" text-anchor="end" fill="#57606a">%g s</text>' % (left, width - 16, y, y, left - 6, y + 4, round(tick, 3)))
        tick += step
    for c, column in enumerate(COLUMNS):
        for k, (_, values, _) in enumerate(rows):
            if values[c] is None:
                continue
            tall = plot * values[c] / most
            bx = left + c * group + group * 0.1 + k * bar
            out.append('<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>' % (bx, top + plot - tall, bar - 3, tall, COLOURS[k % 3]))
            out.append('<text x="%.1f" y="%.1f" text-anchor="middle" font-size="10" fill="#1f2328">%.2f</text>' % (bx + bar / 2 - 1.5, top + plot - tall - 4, values[c]))
        out.append('<text x="%.1f" y="%d" text-anchor="middle" fill="#1f2328">%s</text>' % (left + (c + 0.5) * group, height - 14, column))
    out.append("</svg>")
    print("\n".join(out))


main()
