#!/usr/bin/env python3
"""Draws benchmarks/results/host.csv, how many times faster than MATAIJ each operation is, as one panel an operation:
plot-host.py CSV > SVG"""
import csv
import sys


def main():
    panels, names = {}, []
    for row in csv.DictReader(open(sys.argv[1])):
        panels.setdefault(row["operation"], {})[row["matrix"]] = float(row["times_faster"])
        if row["matrix"] not in names:
            names.append(row["matrix"])
    if not panels:
        sys.exit("plot-host.py: no figures in " + sys.argv[1])
    left, top, tall, wide, gap = 130, 50, 18, 150, 14
    width, height = left + len(panels) * (wide + gap) + 10, top + tall * len(names) + 34
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">' % (width, height),
           '<rect width="100%" height="100%" fill="#ffffff"/>',
           '<text x="12" y="20" font-size="14" fill="#1f2328">aijhybridgpu without a GPU: how many times faster than MATAIJ (dashed: as fast)</text>']
    for k, name in enumerate(names):
        out.append('<text x="%d" y="%d" text-anchor="end" fill="#1f2328">%s</text>' % (left - 6, top + k * tall + 13, name))
    for p, (operation, figures) in enumerate(panels.items()):
        x = left + p * (wide + gap)
        scale = (wide - 34) / max(max(figures.values()), 1.5)
        out.append('<text x="%d" y="%d" fill="#57606a">%s</text>' % (x, top - 8, operation))
        for k, name in enumerate(names):
            if name not in figures:
                continue
            f, y = figures[name], top + k * tall
            out.append('<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>' % (x, y + 2, f * scale, tall - 5, "#1f6feb" if f >= 1 else "#d4a72c"))
            out.append('<text x="%.1f" y="%d" fill="#57606a">%.2f</text>' % (x + f * scale + 3, y + 13, f))
        out.append('<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#8c959f" stroke-dasharray="4 3"/>' % (x + scale, x + scale, top - 2, height - 30))
    out.append("</svg>")
    print("\n".join(out))


main()
