#!/usr/bin/env python3
"""Draws benchmarks/results/gamg-CARD.tsv, the time of GAMG's setup against the number of unknowns: plot-gamg.py TSV
TITLE > SVG With --table instead of a title: the figures in Markdown, milliseconds, the
first setup with new values in brackets, and the first solve as a multiple of the second. With --solve TITLE: the time
of a solve after a set-up with new values. With --beside PEERS: a warm set-up and such a solve, and those of AmgX and
hypre, of a file with lines "name, points a side, milliseconds of a set-up, of a solve, what was set". With --phases
TITLE: gamg-phases-CARD.tsv, a set-up by phases, before and after, each bar with a scale of its own."""
import math
import re
import sys

OPERATIONS = ["GAMG setup", "GAMG setup warm", "GAMG setup again", "second solve", "first solve", "solve after setup again"]
TYPES = ["aijhybridgpu", "aijcusparse"]
COLOURS = {"aijhybridgpu": "#1f6feb", "aijcusparse": "#d4a72c", "AmgX": "#2da44e", "hypre": "#8250df"}
DASHES = {"GAMG setup": "6 4", "GAMG setup warm": "", "GAMG setup again": "2 3"}


def read(path):
    figures = {}
    for line in open(path):
        c = line.rstrip("\n").split("\t")
        if len(c) > 5 and c[4] and c[3] in OPERATIONS:
            figures[int(c[1]) ** 3, c[2], c[3]] = float(c[4])
            first = re.search(r"median of \d+, first ([0-9.]+)", c[5])
            if first:
                figures[int(c[1]) ** 3, c[2], "first again"] = float(first.group(1))
    if not figures:
        sys.exit("plot-gamg.py: no figures in " + path)
    return figures, sorted({k[0] for k in figures})


def ms(t):
    return "%.0f" % t if t >= 100 else "%.3g" % t


def table(figures, sizes):
    print("| unknowns | type | setup, first of the process | warm | again, new values (the first time) | solve | first solve by the second |\n|---|---|---|---|---|---|---|")
    for n in sizes:
        for t in TYPES:
            if (n, t, "GAMG setup") in figures:
                cells = [ms(figures[n, t, o]) if (n, t, o) in figures else "" for o in OPERATIONS[:4]]
                if (n, t, "first again") in figures:
                    cells[2] += " (%s)" % ms(figures[n, t, "first again"])
                if (n, t, "first solve") in figures and (n, t, "second solve") in figures:
                    cells.append("%.2f" % (figures[n, t, "first solve"] / figures[n, t, "second solve"]))
                print("| %d | %s | %s |" % (n, t, " | ".join(cells)))


WIDE, HIGH = 780, 400


def svg(parts):
    print('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">' % (WIDE, HIGH * len(parts)))
    print('<rect width="100%" height="100%" fill="#ffffff"/>')
    for k, part in enumerate(parts):
        print('<g transform="translate(0 %d)">\n%s\n</g>' % (HIGH * k, "\n".join(part)))
    print("</svg>")


def draw(figures, sizes, title, lines, cards=None):
    left, top, wide, tall = 70, 50, 520, 300
    types = [t for t in COLOURS if any((n, t, o) in figures for n in sizes for o in lines)]
    x0, x1 = math.log10(sizes[0]), math.log10(sizes[-1])
    shown = [v for (n, t, o), v in figures.items() if o in lines]
    y0, y1 = math.floor(math.log10(min(shown))), math.ceil(math.log10(max(shown)))

    def at(n, v):
        return left + (math.log10(n) - x0) / (x1 - x0) * wide, top + (y1 - math.log10(v)) / (y1 - y0) * tall

    out = ['<text x="12" y="20" font-size="14" fill="#1f2328">%s</text>' % title]
    for e in range(y0, y1 + 1):
        y = at(sizes[0], 10.0 ** e)[1]
        out.append('<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#d0d7de"/>' % (left, left + wide, y, y))
        out.append('<text x="%d" y="%.1f" text-anchor="end" fill="#57606a">%s ms</text>' % (left - 6, y + 4, "%g" % 10.0 ** e))
    for n in sizes:
        out.append('<text x="%.1f" y="%d" text-anchor="middle" fill="#57606a">%s</text>' % (at(n, 1)[0], top + tall + 18, "%.3g" % n))
    out.append('<text x="%d" y="%d" text-anchor="middle" fill="#57606a">unknowns</text>' % (left + wide / 2, top + tall + 38))
    for t in types:
        for o, dash in lines.items():
            points = [at(n, figures[n, t, o]) for n in sizes if (n, t, o) in figures]
            if not points:
                continue
            out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>' % (" ".join("%.1f,%.1f" % p for p in points), COLOURS[t], dash))
    for k, (t, o) in enumerate((t, o) for t in types for o in lines):
        y = top + 10 + 20 * k
        out.append('<line x1="%d" x2="%d" y1="%d" y2="%d" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>' % (left + wide + 14, left + wide + 44, y, y, COLOURS[t], lines[o]))
        what = {"GAMG setup": ", first", "GAMG setup warm": ", warm", "GAMG setup again": ", again", "solve after setup again": ""}[o] if len(lines) > 1 else ""
        out.append('<text x="%d" y="%d" fill="#1f2328">%s%s</text>' % (left + wide + 50, y + 4, t, (", " + cards[t] if cards else "") + what))
    return out


