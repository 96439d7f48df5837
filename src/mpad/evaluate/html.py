"""Self-contained HTML pages without scripts: style, tables, cells."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2126; --faint: #525c66; --line: #ccd3da; --page: #ffffff; --mark: 23,
  121, 106; --miss: 189, 47, 116; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8edf3; --faint: #a4adb8; --line: #3d444d; --page: #0d1117;
  --mark: 69, 196, 173; --miss: 242, 125, 178; } }
body { font: 16px/1.6 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 64rem; margin: 0
  auto; padding: 1.4rem; }
h1 { font-size: 1.6rem; margin: 0; } h2 { margin: 2.2rem 0 .4rem; font-size: 1.2rem; }
.quiet { color: var(--faint); font-size: .9rem; } .score { font-size: 2.2rem; font-weight: 700; }
.row { display: flex; flex-wrap: wrap; gap: .6rem 3rem; align-items: flex-end; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
td, th { padding: .12rem .7rem .12rem 0; text-align: left; } th { color: var(--faint); font-weight: 600; }
.number { text-align: right; } .scroll { overflow: auto; } .confusion td { padding: .1rem .45rem; text-align: right; }
.confusion tr:first-child th { vertical-align: bottom; padding: 0 .2rem .3rem; }
.confusion tr:first-child span { writing-mode: vertical-rl; transform: rotate(180deg); max-height: 14rem; }
@media (max-width: 36rem) { body { padding: .8rem; } table { font-size: .78rem; } .wide { display: none; }
  td, th { padding: .1rem .4rem .1rem 0; } .confusion td { padding: .1rem .2rem; } }
.bar { display: inline-block; height: .7em; border-radius: .2em; background: rgb(var(--mark)); }
.mistake { border-left: 3px solid var(--line); padding-left: .8rem; margin: 1rem 0; }
.mistake .mpad { max-width: none; margin: 0; padding: 0; background: none; }
.columns { display: flex; flex-wrap: wrap; gap: 1rem 3rem; } svg { max-width: 100%; height: auto; overflow: visible; }
"""


def html_page(title: str, parts: Sequence[str]) -> str:
    """Return a page of ready parts."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )


def html_table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table of ready cells."""
    head = "".join(f"<th>{name}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(cells)}</tr>" for cells in rows)
    return f"<div class='scroll'><table><tr>{head}</tr>{body}</table></div>"


def text_cell(value: Any) -> str:
    """Return a table cell with escaped text."""
    return f"<td>{escape(str(value))}</td>"


def number_cell(value: str) -> str:
    """Return a table cell that is aligned to the right."""
    return f"<td class='number'>{value}</td>"
