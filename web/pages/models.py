"""The person's models: add, test the connection, edit, remove, and which role tries which in what order."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Form
from fastapi.responses import Response
from pydantic import BaseModel, Field

from cortex.app import Cortex
from cortex.base.errors import ConfigError, Conflict, CortexError, UserError
from cortex.base.model import OFFLINE, ModelEntry, assumed_window
from cortex.base.user import User
from cortex.services.models import prices
from cortex.services.models.files import FileFact, FileTest, Slips, host_of
from cortex.services.models.models import RegistryFault
from cortex.services.models.presets import Preset
from cortex.services.models.probe import TestReport
from cortex.services.models.profiles import chosen_of, in_words
from cortex.services.models.registry import ModelRegistry, default_profile
from cortex.services.models.sharing import BorrowedModel, PersonShare, ShareForm
from cortex.services.models.store import BROKEN
from web.deps import Text, Texts
from web.errors import not_found
from web.render import MORE, Context, NavEntry, described, wants_fragment
from web.routes import PageRouter
from web.security import local_path
from web.visit import UserVisit, Visit

router = PageRouter()


async def _state(services: Cortex, user: User) -> str:
    """Return how many are connected."""
    count = len((await services.models.shown(user)).entries)
    return f"{count} connected" if count else "None yet"


NAV = NavEntry(
    title="Models",
    href="/models",
    icon="model",
    order=34,
    under=MORE,
    about="The models that answer you, their order and prices.",
    state=_state,
)
CHAIN_LENGTH = 3

SHARE_FIELDS = ("share", "share_tokens", "share_usd", "share_people", "whom", "own_tokens", "own_usd")


class ModelFormInput(BaseModel):
    """The form as a browser sends it: text, and nothing for a switch that is off. The service checks it."""

    previous: str = ""
    name: str = ""
    provider: str = "openai"
    model: str = ""
    base_url: str = ""
    ca: str = ""
    api_key: str = ""
    forget_key: str = ""
    context_tokens: str = ""
    max_output_tokens: str = "4096"
    max_rounds: str = ""
    timeout_s: str = "120"
    streams: str = ""
    tools: str = ""
    parallel_calls: str = ""
    sees: str = ""
    profile: str = "found"
    input_usd: str = ""
    output_usd: str = ""
    cached_usd: str = ""
    share: str = ""
    share_tokens: str = ""
    share_usd: str = ""
    share_people: list[str] = Field(default_factory=list)
    whom: list[str] = Field(default_factory=list)
    own_tokens: list[str] = Field(default_factory=list)
    own_usd: list[str] = Field(default_factory=list)

    def values(self) -> dict[str, Any]:
        """Return what the service takes."""
        plain = self.model_dump(
            exclude={
                "previous",
                "streams",
                "tools",
                "parallel_calls",
                "forget_key",
                "input_usd",
                "output_usd",
                "cached_usd",
                *SHARE_FIELDS,
            }
        )
        switches = {name: bool(getattr(self, name)) for name in ("streams", "tools", "parallel_calls", "forget_key")}
        prices = {name: getattr(self, name) for name in ("input_usd", "output_usd", "cached_usd")}
        return {**plain, **switches, "price": {name: value for name, value in prices.items() if value.strip()}}

    def wanted(self) -> ShareForm:
        """Return who may use the model, as the service takes it."""
        lines = zip_longest(self.whom, self.own_tokens, self.own_usd, fillvalue="")
        people = [
            PersonShare(id=id, is_chosen=id in self.share_people, limit_tokens=tokens, limit_usd=usd)
            for id, tokens, usd in lines
            if id
        ]
        return ShareForm(
            audience=self.share, limit_tokens=self.share_tokens, limit_usd=self.share_usd, people=tuple(people)
        )


class ModelsContext(Context, frozen=True, kw_only=True):
    """The list and the chains."""

    registry: ModelRegistry = described("entries, default chain, role -> chain, which have a key")
    names: Sequence[tuple[str, str]] = described("models to choose from: value, words; first is none")
    presets: Sequence[Preset] = described("providers and servers to connect")
    hosts: Mapping[str, str] = described("own model -> its server", default_factory=dict)
    waiting_at: str = described("the server whose key is stored without a model", default="")
    chain_length: int = described("how many places a chain has on this page", default=CHAIN_LENGTH)
    report: TestReport | None = described("what a test found", default=None)
    is_part: bool = described("whether the list goes along with the report", default=False)
    fault: RegistryFault | None = described("why the file cannot be read", default=None)
    shared: Mapping[str, str] = described("own model -> with whom it is shared, in words", default_factory=dict)
    limits: Mapping[str, str] = described("another's model -> what the reader may take a day", default_factory=dict)


class ModelContext(Context, frozen=True, kw_only=True):
    """One model's form."""

    typed: ModelFormInput = described("the fields; never the key")
    has_key: bool = described("whether a key is stored", default=False)
    tested: FileTest | None = described("what the last test of the stored model found", default=None)
    learned: Sequence[FileFact] = described("what its server was seen to refuse", default=())
    others: Sequence[str] = described("models that use the same stored key", default=())
    report: TestReport | None = described("what a test found", default=None)
    errors: Mapping[str, str] = described("field -> why saving was refused", default_factory=dict)
    sharing: ShareForm | None = described("who may use it, for an admin", default=None)
    borrowed: Sequence[BorrowedModel] = described("what others took with it lately", default=())
    unguarded: str = described("why its limit holds nothing back", default="")
    window: int = described("the tokens in force where none are given")
    window_unsaid: int = described("the same where the server says nothing either")
    caching: str = described("what is in force of its cache, in words; nothing for an address not given", default="")
    is_unpriced: bool = described("whether nobody knows what the stored model costs", default=False)


