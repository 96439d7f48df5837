"""SVG of the graph of words, without scripts: edge widths show counts, colors show weights."""

from html import escape

from mpad.explain.explanation import display_word
from mpad.explain.layout import FAINT, OPPOSES, SUPPORTS, Drawing, Node, max_abs, scale_weight

_WIDTH, _HEIGHT, _MARGIN = 760, 480, 60
_MAX_STROKE = 4.0  # pixels, added for the edge with the largest count


def to_svg(drawing: Drawing, prefix: str = "", master: bool = False) -> str:
    """Return the graph as one <svg> element.

    A node links to the first occurrence of its word in the text, `#{prefix}w{number}`. With `master`, the master node
    is drawn in the center, linked to every word in both directions.
    """
    if not drawing.nodes:
        return ""
    top_edge = max_abs(edge.weight for _, _, edge in drawing.edges)
    top_node = max_abs(node.weight for node in drawing.nodes)
    most = max((edge.count for _, _, edge in drawing.edges), default=1.0)
    parts = [
        f'<svg class="graph" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="graph of {len(drawing.nodes)} words and {len(drawing.edges)} edges">',
        _arrow_heads(prefix),
    ]
    if master:
        parts += [_spoke(node) for node in drawing.nodes]
    both_ways = {(a, b) for a, b, _ in drawing.edges}
    for a, b, edge in drawing.edges:
        share = scale_weight(edge.weight, top_edge)
        parts.append(
            f'<path class="edge {_side(share)}" data-edge="{a} {b}" '
            f'd="{_arc(drawing.nodes[a], drawing.nodes[b], (b, a) in both_ways)}" '
            f'stroke-width="{1.5 + _MAX_STROKE * (edge.count - 1) / most:.1f}" '
            f'stroke-opacity="{0.25 + 0.75 * abs(share):.2f}" '
            f'marker-end="url(#{prefix}{_side(share)})">'
            f"<title>{escape(display_word(edge.source))} → {escape(display_word(edge.target))}: {edge.weight:+.4f}, "
            f"{edge.count:g} times</title></path>"
        )
    parts += [_node(node, k, scale_weight(node.weight, top_node), prefix) for k, node in enumerate(drawing.nodes)]
    if master:
        x, y = _WIDTH / 2, _HEIGHT / 2
        parts.append(
            f'<g class="node master"><circle cx="{x}" cy="{y}" r="9"/><text x="{x}" y="{y + 24}">master</text></g>'
        )
    return "\n".join([*parts, "</svg>"])


def graph_style() -> str:
    """Return the CSS of the elements of `to_svg`."""
    pro, contra = (f"rgb({', '.join(map(str, color))})" for color in (SUPPORTS, OPPOSES))
    return f"""
.graph {{ width: 100%; max-width: {_WIDTH}px; height: auto; }}
.graph .edge {{ fill: none; stroke: #8b949e; }}
.graph .edge.for {{ stroke: {pro}; }} .graph .edge.against {{ stroke: {contra}; stroke-dasharray: 6 3; }}
.graph marker path {{ fill: #8b949e; }}
.graph .tip-for path {{ fill: {pro}; }} .graph .tip-against path {{ fill: {contra}; }}
.graph .spoke {{ stroke: #8b949e; stroke-opacity: .25; stroke-dasharray: 2 3; }}
.graph .node circle {{ fill: #8b949e; }} .graph .node.for circle {{ fill: {pro}; }}
.graph .node.against circle {{ fill: {contra}; }}
.graph .node text {{ font: 13px system-ui, sans-serif; fill: currentColor; text-anchor: middle; paint-order: stroke;
  stroke: var(--page, #fff); stroke-width: 3px; }}
.graph a:focus circle, .graph a:hover circle {{ stroke: currentColor; stroke-width: 2px; }}
"""


def _side(share: float) -> str:
    return "even" if abs(share) < FAINT else "for" if share > 0 else "against"


def _position(node: Node) -> tuple[float, float]:
    return _MARGIN + node.x * (_WIDTH - 2 * _MARGIN), _MARGIN / 2 + node.y * (_HEIGHT - 1.3 * _MARGIN)


def _node(node: Node, number: int, share: float, prefix: str) -> str:
    x, y = _position(node)
    times = f", {len(node.spans)} times" if len(node.spans) > 1 else ""
    return (
        f'<a class="node {_side(share)}" id="{prefix}n{number}" href="#{prefix}w{number}" data-node="{number}" '
        f'tabindex="0"><title>{escape(display_word(node.word))}: {node.weight:+.4f}{times}</title>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{4 + 7 * abs(share):.1f}" '
        f'fill-opacity="{0.35 + 0.65 * abs(share):.2f}"/>'
        f'<text x="{x:.1f}" y="{y + 20:.1f}">{escape(_shorten(display_word(node.word)))}</text></a>'
    )


def _shorten(word: str, most: int = 24) -> str:
    return word if len(word) <= most else word[: most - 1] + "…"


def _arc(a: Node, b: Node, bent: bool) -> str:
    """Return the path between two nodes, bent if the reverse edge is drawn too."""
    (x1, y1), (x2, y2) = _position(a), _position(b)
    length = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1e-6)
    x2, y2 = x2 - 13 * (x2 - x1) / length, y2 - 13 * (y2 - y1) / length
    side = 0.18 if bent else 0.0
    middle = (x1 + x2) / 2 - side * (y2 - y1), (y1 + y2) / 2 + side * (x2 - x1)
    return f"M{x1:.1f} {y1:.1f} Q{middle[0]:.1f} {middle[1]:.1f} {x2:.1f} {y2:.1f}"


def _spoke(node: Node) -> str:
    x, y = _position(node)
    return f'<line class="spoke" x1="{_WIDTH / 2}" y1="{_HEIGHT / 2}" x2="{x:.1f}" y2="{y:.1f}"/>'


def _arrow_heads(prefix: str) -> str:
    heads = "".join(
        f'<marker id="{prefix}{side}" class="tip-{side}" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="9" '
        'markerHeight="9" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 L8 4 L0 8 z"/></marker>'
        for side in ("for", "against", "even")
    )
    return f"<defs>{heads}</defs>"
