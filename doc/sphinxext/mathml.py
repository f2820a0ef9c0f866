"""Equations as MathML, which every browser draws without a script or a font of ours.

The usual renderer loads MathJax from the internet. Docutils brings the translation from
LaTeX; an equation that it cannot read is a warning, and so an error of the build.
"""

from docutils.nodes import SkipNode
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)


def translate(writer, node, block):
    source = node.astext()
    try:
        return tex2mathml(source, as_block=block)
    except MathError as error:
        logger.warning("equation %r: %s", source, error, location=node)
        return writer.encode(source)


def visit_inline(writer, node):
    writer.body.append(translate(writer, node, block=False))
    raise SkipNode


def visit_block(writer, node):
    label = node.get("number")
    anchor = f' id="{node["ids"][0]}"' if node["ids"] else ""
    # a wide equation scrolls by itself, so the keyboard must be able to reach it
    writer.body.append(f'<div class="math-block" tabindex="0"{anchor}>')
    if label:
        writer.body.append(f'<span class="eqno">({label})</span>')
    writer.body.append(translate(writer, node, block=True))
    writer.body.append("</div>")
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