@router.get("/models")
async def show(visit: UserVisit) -> Response:
    """The models and the chains."""
    return await visit.show("models.html", await _list(visit))


@router.get("/models/new")
async def new(visit: UserVisit, preset: str = "other") -> Response:
    """An empty form, filled for one provider."""
    kind = next((one for one in visit.services.models.presets if one.id == preset), None)
    if kind is None:
        raise not_found()
    typed = ModelFormInput(provider=kind.provider, base_url=kind.base_url, streams="1", tools="1", parallel_calls="1")
    return await _form(visit, typed)


@router.get("/models/edit")
async def edit(visit: UserVisit, name: str) -> Response:
    """A model to change."""
    return await _form(visit, _typed(await _entry(visit, name)))


@router.post("/models")
async def save(visit: UserVisit, typed: Annotated[ModelFormInput, Form()]) -> Response:
    """Add or change it; the first one becomes what every role uses."""
    try:
        entry = await visit.services.model_sharing.save(visit.user, typed.values(), typed.previous, typed.wanted())
    except (UserError, Conflict) as refused:
        return await _form(visit, typed, refused=refused, status=refused.status)
    unguarded = await visit.services.model_sharing.unguarded(visit.user, entry.name)
    return visit.redirect("/models", f"Saved: {entry.name}. {unguarded}" if unguarded else f"Saved: {entry.name}")


@router.post("/models/test")
async def try_form(visit: UserVisit, typed: Annotated[ModelFormInput, Form()]) -> Response:
    """Try what the form says, without saving it."""
    try:
        report = await visit.services.models.test(visit.user, typed.values(), typed.previous)
    except (UserError, ConfigError) as refused:
        report = TestReport(is_ok=False, message=refused.message)
        return await _form(visit, typed, report=report, refused=refused, status=422, block="report")
    return await _form(visit, typed, report=report, block="report")


@router.post("/models/test-saved")
async def try_saved(visit: UserVisit, name: Text = "") -> Response:
    """Try a stored model, and keep what it turned out to be able to do."""
    await _entry(visit, name)
    try:
        report = await visit.services.models.test_saved(visit.user, name)
    except (UserError, ConfigError) as refused:
        report = TestReport(is_ok=False, message=refused.message)
    return await visit.show("models.html", await _list(visit, report=report), block="report")


@router.post("/models/send-tools")
async def send_tools(visit: UserVisit, name: Text = "", back: Text = "") -> Response:
    """Send tools to a model that did not call one in its test."""
    await visit.services.models.send_tools(visit.user, name)
    return visit.redirect(local_path(back, "/models"), f"Tools are sent to {name}.")


@router.post("/models/forget")
async def forget(visit: UserVisit, name: Text = "", what: Text = "", value: Text = "") -> Response:
    """Let a model be as it is set, whatever its server was seen to refuse."""
    registry = await visit.services.models.registry(visit.user)
    if registry.get(name) is None:
        raise not_found()
    await visit.services.models.learned.forget(visit.user.id, name, what, value)
    is_own = any(entry.name == name for entry in registry.own)
    back = f"/models/edit?{urlencode({'name': name})}" if is_own else "/models#shared"
    return visit.redirect(back, f"Forgotten: {name} is asked as it is set again.")


@router.get("/models/remove")
async def ask_remove(visit: UserVisit, name: str) -> Response:
    """Really?"""
    await _entry(visit, name)
    is_shared = name in await visit.services.model_sharing.words(visit.user)
    others = " People it is shared with lose access." if is_shared else ""
    return await visit.ask(
        title=f"Remove {name}?",
        text=f"Its key is deleted and it is removed from every model order.{others} Chats stay as they are.",
        action=f"/models/remove?{urlencode({'name': name})}",
        words="Remove",
        back="/models",
    )


@router.post("/models/remove")
async def remove(visit: UserVisit, name: str) -> Response:
    """Forget the model and its key."""
    await visit.services.model_sharing.remove(visit.user, name)
    return visit.redirect("/models", f"Removed: {name}")


