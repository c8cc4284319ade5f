"""How Sphinx builds the documentation; run ``make docs`` or ``python docs/build.py``."""

import sys
from importlib.util import find_spec
from pathlib import Path

import shortlist

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "_extensions")]

project = "Shortlist"
author = project_copyright = "The Shortlist developers"
version = release = shortlist.__version__
html_title = f"Shortlist {version}"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "generated",
    "mathml",
    "plain_docstrings",
    "speed_chart",
]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

html_theme = "furo"
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["shortlist.css"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# The scripts of examples/, run in the build. Their pages are written to the folder gallery.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "backreferences_dir": "gallery/uses",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "write_computation_times": False,
    "image_srcset": ["2x"],
}

# Single backticks in docstrings name things; those that resolve become links.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {
    "members": True,
    # What scikit-learn adds to every estimator, documented in its words and links.
    "exclude-members": "set_fit_request, set_score_request, get_metadata_routing, "
    "get_params, set_params",
}
autodoc_mock_imports = [] if find_spec("torch") else ["torch"]
napoleon_google_docstring = False
napoleon_use_param = False  # one entry for parameters that share a description
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_preprocess_types = False
python_maximum_signature_line_length = 88
