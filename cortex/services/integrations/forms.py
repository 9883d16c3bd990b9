"""The form of an outside system: its fields for a page, the typed values checked, the secrets kept apart.

Fields come from the kind's pydantic model: `title` is the label, `description` the hint, `Literal` a choice.
"""

import re
import shlex
import string
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from msgspec import Struct
from pydantic import BaseModel, SecretStr, ValidationError
from pydantic.fields import FieldInfo

from cortex.base.errors import UserError
from cortex.base.form_words import what_is_wrong

REMOVE = "remove_"  # before a secret's name: the tick that takes the stored one away
Input = Literal["text", "lines", "number", "switch", "choice", "secret"]


class FormField(Struct, frozen=True, kw_only=True):
    """A field as a page draws it.

    `value`: as typed or stored, "" for every secret; `options`: value and words; `is_kept`: a secret is stored.
    `remove`: the name of the tick that removes it, "" where there is nothing that can go without another.
    """

    name: str
    label: str
    hint: str
    input: Input
    value: str
    options: tuple[tuple[str, str], ...] = ()
    is_required: bool = False
    is_kept: bool = False
    remove: str = ""
    is_removed: bool = False
    error: str = ""


class FormErrors(UserError):
    """The faults of a form. `fields`: name of the field -> a sentence."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__(" ".join(fields.values()), field=next(iter(fields), ""))
        self.fields = dict(fields)


def secrets_of(form: type[BaseModel]) -> tuple[str, ...]:
    """Names of the form's secret fields."""
    return tuple(name for name, field in form.model_fields.items() if field.annotation is SecretStr)


def typed_secret(typed: Mapping[str, Any], name: str) -> str:
    """A secret exactly as it was typed, less the line's end that comes with pasting; "" for none."""
    return str(typed.get(name) or "").removesuffix("\n").removesuffix("\r")


def removed_secrets(typed: Mapping[str, Any], kept: Collection[str]) -> tuple[str, ...]:
    """Return which of the stored secrets are to go, and no other is typed for."""
    return tuple(name for name in kept if typed.get(REMOVE + name) and not typed_secret(typed, name))


def untouched_secrets(typed: Mapping[str, Any], kept: Collection[str]) -> tuple[str, ...]:
    """Return which of the stored secrets stay as they are."""
    removed = removed_secrets(typed, kept)
    return tuple(name for name in kept if name not in removed and not typed_secret(typed, name))


def checked(form: type[BaseModel], typed: Mapping[str, Any], kept: Mapping[str, str]) -> BaseModel:
    """The form with these values, as text from a browser; an empty secret is the stored one of `kept`. FormErrors."""
    values: dict[str, Any] = {}
    stored = {name: kept[name] for name in untouched_secrets(typed, kept)}
    for name, field in form.model_fields.items():
        given = typed.get(name, "")
        if _input(field) == "secret":
            given = stored.get(name, "") or typed_secret(typed, name)
        elif isinstance(given, str):
            given = given.strip()
        if _input(field) == "switch":
            values[name] = given in (True, "1", "on", "true")
        elif _input(field) == "lines":
            values[name] = _parts(given) if isinstance(given, str) else tuple(given)
        elif given not in ("", None):
            values[name] = given
    try:
        return form.model_validate(values)
    except ValidationError as error:
        raise FormErrors(_slips(form, error)) from None  # its text would hold what was typed


def plain(form: BaseModel) -> dict[str, Any]:
    """The values without secrets, as they are stored."""
    return form.model_dump(mode="json", exclude=set(secrets_of(type(form))))


def sealed(form: BaseModel) -> dict[str, str]:
    """The secrets that are given, by field."""
    found = {name: getattr(form, name).get_secret_value() for name in secrets_of(type(form))}
    return {name: value for name, value in found.items() if value}


def fields_of(
    form: type[BaseModel], values: Mapping[str, Any], kept: Sequence[str], errors: Mapping[str, str]
) -> tuple[FormField, ...]:
    """The fields in their order. `kept`: secrets that are stored."""
    return tuple(
        FormField(
            name=name,
            label=field.title or name,
            hint=field.description or "",
            input=_input(field),
            value="" if field.annotation is SecretStr else _shown(values.get(name, _default(field))),
            options=_options(field),
            is_required=field.is_required() and name not in kept,
            is_kept=name in kept,
            remove=f"{REMOVE}{name}" if name in kept and not field.is_required() else "",
            is_removed=bool(values.get(f"{REMOVE}{name}")),
            error=errors.get(name, ""),
        )
        for name, field in form.model_fields.items()
    )


def _input(field: FieldInfo) -> Input:
    kind = field.annotation
    if kind is SecretStr:
        return "secret"
    if kind is bool:
        return "switch"
    if kind in (int, float):
        return "number"
    if get_origin(kind) is Literal:
        return "choice"
    return "lines" if get_origin(kind) is tuple else "text"


def _options(field: FieldInfo) -> tuple[tuple[str, str], ...]:
    """Return what may be chosen: value and words."""
    found = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
    return tuple((str(value), str(value) or "none") for value in found)


def _default(field: FieldInfo) -> Any:  # Any: a field's value
    return "" if field.is_required() else field.get_default(call_default_factory=True)


def _shown(value: Any) -> str:  # Any: a field's value
    if isinstance(value, bool):
        return "1" if value else ""
    if isinstance(value, float):
        return f"{value:.12g}"
    return " ".join(map(_quoted, map(str, value))) if isinstance(value, list | tuple) else str(value)


def _parts(text: str) -> tuple[str, ...]:
    """Return what is separated by spaces or commas; quotation marks keep both within one, as in a shell."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters, lexer.escape = f"{string.whitespace},", True, "", ""
    try:
        return tuple(lexer)
    except ValueError:  # a mark that is not closed
        return tuple(text.replace(",", " ").split())


def _quoted(part: str) -> str:
    if not re.search(r"[\s,'\"]", part):
        return part
    return f'"{part}"' if '"' not in part else f"'{part}'"


def _slips(form: type[BaseModel], error: ValidationError) -> dict[str, str]:
    """A sentence for each field that is wrong."""
    found: dict[str, str] = {}
    for one in error.errors(include_input=False, include_url=False):
        name = str(one["loc"][0]) if one["loc"] else ""
        field = form.model_fields.get(name)
        label = (field.title if field else "") or name
        words = what_is_wrong(one)
        sentence = f"{label}: {words}." if label else f"{words[:1].upper()}{words[1:]}."
        found.setdefault(name, sentence.replace("..", "."))
    return found
