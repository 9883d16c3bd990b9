"""Admin: the settings of the server. Each group is a form; what could lock out goes back unless it is confirmed."""

from fastapi.responses import Response

from cortex.base.errors import CortexError, NotFound, UserError
from cortex.base.server_settings import GROUPS, SettingGroup, kind_of, shape_of
from cortex.services.upkeep.setting_lines import SettingsView, settings_view
from web.render import ADMIN, Context, NavEntry, described
from web.routes import PageRouter
from web.security import login_token
from web.visit import ReauthedAdminVisit, Visit

router = PageRouter()
HREF = "/admin/settings"
NAV = NavEntry(
    title="Settings",
    href=HREF,
    icon="gear",
    order=82,
    under=ADMIN,
    about="Address, e-mail, backups, limits: all settings of this server, and where each value comes from.",
)
PASSWORD = "password"  # noqa: S105 - the field's name


class ServerSettingsContext(Context, frozen=True, kw_only=True):
    """The settings."""

    view: SettingsView = described("every setting by group, those from outside, and what is on trial")
    open_group: str = described("the group whose form is open, or empty", default="")
    typed: dict[str, str] = described("what was typed into a form that was refused, by setting", default={})
    can_restart: bool = described("whether a button restarts this server", default=True)


@router.get(HREF)
async def show(visit: ReauthedAdminVisit, open: str = "") -> Response:
    """All of them."""
    return await _page(visit, open)


@router.post(f"{HREF}/trial/keep")
async def keep(visit: ReauthedAdminVisit) -> Response:
    """End the trial: what is tried stays."""
    await visit.services.server_settings.keep(visit.user)
    return visit.redirect(HREF, "The new settings stay.")


@router.post(f"{HREF}/trial/back")
async def take_back(visit: ReauthedAdminVisit) -> Response:
    """Let everything on trial go back at once."""
    await visit.services.server_settings.take_back(visit.user)
    return visit.redirect(HREF, "The settings are as before.")


@router.post(f"{HREF}/{{group}}")
async def save(visit: ReauthedAdminVisit, group: str) -> Response:
    """Set what was changed in one form."""
    return await _changed(visit, _group(group), {})


@router.post(f"{HREF}/{{group}}/default/{{name}}")
async def use_default(visit: ReauthedAdminVisit, group: str, name: str) -> Response:
    """Let one setting be as without this page."""
    return await _changed(visit, _group(group), {kind_of(name).name: None})


@router.post(f"{HREF}/{{group}}/undo/{{name}}")
async def undo(visit: ReauthedAdminVisit, group: str, name: str) -> Response:
    """Set one to what it was before its last change; once more brings the change back."""
    chosen = _group(group)
    try:
        is_confirmed = await _gave_password(visit, await visit.fields())
        await visit.services.server_settings.undo(visit.user, name, is_confirmed=is_confirmed)
    except CortexError as refused:
        return await _page(visit, chosen.id, refused=refused)
    return visit.redirect(f"{HREF}?open={chosen.id}", "Undone.")


async def _changed(visit: Visit, group: SettingGroup, values: dict[str, str | None]) -> Response:
    fields = await visit.fields()
    wanted = values or _typed(visit, group, fields)
    try:
        is_confirmed = await _gave_password(visit, fields)
        changed = await visit.services.server_settings.set(visit.user, wanted, is_confirmed=is_confirmed)
    except CortexError as refused:
        return await _page(visit, group.id, fields, refused)
    return visit.redirect(f"{HREF}?open={group.id}", "Saved." if changed else "Nothing was changed.")


def _typed(visit: Visit, group: SettingGroup, fields: dict[str, str]) -> dict[str, str | None]:
    """The form's values by setting: a switch that is off sends nothing, and an empty secret keeps the one there is."""
    found: dict[str, str | None] = {}
    for kind in group.kinds:
        shape, typed = shape_of(kind.name), fields.get(kind.name, "").strip()
        is_sent = bool(typed) if shape == "secret" else shape == "switch" or kind.name in fields
        if visit.services.server_settings.is_given(kind.name) or not is_sent:
            continue
        found[kind.name] = ("true" if typed else "false") if shape == "switch" else typed
    return found


async def _gave_password(visit: Visit, fields: dict[str, str]) -> bool:
    """Tell whether the password came with the form; UserError at its field when it is wrong."""
    if not fields.get(PASSWORD):
        return False
    try:
        await visit.services.accounts.confirm(login_token(visit.request), fields[PASSWORD])
    except CortexError as wrong:
        raise UserError(wrong.message, field=PASSWORD) from wrong
    return True


def _group(id: str) -> SettingGroup:
    for group in GROUPS:
        if group.id == id:
            return group
    raise NotFound("There are no such settings.")


async def _page(
    visit: Visit, open_group: str = "", typed: dict[str, str] | None = None, refused: CortexError | None = None
) -> Response:
    context = ServerSettingsContext(
        view=await settings_view(visit.services.server_settings),
        open_group=open_group,
        typed={name: value for name, value in (typed or {}).items() if name != PASSWORD},
        can_restart=visit.services.restarts.is_possible,
    )
    return await visit.show("server_settings.html", context, here=HREF, refused=refused)