def beside(path, figures, sizes):
    for line in open(path):
        if not line.startswith("#"):
            name, n, setup, solve = line.split("\t")[:4]
            figures[int(n) ** 3, name, "GAMG setup warm"] = float(setup)
            figures[int(n) ** 3, name, "solve after setup again"] = float(solve)
    cards = {"aijhybridgpu": "H100", "aijcusparse": "H100", "AmgX": "H200", "hypre": "H200"}
    svg([draw(figures, sizes, title + ", 7-point Laplacian", {o: ""}, cards) for title, o in (("Multigrid's set-up", "GAMG setup warm"), ("Solve to 1e-5, CG with multigrid", "solve after setup again"))])


SHADES = {"graph": "#1f6feb", "its square": "#6ea8fe", "independent set": "#2da44e", "prolongator": "#8250df", "eigenvalues": "#bf3989",
          "Galerkin products": "#d4a72c", "matrices of the host": "#8c959f", "rest": "#d0d7de"}


def phases(path, title):
    bars = {}
    for line in open(path):
        if not line.startswith("#"):
            which, phase, t = line.rstrip("\n").split("\t")
            bars.setdefault(which, []).append((phase, float(t)))
    left, top, wide, high = 70, 50, 640, 46
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">' % (left + wide + 90, top + 100 * len(bars) + 50),
           '<rect width="100%" height="100%" fill="#ffffff"/>', '<text x="12" y="20" font-size="14" fill="#1f2328">%s</text>' % title]
    for k, (which, parts) in enumerate(bars.items()):
        total, x, y = sum(t for _, t in parts), float(left), top + 100 * k
        out.append('<text x="12" y="%d" fill="#1f2328">%s</text>' % (y + high / 2 + 4, which))
        for phase, t in parts:
            w = wide * t / total
            out.append('<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>' % (x, y, w, high, SHADES[phase]))
            if w > 24:
                out.append('<text x="%.1f" y="%d" text-anchor="middle" fill="#57606a">%s</text>' % (x + w / 2, y + high + 14, ms(t)))
            x += w
        out.append('<text x="%d" y="%d" fill="#1f2328">%s ms</text>' % (left + wide + 8, y + high / 2 + 4, ms(total)))
    for k, (phase, colour) in enumerate(SHADES.items()):
        x, y = left + 180 * (k % 4), top + 100 * len(bars) - 10 + 20 * (k // 4)
        out.append('<rect x="%d" y="%d" width="12" height="12" fill="%s"/><text x="%d" y="%d" fill="#1f2328">%s</text>' % (x, y, colour, x + 18, y + 10, phase))
    out.append("</svg>")
    print("\n".join(out))


if sys.argv[2] == "--table":
    table(*read(sys.argv[1]))
elif sys.argv[2] == "--phases":
    phases(sys.argv[1], sys.argv[3])
elif sys.argv[2] == "--solve":
    svg([draw(*read(sys.argv[1]), sys.argv[3], {"solve after setup again": ""})])
elif sys.argv[2] == "--beside":
    beside(sys.argv[3], *read(sys.argv[1]))
else:
    svg([draw(*read(sys.argv[1]), sys.argv[2], DASHES)])
