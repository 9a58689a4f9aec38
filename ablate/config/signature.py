"""Check a `_target_` node against the constructor it names, before anything is built.

Two kinds of constructor. Ours takes positional-only parameters from the builder and keyword-only ones from the config:
the node must list exactly the keyword-only ones, and each value is checked against its annotation (pydantic, strict).
Any other (torch's optimisers, say) is checked for names only, by binding.
"""

import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError

from ablate import isolation
from ablate.config.errors import ConfigError, nearest

SPECIAL = ("_target_", "_partial_", "_convert_", "_recursive_", "_args_")


def check_node(path: str, node: Any, *, foreign: bool = False) -> None:
    """Check `node` and every `_target_` node within; raises ConfigError with path, value and nearest name.

    `foreign` says that the constructors are another library's, even if they look like ours.
    """
    if not isinstance(node, Mapping):
        return
    for key, value in node.items():
        check_node(f"{path}.{key}", value, foreign=foreign)
    if "_target_" not in node:
        return
    target = locate(path, node["_target_"])
    given = {key: value for key, value in node.items() if key not in SPECIAL}
    parameters = inspect.signature(target).parameters
    _check_names(path, node, given, parameters)
    if not foreign and _is_ours(parameters):
        _check_complete(path, node, given, parameters)
        _check_types(path, node, target, given)
    else:
        _check_numbers(path, given, parameters)


def _check_numbers(path: str, given: Mapping[str, Any], parameters: Mapping[str, inspect.Parameter]) -> None:
    """A foreign constructor's annotations are not ours to enforce, but text for what defaults to a number is a slip."""
    for key, value in given.items():
        default = parameters[key].default if key in parameters else None
        if isinstance(default, int | float) and (value is None or isinstance(value, str)):
            raise ConfigError(f"{path}.{key}={value!r}: must be a number or truth value like its default {default}")


def locate(path: str, target: Any) -> Callable[..., Any]:
    """Import what a `_target_` names."""
    module, _, name = str(target).rpartition(".")
    try:
        found = getattr(isolation.imported(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{path}._target_={target}: cannot be imported ({error})") from error
    if not callable(found):
        raise ConfigError(f"{path}._target_={target}: is no class or function but {found!r}")
    return typing.cast(Callable[..., Any], found)


def modules_of(node: Any) -> Iterator[str]:
    """Yield the modules that a node and those within name."""
    if isinstance(node, Mapping):
        for value in node.values():
            yield from modules_of(value)
        if "_target_" in node:
            yield str(node["_target_"]).rpartition(".")[0]


def _is_ours(parameters: Mapping[str, inspect.Parameter]) -> bool:
    ours = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.KEYWORD_ONLY)
    return all(parameter.kind in ours for parameter in parameters.values())


def _check_names(
    path: str, node: Mapping[str, Any], given: Mapping[str, Any], parameters: Mapping[str, inspect.Parameter]
) -> None:
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    allowed = [name for name, p in parameters.items() if p.kind is not inspect.Parameter.POSITIONAL_ONLY]
    for key, value in given.items():
        if key not in allowed:
            raise ConfigError(f"{path}.{key}={value}: {_short(node)} has no key '{key}'; {nearest(key, allowed)}")


def _check_complete(
    path: str, node: Mapping[str, Any], given: Mapping[str, Any], parameters: Mapping[str, inspect.Parameter]
) -> None:
    for name, parameter in parameters.items():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name not in given:
            raise ConfigError(f"{path}.{name}: missing; {_short(node)} needs it in its YAML")


def _check_types(path: str, node: Mapping[str, Any], target: Callable[..., Any], given: Mapping[str, Any]) -> None:
    try:
        hints = _hints(target)
    except NameError as error:
        raise ConfigError(f"{path}: the annotations of {_short(node)} cannot be read ({error}); import it") from error
    for key, value in given.items():
        if key not in hints or (isinstance(value, Mapping) and "_target_" in value):
            continue
        try:
            _adapter(hints[key]).validate_python(value, strict=True)
        except ValidationError as error:
            raise ConfigError(f"{path}.{key}={value!r}: {_reasons(error)}") from error


def _hints(target: Callable[..., Any]) -> dict[str, Any]:
    function = target.__init__ if inspect.isclass(target) else target
    return typing.get_type_hints(function)


def _adapter(annotation: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(annotation, config=ConfigDict(arbitrary_types_allowed=True))
    except PydanticUserError:  # a type with a config of its own
        return TypeAdapter(annotation)


def _reasons(error: ValidationError) -> str:
    return "; ".join(sorted({detail["msg"] for detail in error.errors()}))


def _short(node: Mapping[str, Any]) -> str:
    return str(node["_target_"]).rpartition(".")[2]
