"""Which of a user's skills fit a message: their titles and descriptions, searched as tools are (`search.py`).

What people say for tools stands among the skills as the measure of how rare a word is, so that one skill alone is
scored like one of many. Tainted skills are never shown: a title stands beside the user's own words.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from cortex.base import scan
from cortex.base.skill import Skill, SkillFit, on_a_line
from cortex.selection import bags, talk, text
from cortex.selection.bags import UNKNOWN_WORTH
from cortex.selection.index import TYPO_LETTERS

if TYPE_CHECKING:
    from cortex.selection.search import Bm25
    from cortex.selection.shipped_index import WordRarity

LEAST = 0.12
MOST = 12
CHARACTERS = 4_000
RARE_SHARE, FEW = 0.02, 3
HEAD = "The user's own how-tos that may fit; read one with skill_read(name) before you do the work:"


def fits(said: str, skills: tuple[Skill, ...]) -> tuple[SkillFit, ...]:
    """The skills to show for this message, best first: at most MOST, titles and descriptions within CHARACTERS."""
    found: list[SkillFit] = []
    left = CHARACTERS
    for fit in judged(said, skills):
        left -= len(fit.title) + len(fit.description)
        if fit.score < LEAST or left < 0 or len(found) == MOST:
            break
        found.append(fit)
    return tuple(found)


def judged(said: str, skills: tuple[Skill, ...]) -> tuple[SkillFit, ...]:
    """Every skill that has anything in common with the message, best first; nothing for a blank one or small talk."""
    shown = tuple(skill for skill in skills if not skill.is_tainted)
    if not shown or talk.is_small_talk(said):
        return ()
    by_words = _by_words(said, _shelf(shown))
    named = text.named(said, frozenset(skill.name for skill in shown))
    words = text.words(said)
    found = []
    for skill in shown:
        score, reason = by_words.get(skill.name, (0.0, ""))
        phrase = next((each for each in skill.phrases if _holds(words, text.words(each))), "")
        if phrase:
            score, reason = 1.0, f'you wrote "{phrase}"'
        elif skill.name in named and (f"`{skill.name}`" in said or not skill.name.isalnum()):
            score, reason = 1.0, "you named it"
        if score:
            fit = SkillFit(
                name=skill.name, title=skill.title, description=skill.description, score=score, reason=reason
            )
            found.append(fit)
    return tuple(sorted(found, key=lambda fit: (-fit.score, fit.name)))


def rarity(term: str) -> float:
    """How rare a stem is in what people say, 0 to 1: 1 for one that nobody says."""
    sayings = _rarity()
    return sayings.idf(term) / sayings.idf("")


def listing(shown: Sequence[SkillFit]) -> str:
    """What rides behind the user's message; "" for no skill."""
    return "\n".join((HEAD, *map(line, shown))) if shown else ""


def line(one: Skill | SkillFit) -> str:
    """A skill's line in it."""
    return f"- {one.name}: {on_a_line(one.title)}. {on_a_line(one.description)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shelf:
    """Skills as texts beside what people say, by their places. `by_letter`: their words, for slips of the pen."""

    skills: tuple[Skill, ...]
    words: "Bm25"
    by_letter: dict[str, tuple[str, ...]]


def _rarity() -> "WordRarity":
    """How rare words are in what people say."""
    found: WordRarity = scan.load("cortex.selection.shipped_index").shipped().rarity
    return found


@lru_cache(maxsize=16)
def _shelf(skills: tuple[Skill, ...]) -> _Shelf:
    made = [_bag(skill) for skill in skills]
    letters: dict[str, dict[str, None]] = {}
    for bag in made:
        for term in bag:
            letters.setdefault(term[:1], {})[term] = None
    words: Bm25 = scan.load("cortex.selection.search").Bm25.of(made, among=_rarity())
    by_letter = {letter: tuple(terms) for letter, terms in letters.items()}
    return _Shelf(skills=skills, words=words, by_letter=by_letter)


def _bag(skill: Skill) -> bags.Bag:
    """A skill's words: what it is called weighs most, as a tool's name does."""
    found: Counter[str] = Counter()
    named = dict.fromkeys(bags.telling(f"{text.spaced(skill.name.replace('-', ' '))} {skill.title}"))
    for terms, weight in (
        (named, bags.NAME_WEIGHT),
        (bags.telling(skill.description), bags.SUMMARY_WEIGHT),
        (bags.telling("\n".join(skill.phrases)), bags.EXAMPLE_WEIGHT),
    ):
        for term in terms:
            found[term] += weight  # type: ignore[assignment]  # a Counter of weights
    return found


def _by_words(said: str, shelf: _Shelf) -> dict[str, tuple[float, str]]:
    """Name -> the share of the message's weight that the skill covers, and the words that met.

    The rarest-term gate: shared words that many people say for many things prove nothing.
    """
    asked = dict.fromkeys((_mended(term, shelf) for term in bags.telling(said)), 1.0)
    sayings = _rarity()
    few = max(FEW, round(sayings.count * RARE_SHARE))
    telling = {term for term in asked if sayings.holders(term) <= few}
    if not telling:
        return {}
    scores = shelf.words.scores(asked)
    spoken = {text.stem(word): word for word in text.words(said)}
    weight = shelf.words.ceiling(asked, UNKNOWN_WORTH)
    found = {}
    for slot, skill in enumerate(shelf.skills):
        met = [term for term in asked if shelf.words.holds(term, slot)]
        if not telling.isdisjoint(met):
            told = ", ".join(spoken.get(term, term) for term in met if not term.startswith("\u00a7"))
            found[skill.name] = (round(min(1.0, float(scores[slot]) / weight), 4), f"close in wording ({told})")
    return found


def _mended(term: str, shelf: _Shelf) -> str:
    """The skills' word that this one is a slip of the pen for, else the word itself."""
    if shelf.words.has(term) or len(term) < TYPO_LETTERS or not term.isalpha():
        return term
    allowed = 1 if len(term) < 8 else 2
    spelling = scan.load("cortex.selection.spelling")
    near = [
        (spelling.slips(term, word, allowed), word)
        for word in shelf.by_letter.get(term[:1], ())
        if abs(len(word) - len(term)) <= 1 and len(word) >= TYPO_LETTERS - 1
    ]
    slips, word = min(near, default=(allowed + 1, ""))
    return word if slips <= allowed else term


def _holds(said: tuple[str, ...], part: tuple[str, ...]) -> bool:
    return bool(part) and any(said[at : at + len(part)] == part for at in range(len(said) - len(part) + 1))
