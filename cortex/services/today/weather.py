"""The weather of the day, from Home Assistant's own entity where it has one; nothing where none answers in time.

Words and numbers are ours: of what comes from outside only known conditions and numbers are shown.
"""

import asyncio
import logging
from datetime import datetime, timedelta

from msgspec import Struct, field

from cortex.base.clock import Clock
from cortex.base.errors import CortexError
from cortex.ports.home_assistant import Entity, HomeAssistant
from cortex.ports.loop import Scope

ANSWERS_S = 0.8  # the page does not wait longer; a house that is connected answers from its index
HOLDS = timedelta(minutes=5)
HOLDS_LATE = timedelta(seconds=20)  # a house that did not answer in time is being connected meanwhile
KEPT_MOST = 200  # people
SIGNS = {
    "clear-night": "Clear",
    "cloudy": "Cloudy",
    "fog": "Fog",
    "hail": "Hail",
    "lightning": "Thunder",
    "lightning-rainy": "Thunderstorm",
    "partlycloudy": "Partly cloudy",
    "pouring": "Heavy rain",
    "rainy": "Rain",
    "snowy": "Snow",
    "snowy-rainy": "Sleet",
    "sunny": "Sunny",
    "windy": "Windy",
    "windy-variant": "Cloudy and windy",
}
UNITS = ("°C", "°F")
HOTTEST = 200  # no weather; NaN is not below it either

log = logging.getLogger(__name__)


class _Kept(Struct, frozen=True):
    words: str
    until: datetime


class Weather(Struct, frozen=True, kw_only=True):
    """Asks once in five minutes for each person; that nothing is there is kept as long."""

    scope: Scope
    clock: Clock
    _kept: dict[str, _Kept] = field(default_factory=dict)

    async def of(self, user_id: str) -> str:
        """Such as "Partly cloudy, 14 °C", as far as this person may see it; "" for none."""
        known, now = self._kept.get(user_id), self.clock()
        if known is not None and now < known.until:
            return known.words
        words, holds = await self._asked(user_id)
        self._kept.pop(user_id, None)
        self._kept[user_id] = _Kept(words, now + holds)
        if len(self._kept) > KEPT_MOST:
            self._kept.pop(next(iter(self._kept)))
        return words

    async def _asked(self, user_id: str) -> tuple[str, timedelta]:
        try:
            async with asyncio.timeout(ANSWERS_S):
                found = await self.scope.provide(HomeAssistant, user_id).find("", "weather", "", 1)
        except TimeoutError:
            return "", HOLDS_LATE
        except CortexError as error:  # not set up, not for this person, or away
            log.debug("today: no weather: %s", error)
            return "", HOLDS
        return (said(found.entities[0]) if found.entities else ""), HOLDS


def said(entity: Entity) -> str:
    """The words for it, "" for what is not known."""
    degrees, unit = entity.attributes.get("temperature"), entity.attributes.get("temperature_unit")
    words = [SIGNS[entity.state]] if entity.state in SIGNS else []
    if isinstance(degrees, int | float) and unit in UNITS and abs(degrees) < HOTTEST:
        words.append(f"{round(degrees)} {unit}")
    return ", ".join(words)
