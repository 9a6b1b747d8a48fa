"""Sphinx's configuration of the site; conf/docs/site lays out its sources."""
import os

project = 'petsc-aijhybridgpu'
copyright = '2026, the petsc-aijhybridgpu authors'
version = release = os.environ['SITE_VERSION']
extensions = ['myst_parser']
source_suffix = {'.md': 'markdown'}
root_doc = 'index'
myst_heading_anchors = 4
# man pages and programs' outputs are no language that Pygments knows
highlight_language = 'none'
html_theme = 'pydata_sphinx_theme'
html_title = 'petsc-aijhybridgpu ' + version
html_theme_options = {'show_prev_next': True, 'navigation_depth': 3}
html_show_sourcelink = False
html_copy_source = False
html_static_path = ['static']
html_css_files = ['site.css']
# the order of what the search finds
html_search_scorer = os.environ['SITE_SCORER']
templates_path = []
exclude_patterns = []
# a relative link to a file that is no page becomes a download of that file; one that leads nowhere is an error
nitpicky = True
