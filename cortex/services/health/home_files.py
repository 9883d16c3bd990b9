"""What is wrong in the files that a person keeps in their home: role files, the model registry, the persona.

Read by every page's frame and by the doctor, so that whoever wrote a slip finds it; a turn fails with the same words.
"""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

from cortex.base.errors import UserError
from cortex.base.user import User
from cortex.services.models.models import Models
from cortex.services.roles.role_names import RoleNames
from cortex.services.roles.roles import Roles


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeFiles:
    """Looks through them."""

    roles: Roles
    models: Models
    names: RoleNames

    async def slips(self, user: User) -> Sequence[str]:
        """A sentence for each file that cannot be taken as it is: its name and what is wrong; () when all is well."""
        readings: list[Awaitable[object]] = [self.models.registry(user), self.roles.persona(user)]
        readings += [self.roles.file(user, name) for name in await self.roles.own(user)]
        return tuple([slip for reading in readings if (slip := await _slip(reading))])


async def _slip(reading: Awaitable[object]) -> str:
    try:
        await reading
    except UserError as error:
        return error.message
    return ""