@router.post("/models/restore")
async def restore(visit: UserVisit) -> Response:
    """Go back to the last file that could be read."""
    await visit.services.models.restore(visit.user)
    return visit.redirect("/models", f"Restored. The file that could not be read is now {BROKEN} in your folder.")


@router.post("/models/chain")
async def set_chain(visit: UserVisit, names: Texts = None) -> Response:
    """The order in which every role that has none of its own tries models."""
    try:
        await visit.services.models.set_chain(visit.user, [name for name in names or () if name])
    except (UserError, Conflict) as refused:
        return await visit.show("models.html", await _list(visit), refused=refused)
    return visit.redirect("/models#chains", "Saved.")


async def _entry(visit: Visit, name: str) -> ModelEntry:
    found = (await visit.services.models.shown(visit.user)).set_as(name)
    if found is None:
        raise not_found()
    return found


async def _list(visit: Visit, *, report: TestReport | None = None) -> ModelsContext:
    registry = await visit.services.models.shown(visit.user)
    return ModelsContext(
        registry=registry,
        names=[("", "none"), *((entry.name, entry.name) for entry in registry.entries), (OFFLINE.name, "offline demo")],
        presets=await prices.offered(visit.services.models.presets),
        hosts={entry.name: host_of(entry.provider, entry.base_url) for entry in registry.own},
        waiting_at=host_of(registry.waiting.provider, registry.waiting.base_url) if registry.waiting else "",
        report=report,
        is_part=report is not None and wants_fragment(visit.request),
        fault=await visit.services.models.fault(visit.user),
        shared=await visit.services.model_sharing.words(visit.user),
        limits=await visit.services.model_sharing.limits(visit.user),
    )


async def _form(
    visit: Visit,
    typed: ModelFormInput,
    *,
    report: TestReport | None = None,
    refused: CortexError | None = None,
    status: int = 200,
    block: str = "content",
) -> Response:
    registry = await visit.services.models.shown(visit.user)
    known = {entry.name: registry.set_as(entry.name) or entry for entry in registry.own}
    errors = _errors(refused)
    is_fresh = refused is None and report is None  # what was typed stays while it is tested and mended
    sharing = visit.services.model_sharing
    stored = known.get(typed.previous)
    found = default_profile(typed.provider, typed.model, typed.base_url)
    profile = stored.profile if stored else found
    unsaid = assumed_window(profile, found)
    context = ModelContext(
        typed=typed.model_copy(update={"api_key": ""}),
        has_key=typed.previous in registry.with_key,
        tested=registry.tested.get(typed.previous),
        learned=registry.learned.get(typed.previous, ()),
        others=registry.key_mates(typed.previous),
        report=report,
        error=refused.message if refused and not report and not errors else "",
        errors=errors,
        sharing=await sharing.form(visit.user, typed.previous, None if is_fresh else typed.wanted())
        if visit.user.is_admin
        else None,
        borrowed=await sharing.borrowed(visit.user, model=typed.previous)
        if visit.user.is_admin and typed.previous
        else (),
        unguarded=await sharing.unguarded(visit.user, typed.previous) if is_fresh and typed.previous else "",
        window=stored.context_tokens if stored and "context_tokens" not in stored.typed else unsaid,
        window_unsaid=unsaid,
        caching=await visit.services.profiles.told(visit.user, stored)
        if stored
        else in_words(profile)
        if typed.base_url
        else "",
        is_unpriced=not typed.input_usd.strip()
        and typed.previous in known
        and await sharing.is_unpriced(visit.user, typed.previous),
    )
    return await visit.show("model.html", context, block=block, status=status)


def _errors(refused: CortexError | None) -> Mapping[str, str]:
    """The fields that are to blame, each with a sentence."""
    if isinstance(refused, Slips):
        return dict(refused.fields)
    field = refused.field if isinstance(refused, UserError) else ""
    return {field: refused.message} if refused is not None and field else {}


def _typed(entry: ModelEntry) -> ModelFormInput:
    """A stored model as the form shows it."""
    price = entry.price
    return ModelFormInput(
        previous=entry.name,
        name=entry.name,
        provider=entry.provider,
        model=entry.model,
        base_url=entry.base_url,
        ca=entry.ca,
        context_tokens=str(entry.context_tokens) if "context_tokens" in entry.typed else "",
        max_output_tokens=str(entry.max_output_tokens),
        max_rounds=_shown(entry.max_rounds),
        timeout_s=_shown(entry.timeout_s),
        streams="1" if entry.streams else "",
        tools="1" if entry.tools else "",
        parallel_calls="1" if entry.parallel_calls else "",
        profile=chosen_of(entry),
        sees={True: "yes", False: "no", None: ""}[entry.sees],
        input_usd=_shown(price.input_usd),
        output_usd=_shown(price.output_usd),
        cached_usd=_shown(price.cached_usd),
    )


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:g}"
