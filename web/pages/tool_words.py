"""Admin: how people here ask for the tools of a category. The effect of other words is shown before they are saved."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Form
from fastapi.responses import Response
from msgspec.structs import replace
from pydantic import BaseModel

from cortex.base.errors import UserError
from cortex.services.tools.listing import CategoryWords
from cortex.services.tools.words import Rival, WordsText, read, typed_of
from cortex.services.workshop.tool_effects import Effect
from cortex.services.workshop.tool_trials import RECIPE_NAMES
from web.bodies import TEXT_BYTES, takes
from web.render import Context, described
from web.routes import PageRouter
from web.visit import ReauthedAdminVisit, Visit

router = PageRouter()
HREF = "/admin/tools"
MESSAGES_MAX = 8_000


class WordsForm(BaseModel):
    """The form as a browser sends it. `do`: effect or save."""

    phrases: str = ""
    examples: str = ""
    no_examples: str = ""
    messages: str = ""
    recipe: str = "cortex"
    tool: str = ""
    do: str = "effect"


class WordsContext(Context, frozen=True, kw_only=True):
    """A category's words."""

    category: CategoryWords = described("the category's tools, and what it waits for")
    typed: WordsText = described("the three texts as typed or as kept")
    messages: str = described("messages to try, one a line", default="")
    recipe: str = described("the recipe that the effect is shown under", default="cortex")
    recipes: Sequence[str] = described("the recipes there are", default=RECIPE_NAMES)
    tool: str = described("the tool meant where a line names none, or empty", default="")
    rivals: Sequence[Rival] = described("phrases that other categories have too", default=())
    effect: Effect | None = described("what the words as typed would change", default=None)


@router.get(HREF + "/in/{category}")
async def show(visit: ReauthedAdminVisit, category: str, tool: str = "", no_example: str = "") -> Response:
    """The words as they are; `no_example` puts a shipped example among those to leave out."""
    typed = typed_of(await visit.services.tool_settings.words(category))
    if no_example and no_example not in typed.no_examples.splitlines():
        typed = replace(typed, no_examples=f"{typed.no_examples}\n{no_example}".strip())
    return await _page(visit, category, typed, WordsForm(tool=tool))


@router.post(HREF + "/in/{category}")
@takes(TEXT_BYTES)
async def change(visit: ReauthedAdminVisit, category: str, form: Annotated[WordsForm, Form()]) -> Response:
    """Show what these words would change, or save them."""
    await visit.services.tool_settings.words(category)
    typed = WordsText(**{name: getattr(form, name) for name in WordsText.__struct_fields__})
    try:
        words = read(visit.services.runtime.registry, category, typed, form.tool)
        if form.do == "save":
            count = await visit.services.tool_settings.save_words(visit.user, category, words)
            return visit.redirect(f"{HREF}/in/{category}", _save_message(count))
        tried = [said for said in form.messages[:MESSAGES_MAX].splitlines() if said.strip()]
        effect = await visit.services.tool_effects.preview(visit.user, category, words, tried, form.recipe)
    except UserError as refused:
        return await _page(visit, category, typed, form, refused=refused)
    return await _page(visit, category, typed, form, effect=effect)


def _save_message(count: int) -> str:
    if not count:
        return "Nothing was changed."
    return f"Saved: {count} {'line' if count == 1 else 'lines'}. Applies from the next message on."


async def _page(
    visit: Visit,
    name: str,
    typed: WordsText,
    form: WordsForm,
    *,
    effect: Effect | None = None,
    refused: UserError | None = None,
) -> Response:
    category = await visit.services.tool_listing.category(name)
    context = WordsContext(
        category=category,
        typed=typed,
        messages=form.messages,
        recipe=form.recipe,
        tool=form.tool if form.tool in category.tools else "",
        rivals=effect.rivals if effect else category.rivals,
        effect=effect,
    )
    return await visit.show("tool_words.html", context, block="effect", refused=refused)
