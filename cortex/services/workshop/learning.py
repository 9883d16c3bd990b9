"""What use teaches about the choice of tools: cases are noted as turns end, admins answer them, answers act at once.

Privacy: another person's words are stored and shown only while that person shares them; counts are shown to admins.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base.errors import NotFound, UserError
from cortex.base.user import User
from cortex.selection.types import META, Snapshot
from cortex.selection.words import text
from cortex.services.tools.settings import ToolSettingsService
from cortex.services.tools.tools import ToolsService
from cortex.services.tools.words import WordsText, line, read, typed_of
from cortex.services.turns.tool_outcomes import SHARES
from cortex.storage.audit import AuditRepository
from cortex.storage.db import Database
from cortex.storage.learning import (
    AllCasesRepository,
    AnswersRepository,
    CasesRepository,
    LearningCaseRow,
    WordingAnswerRow,
)
from cortex.storage.preferences import PreferencesRepository
from cortex.storage.tool_settings import Kind, ToolWordRow
from cortex.toolkit.registry import Registry

ONLY = "see this page"  # for admins
CASES_READ = 2_000
WORDINGS_SHOWN = 8
UNUSED_SHOWN = 12
PHRASE_WORDS = (4, 3, 2)
NOT_NEEDED = "unneeded"  # the kind of an answer that agrees to a report


class Wording(Struct, frozen=True, kw_only=True):
    """One wording that needed the tool: how often, by how many people, how the tool came."""

    text_hash: str
    text: str
    count: int
    people: int
    came: Mapping[str, int]
    tools: tuple[str, ...]


class Suggestion(Struct, frozen=True, kw_only=True):
    """A tool that messages needed and did not get at first. `hidden`: cases whose words nobody here may see.

    `phrase`: words that several wordings share and other tools' examples lack, "" for none.
    """

    tool: str
    category: str
    total: int
    came: Mapping[str, int]
    wordings: tuple[Wording, ...]
    hidden: int
    phrase: str = ""


class Unneeded(Struct, frozen=True, kw_only=True):
    """A tool that people reported as not needed for a wording. `text`: "" where nobody here may see the words."""

    tool: str
    text_hash: str
    text: str
    count: int


class LearningPage(Struct, frozen=True, kw_only=True):
    """The page: open suggestions, most needed first; open reports; tools sent for nothing; answers, newest first."""

    suggestions: tuple[Suggestion, ...]
    unneeded: tuple[Unneeded, ...]
    unused: tuple[tuple[str, int], ...]
    answers: tuple[WordingAnswerRow, ...]
    cases: int


class _Group(Struct, kw_only=True):
    cases: list[LearningCaseRow] = field(default_factory=list)
    said: dict[str, str] = field(default_factory=dict)


class LearningService(Struct, frozen=True, kw_only=True):
    """The admins' side, and each person's own consent."""

    db: Database
    registry: Registry
    tools: ToolsService
    settings: ToolSettingsService

    async def shares(self, user: User) -> bool:
        """Tell whether this person lets admins see the words of messages that lacked a tool."""
        return bool(await self.db.repository(PreferencesRepository, user.id).get(SHARES, False))

    async def share(self, user: User, *, is_shared: bool) -> None:
        """Consent from now on, or take it back: then the words that were kept go at once."""
        async with self.db.transaction(user.id) as repository:
            await repository(PreferencesRepository).set(SHARES, is_shared)
            if not is_shared:
                await repository(CasesRepository).forget_words()

    async def page(self, user: User) -> LearningPage:
        """Return what is to be learned, as far as this admin may see it."""
        user.must_be_admin(ONLY)
        cases = await self.db.repository(AllCasesRepository).recent(CASES_READ)
        own = await self.db.repository(CasesRepository, user.id).said()
        answers = await self.db.repository(AnswersRepository).all()
        snapshot = await self.tools.snapshot()
        groups = self._groups(cases, own, answers)
        found = [_suggestion(tool, self._category(tool), group, snapshot) for tool, group in groups.items()]
        unused = Counter(name for case in cases for name in case.unused if self.registry.get(name))
        return LearningPage(
            suggestions=tuple(sorted(found, key=lambda each: (-each.total, each.tool))),
            unneeded=self._unneeded(cases, own, answers),
            unused=tuple(unused.most_common(UNUSED_SHOWN)),
            answers=tuple(answers),
            cases=len(cases),
        )

    async def add_example(self, user: User, tool: str, text_hash: str) -> str:
        """Make the wording an example of the tool; the text that was added."""
        wording = await self._wording(user, tool, text_hash)
        await self._add(user, tool, text_hash, "example", wording.text, wording.tools)
        return wording.text

    async def add_phrase(self, user: User, tool: str, phrase: str) -> str:
        """Make the words a phrase that speaks for the tool."""
        said = " ".join(phrase.split())
        if not text.words(said):
            raise UserError("Enter a phrase.", field="phrase")
        user.must_be_admin(ONLY)
        await self._add(user, tool, f"phrase {text.normal(said)}", "phrase", said, (tool,))
        return said

    async def agree(self, user: User, tool: str, text_hash: str) -> None:
        """A report is right: the tool is not needed for this wording. The next refit learns from it."""
        found = await self._report(user, tool, text_hash)
        if not found.text:
            raise UserError("These words are not shared: there is nothing that the model could learn from.")
        async with self.db.transaction() as repository:
            await repository(AnswersRepository).put(
                tool, text_hash, kind=NOT_NEEDED, category=self._category(tool), text=found.text, by=user.id
            )
            await repository(AuditRepository).add(user.id, "learning.agreed", tool, {"wording": text_hash})

    async def turn_down(self, user: User, tool: str, text_hash: str) -> None:
        """A suggestion or a report is wrong: do not show it again."""
        page = await self.page(user)
        open_report = next((one for one in page.unneeded if (one.tool, one.text_hash) == (tool, text_hash)), None)
        wording = open_report or await self._wording(user, tool, text_hash)
        async with self.db.transaction() as repository:
            category = self._category(tool)
            await repository(AnswersRepository).put(
                tool, text_hash, kind="", category=category, text=wording.text, by=user.id
            )
            await repository(AuditRepository).add(user.id, "learning.turned_down", tool, {"wording": text_hash})

    async def take_back(self, user: User, answer_id: str) -> WordingAnswerRow:
        """Undo an answer: a word that it added goes, the suggestion is open again."""
        user.must_be_admin(ONLY)
        async with self.db.transaction() as repository:
            answer = await repository(AnswersRepository).remove(answer_id)
            await repository(AuditRepository).add(user.id, "learning.taken_back", answer.tool, {"kind": answer.kind})
        if answer.kind in ("example", "phrase"):
            words = await self.settings.words(answer.category)
            word = _said_already(words, answer.kind, answer.text)
            kept = [one for one in words if one is not word]
            standing = {one.tool for one in await self.db.repository(AnswersRepository).all() if _is_alike(one, answer)}
            if word and standing:  # what was accepted for another tool stays
                kept.append(replace(word, tools=tuple(name for name in word.tools if name in standing)))
            await self.settings.save_words(user, answer.category, kept)
        return answer

    async def _add(self, user: User, tool: str, text_hash: str, kind: Kind, said: str, tools: tuple[str, ...]) -> None:
        """Add the word by the same door as the page of words, and remember that it came from here."""
        category = self._category(tool)
        words = await self.settings.words(category)
        before = _said_already(words, kind, said)
        every = tuple(dict.fromkeys((*(before.tools if before else ()), *tools)))
        word = ToolWordRow(category=category, kind=kind, text=said, text_key=text.normal(said), tools=every)
        typed = _with(typed_of(words), kind, line(word))
        await self.settings.save_words(user, category, read(self.registry, category, typed))
        async with self.db.transaction() as repository:
            await repository(AnswersRepository).put(
                tool, text_hash, kind=kind, category=category, text=said, by=user.id
            )

    async def _report(self, user: User, tool: str, text_hash: str) -> Unneeded:
        """An open report; NotFound for any other."""
        for one in (await self.page(user)).unneeded:
            if (one.tool, one.text_hash) == (tool, text_hash):
                return one
        raise NotFound("This report was already answered.")

    async def _wording(self, user: User, tool: str, text_hash: str) -> Wording:
        """A wording that this admin may see and nobody answered; NotFound for any other."""
        page = await self.page(user)
        for suggestion in page.suggestions:
            for wording in suggestion.wordings if suggestion.tool == tool else ():
                if wording.text_hash == text_hash:
                    return wording
        raise NotFound("This message is not shared, or was already decided.")

    def _unneeded(
        self, cases: Sequence[LearningCaseRow], own: Mapping[str, str], answers: Sequence[WordingAnswerRow]
    ) -> tuple[Unneeded, ...]:
        """The open reports of tools that were not needed, the most frequent first."""
        settled = {(answer.tool, answer.text_hash) for answer in answers}
        keys = [(tool, case.text_hash) for case in cases for tool in case.unneeded]
        said = {case.text_hash: case.text or own.get(case.turn_id, "") for case in reversed(cases)}
        return tuple(
            Unneeded(tool=tool, text_hash=key, text=" ".join(said[key].split()), count=count)
            for (tool, key), count in Counter(keys).most_common()
            if (tool, key) not in settled and self._category(tool, is_sure=False)
        )

    def _groups(
        self, cases: Sequence[LearningCaseRow], own: Mapping[str, str], answers: Sequence[WordingAnswerRow]
    ) -> dict[str, _Group]:
        """The open cases by the tool that they needed, with the words that may be seen."""
        settled = {(answer.tool, answer.text_hash) for answer in answers}
        phrases = [(answer.tool, text.words(answer.text)) for answer in answers if answer.kind == "phrase"]
        groups: dict[str, _Group] = {}
        for case in cases:
            said = case.text or own.get(case.turn_id, "")
            spoken = text.words(said)
            for tool in case.needed:
                if (tool, case.text_hash) in settled or not self._category(tool, is_sure=False):
                    continue
                if any(name == tool and _holds(spoken, phrase) for name, phrase in phrases):
                    continue
                group = groups.setdefault(tool, _Group())
                group.cases.append(case)
                if said:
                    group.said.setdefault(case.text_hash, " ".join(said.split()))
        return groups

    def _category(self, tool: str, *, is_sure: bool = True) -> str:
        found = self.registry.get(tool)
        if found is None or found.category == META:
            if is_sure:
                raise NotFound(f"There is no tool {tool!r}.")
            return ""
        return found.category


def _suggestion(tool: str, category: str, group: _Group, snapshot: Snapshot) -> Suggestion:
    """The group as the page shows it."""
    by_wording: dict[str, list[LearningCaseRow]] = {}
    for case in group.cases:
        by_wording.setdefault(case.text_hash, []).append(case)
    wordings = [
        Wording(
            text_hash=key,
            text=group.said[key],
            count=len(cases),
            people=len({case.owner_id for case in cases}),
            came=Counter(str(case.needed[tool]) for case in cases),
            tools=_tools(tool, cases),
        )
        for key, cases in by_wording.items()
        if key in group.said
    ]
    wordings.sort(key=lambda wording: (-wording.count, wording.text))
    return Suggestion(
        tool=tool,
        category=category,
        total=len(group.cases),
        came=Counter(str(case.needed[tool]) for case in group.cases),
        wordings=tuple(wordings[:WORDINGS_SHOWN]),
        hidden=sum(len(cases) for key, cases in by_wording.items() if key not in group.said),
        phrase=_phrase(category, [wording.text for wording in wordings], snapshot),
    )


def _tools(tool: str, cases: Sequence[LearningCaseRow]) -> tuple[str, ...]:
    """The tool, and what was called beside it each time."""
    beside = set(cases[0].called).intersection(*(case.called for case in cases)) - {tool}
    return (tool, *(name for name in cases[0].called if name in beside))


def _phrase(category: str, wordings: Sequence[str], snapshot: Snapshot) -> str:
    """The longest run of words that two wordings share and no example of another category has; "" for none."""
    elsewhere = [each.text for domain in snapshot.domains if domain.name != category for each in domain.examples]
    elsewhere += [each.text for each in snapshot.none]
    spoken = [text.words(wording) for wording in wordings]
    for size in PHRASE_WORDS:
        runs = Counter(
            run for words in spoken for run in {words[at : at + size] for at in range(len(words) - size + 1)}
        )
        for run, count in sorted(runs.items(), key=lambda item: (-item[1], item[0])):
            if count > 1 and any(len(word) > 3 for word in run) and not _is_said(run, elsewhere):
                return " ".join(run)
    return ""


def _is_said(run: tuple[str, ...], told: Sequence[str]) -> bool:
    """Tell whether one of these many texts has the words in a row; only one that has the longest is cut into words."""
    telling = max(run, key=len)
    return any(telling in said.casefold() and _holds(text.words(said), run) for said in told)


def _holds(said: tuple[str, ...], part: tuple[str, ...]) -> bool:
    return bool(part) and any(said[at : at + len(part)] == part for at in range(len(said) - len(part) + 1))


def _said_already(words: Sequence[ToolWordRow], kind: str, said: str) -> ToolWordRow | None:
    """The word of this kind and wording that the server added; None where there is none."""
    key = (kind, text.normal(said))
    return next((word for word in words if not word.is_left_out and (word.kind, word.text_key) == key), None)


def _is_alike(one: WordingAnswerRow, other: WordingAnswerRow) -> bool:
    """Tell whether both stand behind the same word."""
    mine, others = ((row.kind, row.category, text.normal(row.text)) for row in (one, other))
    return mine == others


def _with(typed: WordsText, kind: Kind, more: str) -> WordsText:
    """The form's texts with a line more."""
    if kind == "phrase":
        return replace(typed, phrases=f"{typed.phrases}\n{more}".strip())
    return replace(typed, examples=f"{typed.examples}\n{more}".strip())
