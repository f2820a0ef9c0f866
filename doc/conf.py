"""Settings of the documentation site.

    sphinx-build -W --keep-going doc doc/_build/html

Nothing is loaded from the internet, neither when the site is built nor when it is read.
The environment variable SKBAYESNN_DOC_URL is the address at which the site will stand:
with it pages name their pictures for previews, and a menu of versions appears, which
reads ``switcher.json`` there.
"""

import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "sphinxext"))
# the package beside this folder, whatever else is installed
sys.path.insert(0, str(HERE.parent))

from sphinx_gallery.sorting import ExplicitOrder  # noqa: E402

import skbayesnn  # noqa: E402

project = "skbayesnn"
author = "The skbayesnn developers"
copyright = author
version = release = skbayesnn.__version__
site_url = os.environ.get("SKBAYESNN_DOC_URL", "").rstrip("/")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinxext.opengraph",
    # of this folder
    "docstrings",
    "estimator_table",
    "mathml",
    "name_inventories",
    "result_tables",
    "thumbnail_texts",
]
exclude_patterns = ["_build", "_templates", "results", "sphinxext"]
templates_path = ["_templates"]
root_doc = "index"
needs_sphinx = "8.0"

# -- Pages --------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "dollarmath", "attrs_inline"]
# GitHub draws equations of such blocks as well
myst_fence_as_directive = ["math"]
myst_heading_anchors = 3

# -- Reference ----------------------------------------------------------------------

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
toc_object_entries_show_parents = "hide"
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False  # the template of classes lists them
numpydoc_xref_param_type = False

# -- Examples -----------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "generated/gallery",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("skbayesnn",),
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "capture_repr": (),  # what is to be seen is printed
    "image_srcset": ["2x"],
    "min_reported_time": 1,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "subsection_order": ExplicitOrder(
        ["../examples/gallery/systems", "../examples/gallery/binary_data"]
    ),
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
}
# what examples warn of is an error, as in the tests; matplotlib here has no window
warnings.filterwarnings("ignore", message=".*FigureCanvasAgg is non-interactive.*")
# the objects that it asks not to be cached change with every build
suppress_warnings = ["config.cache"]

# -- Appearance ---------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = project
html_static_path = ["_static"]
html_css_files = ["skbayesnn.css"]
html_search_scorer = str(HERE / "search_scorer.js")
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {
        "text": project,
        "image_light": "_static/favicon.svg",
        "image_dark": "_static/favicon.svg",
    },
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "show_prev_next": True,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "search_bar_text": "Search the documentation",
}
html_sidebars = {
    "index": [],
    "changelog": [],
    "contributing": [],
    "releasing": [],
}
html_context = {"default_mode": "auto"}
if site_url:
    html_baseurl = f"{site_url}/"
    html_theme_options |= {
        "switcher": {"json_url": f"{site_url}/switcher.json", "version_match": version},
        "check_switcher": False,
        "navbar_end": ["version-switcher", "theme-switcher"],
    }
html_extra_path = ["switcher.json"]

ogp_site_url = site_url
ogp_site_name = project
ogp_image = "images/quickstart.png"
ogp_image_alt = "Measured and simulated level of a tank, with a band"
ogp_enable_meta_description = True
ogp_social_cards = {"enable": False}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
