#!/usr/bin/env python3
"""Draws benchmarks/results/mat-CARD.tsv, how many times faster than aijcusparse the type is as a PETSc user sees it:
plot-mat.py TSV TITLE > SVG With --table instead of a title: the same as a table in Markdown, milliseconds of both."""
import sys

OPERATIONS = ["MatMult", "A*A first", "A*A again", "MatPtAP first", "MatPtAP again", "GAMG setup", "GAMG setup warm", "GAMG setup again", "second solve"]


def read(path):
    figures, problems = {}, []
    for line in open(path):
        c = line.rstrip("\n").split("\t")
        if len(c) < 5:
            continue
        problem = "%s-pt %s^3" % (c[0], c[1])
        if problem not in problems:
            problems.append(problem)
        if c[3] == "stopped":
            figures[problem, c[2], "stopped"] = 1
        if c[4]:
            figures[problem, c[2], c[3]] = float(c[4])
    if not figures:
        sys.exit("plot-mat.py: no figures in " + path)
    return figures, problems


def ms(t):
    return "%.0f" % t if t >= 100 else "%.3g" % t


def without(figures, problem):
    return "fails" if (problem, "aijcusparse", "stopped") in figures else "not measured"


def table(figures, problems):
    print("| matrix | operation | aijhybridgpu | aijcusparse | times faster |\n|---|---|---|---|---|")
    for p in problems:
        for o in OPERATIONS:
            ours, theirs = figures.get((p, "aijhybridgpu", o)), figures.get((p, "aijcusparse", o))
            if ours:
                print("| %s | %s | %s | %s | %s |" % (p, o, ms(ours), "%s" % ms(theirs) if theirs else without(figures, p), "%.2f" % (theirs / ours) if theirs else ""))


def draw(figures, problems, title):
    left, top, tall, wide, gap = 130, 56, 18, 230, 16
    width, height = left + len(problems) * (wide + gap) + 10, top + tall * len(OPERATIONS) + 30
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">' % (width, height),
           '<rect width="100%" height="100%" fill="#ffffff"/>', '<text x="12" y="20" font-size="14" fill="#1f2328">%s</text>' % title]
    for k, o in enumerate(OPERATIONS):
        out.append('<text x="%d" y="%d" text-anchor="end" fill="#1f2328">%s</text>' % (left - 6, top + k * tall + 13, o))
    for n, p in enumerate(problems):
        x, scale = left + n * (wide + gap), (wide - 110) / 12
        out.append('<text x="%d" y="%d" fill="#57606a">%s</text>' % (x, top - 10, p))
        for k, o in enumerate(OPERATIONS):
            ours, theirs, y = figures.get((p, "aijhybridgpu", o)), figures.get((p, "aijcusparse", o)), top + k * tall
            if not ours:
                continue
            if not theirs:
                out.append('<text x="%d" y="%d" fill="#57606a">%s ms; aijcusparse: %s</text>' % (x + 3, y + 13, ms(ours), without(figures, p)))
                continue
            ratio = theirs / ours
            out.append('<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>' % (x, y + 2, min(ratio, 12) * scale, tall - 5, "#1f6feb" if ratio >= 1 else "#d4a72c"))
            out.append('<text x="%.1f" y="%d" fill="#57606a">%.2f (%s ms)</text>' % (x + min(ratio, 12) * scale + 3, y + 13, ratio, ms(ours)))
        out.append('<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#8c959f" stroke-dasharray="4 3"/>' % (x + scale, x + scale, top - 4, height - 26))
    out.append('<text x="%d" y="%d" fill="#57606a">times faster than aijcusparse of the same PETSc (dashed: as fast; bars end at 12)</text>' % (left, height - 8))
    out.append("</svg>")
    print("\n".join(out))


if sys.argv[2] == "--table":
    table(*read(sys.argv[1]))
else:
    draw(*read(sys.argv[1]), sys.argv[2])
