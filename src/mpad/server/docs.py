"""The API on a page, from its OpenAPI description: without a script, and without asking anybody."""

import json
from html import escape
from typing import Any


def docs_page(description: dict[str, Any]) -> str:
    """Every endpoint: what it does, what it takes, what it answers."""
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>mpad: the API</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="style.css">'
        '</head><body class="docs"><main><h1>mpad, the API</h1><p>The same for machines: '
        '<a href="openapi.json">openapi.json</a>. The page to use a model by hand: <a href="./">here</a>.</p>'
    ]
    for path, methods in description["paths"].items():
        for method, what in methods.items():
            parts.append(f"<h2>{method.upper()} {escape(path)}</h2><p>{escape(what.get('description', ''))}</p>")
            body = what.get("requestBody")
            if body:
                parts.append(f"<h3>takes</h3>{_shown(body['content']['application/json']['schema'])}")
            answered = ", ".join(f"{status}: {escape(one['description'])}" for status, one in what["responses"].items())
            parts.append(f"<p>{answered}</p>")
    schemas = description["components"]["schemas"]
    parts.append("<h2>what is answered</h2>")
    parts += [f"<h3>{escape(name)}</h3>{_shown(schema)}" for name, schema in schemas.items()]
    return "".join([*parts, "</main></body></html>"])


def _shown(schema: dict[str, Any]) -> str:
    return f"<pre>{escape(json.dumps(schema, indent=1))}</pre>"
