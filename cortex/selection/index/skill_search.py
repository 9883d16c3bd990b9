"""Which of a user's skills fit a message: by the words they share, each as rare as it is in what people say.

So one skill alone is scored like one of many. Tainted skills are never shown: a title stands beside the user's own
words. `recall.py` weighs words in the same way.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter

from cortex.base import spelling
from cortex.base.skill import Skill, SkillFit, on_a_line
from cortex.selection.index import shipped_index
from cortex.selection.words import talk, text

LEAST = 0.2
MOST = 12
CHARACTERS = 4_000
DESCRIBED = 0.5  # what a word of the description counts beside one of the title
TYPO_LETTERS = 5
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
    known = _known(shown)
    asked = {_mended(term, known.get(term[0], ())): word for term, word in terms(said).items()}
    named = text.named(said, frozenset(skill.name for skill in shown))
    found = []
    for skill in shown:
        score, reason = _by_words(asked, skill)
        phrase = next((each for each in skill.phrases if _holds(text.words(said), text.words(each))), "")
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


def listing(shown: Sequence[SkillFit]) -> str:
    """Return what rides behind the user's message; "" for no skill."""
    return "\n".join((HEAD, *map(line, shown))) if shown else ""


def line(one: Skill | SkillFit) -> str:
    """A skill's line in it."""
    return f"- {one.name}: {on_a_line(one.title)}. {on_a_line(one.description)}"


def terms(said: str, noise: Collection[str] = ()) -> dict[str, str]:
    """The stems that say something, each with the word as it was written."""
    found: dict[str, str] = {}
    for word in text.words(said):
        found.setdefault(text.stem(word), word)
    common = talk.common_terms()
    return {term: word for term, word in found.items() if term not in common and term not in noise}


@lru_cache(maxsize=4_096)
def rarity(term: str) -> float:
    """Return how rare a stem is in what people say, 0 to 1: 1 for one that nobody says."""
    sayings = shipped_index.shipped().rarity
    return sayings.idf(term) / sayings.idf("")


def shared(asked: Iterable[str], met: Collection[str]) -> tuple[float, float]:
    """Return the share of the weight of all that were asked that was met, and how rare the rarest met term is."""
    weights = {term: rarity(term) for term in asked}
    return sum(weights[term] for term in met) / (sum(weights.values()) or 1.0), max(map(rarity, met), default=0.0)


@lru_cache(maxsize=16)
def _known(skills: tuple[Skill, ...]) -> dict[str, tuple[str, ...]]:
    """The words of these skills by their first letter, for slips of the pen."""
    words = sorted({term for skill in skills for part in _cut(skill) for term in part if len(term) >= TYPO_LETTERS - 1})
    return {letter: tuple(found) for letter, found in groupby(words, key=itemgetter(0))}


def _mended(term: str, known: tuple[str, ...]) -> str:
    """The known word that this one is a letter away from, else the word itself."""
    if term in known or len(term) < TYPO_LETTERS or not term.isalpha():
        return term
    return spelling.first_slip(term, known) or term


@lru_cache(maxsize=256)
def _cut(skill: Skill) -> tuple[frozenset[str], frozenset[str]]:
    """The terms that a skill is called by, and those of its description and phrases."""
    called = f"{text.spaced(skill.name.replace('-', ' '))} {skill.title}"
    return frozenset(terms(called)), frozenset(terms("\n".join((skill.description, *skill.phrases))))


def _by_words(asked: dict[str, str], skill: Skill) -> tuple[float, str]:
    """The share of the message's weight that the skill covers, as far as its rarest word tells, and the words that met.

    Shared words that many people say for many things prove nothing.
    """
    called, told = _cut(skill)
    met = [term for term in asked if term in called or term in told]
    if not met:
        return 0.0, ""
    title, _ = shared(asked, [term for term in met if term in called])
    whole, rarest = shared(asked, met)
    words = ", ".join(asked[term] for term in met)
    return round((title + DESCRIBED * (whole - title)) * rarest, 4), f"close in wording ({words})"


def _holds(said: tuple[str, ...], part: tuple[str, ...]) -> bool:
    return bool(part) and any(said[at : at + len(part)] == part for at in range(len(said) - len(part) + 1))
