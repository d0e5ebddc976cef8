"""Maps of attributes: names to strings, numbers, flags."""

from __future__ import annotations

from collections.abc import Mapping

from everstep.wire.ifrt import values_pb2 as values


def encode(attributes: Mapping[str, str | bool | int | float]) -> values.AttributeMap:
    """The message for a map. Integers must fit 64 bits; floats are sent with 32."""
    message = values.AttributeMap()
    for name, value in attributes.items():
        match value:
            case bool():
                message.attributes[name].bool_value = value
            case int():
                message.attributes[name].int64_value = value
            case float():
                message.attributes[name].float_value = value
            case _:
                message.attributes[name].string_value = value.encode()
    return message


def decode_strings(message: values.AttributeMap) -> dict[str, str]:
    """The string attributes of a map."""
    return {
        name: value.string_value.decode(errors="replace")
        for name, value in message.attributes.items()
        if value.WhichOneof("value") == "string_value"
    }
