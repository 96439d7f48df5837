"""A request's body, checked, and what is said of one that is wrong."""

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from mpad.server.errors import Problem

_NAMED = ("missing", "extra_forbidden")  # problems with a field that is not where it should be, or should not be
_Body = TypeVar("_Body", bound=BaseModel)


async def read_body(request: Request, kind: type[_Body]) -> _Body:
    """The request's body, checked; what is wrong with it becomes one sentence."""
    try:
        return kind.model_validate_json(await request.body())
    except ValidationError as error:
        result = error.errors(include_url=False, include_input=False)
        first = next((one for one in result if one["type"] == "value_error"), result[0])
        if first["type"] == "json_invalid":
            raise Problem(400, f"the body is not valid JSON in UTF-8: {first['msg'].partition(': ')[2]}") from None
        named = {*kind.model_fields, "source", "target"} | ({first["loc"][-1]} if first["type"] in _NAMED else set())
        where = ".".join(str(part)[:100] for part in first["loc"] if part in named or isinstance(part, int))
        said = first["msg"].removeprefix("Value error, ")
        raise Problem(422, f"{where or 'the body'}: {said[:1].lower()}{said[1:]}") from None


def body_schema(kind: type[BaseModel]) -> dict[str, Any]:
    """The schema of a body that the handler reads itself."""
    schema = kind.model_json_schema()
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": _inlined(schema)}}}}


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without references of its own."""
    known = schema.pop("$defs", {})

    def put(value: Any) -> Any:
        if isinstance(value, dict):
            name = value.get("$ref", "").rpartition("/")[2]
            return put(known[name]) if name else {key: put(inner) for key, inner in value.items()}
        return [put(inner) for inner in value] if isinstance(value, list) else value

    result: dict[str, Any] = put(schema)
    return result
