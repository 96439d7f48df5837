"""The API on a page, from its OpenAPI description, with examples that run against this very server."""

import json
from html import escape
from typing import Any

_EXAMPLES: dict[str, dict[str, Any]] = {
    "/predict": {"texts": ["a first document", "a second one"]},
    "/explain": {"text": "a document to explain", "method": "gradients"},
    "/what-if": {"text": "a document without its first word", "words": [0]},
}


def docs_page(description: dict[str, Any]) -> str:
    """Every endpoint: what it does, what it takes, what it answers."""
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>mpad: the API</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="style.css">'
        '<script type="module" src="docs.js"></script></head>'
        '<body class="docs"><main><h1>mpad, the API</h1><p>The same for machines: '
        '<a href="openapi.json">openapi.json</a>. The page to use a model by hand: <a href="./">here</a>.</p>'
        '<p><label>API key, if this server asks for one <input id="key" type="password" autocomplete="off"></label></p>'
    ]
    for path, methods in description["paths"].items():
        for method, what in methods.items():
            parts.append(f"<h2>{method.upper()} {escape(path)}</h2><p>{escape(what.get('description', ''))}</p>")
            body = what.get("requestBody")
            parts.append(_tried(method, path))
            if body:
                parts.append(f"<h3>takes</h3>{_shown(body['content']['application/json']['schema'])}")
            answered = ", ".join(f"{status}: {escape(one['description'])}" for status, one in what["responses"].items())
            parts.append(f"<p>{answered}</p>")
    schemas = description["components"]["schemas"]
    parts.append("<h2>what is answered</h2>")
    parts += [f"<h3>{escape(name)}</h3>{_shown(schema)}" for name, schema in schemas.items()]
    return "".join([*parts, "</main></body></html>"])


def _tried(method: str, path: str) -> str:
    """An example that can be changed and sent, and the same for a shell."""
    body = _EXAMPLES.get(path)
    name = f"try-{path.strip('/')}"
    asked = "" if body is None else escape(json.dumps(body, indent=1))
    field = f'<label for="{name}">body</label><textarea id="{name}" rows="4" spellcheck="false">{asked}</textarea>'
    data = "" if body is None else f" -H 'content-type: application/json' -d '{json.dumps(body)}'"
    return (
        f'<pre class="curl">{escape(f"curl -s localhost:8000{path}{data}")}</pre>'
        f'<form class="try" data-method="{method.upper()}" data-path="{escape(path.lstrip("/"))}">'
        f'{field if body is not None else ""}<button type="submit">Run</button>'
        '<pre hidden aria-live="polite"></pre></form>'
    )


def _shown(schema: dict[str, Any]) -> str:
    return f"<pre>{escape(json.dumps(schema, indent=1))}</pre>"
