"""What lets somebody in as a person, and what was allowed in their name: listed for them, and ended after a scare.

Logins, tokens of other programs, devices that show notifications, web addresses of jobs, standing permissions, accounts
at messengers. Ended in the transaction of whatever ends them; nothing of it is revived by opening an account again.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Literal, get_args

from msgspec import Struct

from cortex.storage.accounts import AccountsRepository, LoginsRepository
from cortex.storage.api_tokens import ApiTokensRepository
from cortex.storage.approvals import GrantsRepository
from cortex.storage.audit import AuditRepository
from cortex.storage.db import Opener
from cortex.storage.devices import ActionLinksRepository, DevicesRepository
from cortex.storage.hooks import HooksRepository
from cortex.storage.messengers import MessengersRepository
from cortex.storage.secrets import SecretsRepository
from cortex.storage.slots import SlotsRepository
from cortex.storage.turns import TurnRow, TurnsRepository

CredentialKind = Literal["login", "token", "device", "hook", "grant", "messenger"]
KINDS: tuple[CredentialKind, ...] = get_args(CredentialKind)
ENDED = "access was ended"
WITHDRAWN = "The web address that started it was removed."


class Credential(Struct, frozen=True, kw_only=True):
    """One of them. `name`: what its person calls it, of a login the browser's own words."""

    kind: CredentialKind
    id: str
    name: str

    @property
    def key(self) -> str:
        """Return what says which one to keep."""
        return f"{self.kind}:{self.id}"


async def credentials_of(repository: Opener) -> Sequence[Credential]:
    """All that lets somebody in as this person now, kind by kind."""
    logins = await repository(LoginsRepository).list()
    tokens = await repository(ApiTokensRepository).list()
    devices = await repository(DevicesRepository).list()
    hooks = await repository(HooksRepository).all()
    grants = await repository(GrantsRepository).list()
    links = await repository(MessengersRepository).links()
    return [
        *(Credential(kind="login", id=one.id, name=one.agent) for one in logins),
        *(Credential(kind="token", id=one.id, name=f"{one.name} …{one.hint}") for one in tokens),
        *(Credential(kind="device", id=one.id, name=one.name) for one in devices),
        *(Credential(kind="hook", id=one.job_id, name=one.name) for one in hooks),
        *(Credential(kind="grant", id=one.id, name=" ".join((one.tool, one.destination)).strip()) for one in grants),
        *(Credential(kind="messenger", id=one.id, name=one.name) for one in links),
    ]


async def end_credentials(repository: Opener, *, by: str, keep: Collection[str] = ()) -> None:
    """End all of it, but what `keep` names: a credential's key, or a kind. Links that were sent out end in any case.

    by: the id of who does it, for the audit log.
    """
    credentials = await credentials_of(repository)
    ended = [credential for credential in credentials if credential.key not in keep and credential.kind not in keep]
    if "login" not in keep:  # in one statement: nobody logs in behind the list
        kept = [credential.id for credential in credentials if credential.kind == "login" and credential not in ended]
        await repository(LoginsRepository).end_all(but=kept)
    for credential in ended:
        if credential.kind != "login":
            await _ENDS[credential.kind](repository, credential.id)
    person = repository(LoginsRepository).owner_id
    await repository(AccountsRepository).forget_links(person)
    await repository(ActionLinksRepository).forget_all()
    if ended:
        await repository(AuditRepository).add(by, "access.ended", person, dict(Counter(one.kind for one in ended)))


async def end_token(repository: Opener, token_id: str) -> Sequence[TurnRow]:
    """Let nobody in with this token any more; the turns that it asked for, which have to end now. NotFound."""
    tokens, turns = repository(ApiTokensRepository), repository(TurnsRepository)
    token = await tokens.get(token_id)
    active = [turn for turn in await turns.active() if turn.channel == "api"]
    asked = [turn for turn in active if await tokens.of_turn(turn.id) == token]
    for turn in asked:
        await turns.ask_to_stop(turn.id)  # whoever runs it ends it, also after a kill
    await tokens.remove(token_id)
    await repository(AuditRepository).add(tokens.owner_id, "token.revoked", token.name, {"token": token_id})
    return asked


async def _end_hook(repository: Opener, job_id: str) -> None:
    """Return what came by it and has not begun yet does not begin any more."""
    for slot in await repository(HooksRepository).waiting(job_id):
        await repository(SlotsRepository).withdraw(slot, WITHDRAWN)
    await repository(HooksRepository).remove(job_id)
    await repository(SecretsRepository).remove(f"hook:{job_id}")


_ENDS: dict[CredentialKind, Callable[[Opener, str], Awaitable[object]]] = {
    "token": end_token,
    "device": lambda repository, id: repository(DevicesRepository).remove(id, ENDED),
    "hook": _end_hook,
    "grant": lambda repository, id: repository(GrantsRepository).revoke(id),
    "messenger": lambda repository, id: repository(MessengersRepository).remove_link(id),
}
