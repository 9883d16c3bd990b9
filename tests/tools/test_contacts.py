"""Names of contacts as addresses: of mail and of guests; whom words mean; and what is no contact."""

import pytest

from cortex.base.errors import ToolFailed
from cortex.base.user import User
from cortex.ports.contacts import Contacts
from cortex.ports.outgoing import Mail
from cortex.toolkit.contacts import address_of, meant
from tests.plain_contacts import SHARED, PlainContacts, person
from tests.tool_world import World
from tests.tools.test_notifications import Outbox

MIA, OTHER = person("Mia Keller", "home:mia@example.org"), person("Mia Ott", "ott@example.org")
KARIM = person("Karim Haddad", "home:karim@home.example", "work:karim@work.example")
OLA = person("Ola Berg")
BENS = person("Ola Berg", "berg@example.org", book=SHARED)
JOSE = person("José Ortiz", "jose@example.org", nickname="Pepe")


@pytest.fixture
def held(world: World) -> PlainContacts:
    contacts = PlainContacts([MIA, OTHER, KARIM, OLA, JOSE])
    world.wired |= {Contacts: contacts, Mail: Outbox()}
    return contacts


@pytest.mark.parametrize(
    ("said", "address"),
    [
        ("mia keller", "mia@example.org"),
        ("Keller", "mia@example.org"),
        ("Karim (work)", "karim@work.example"),
        ("pepe", "jose@example.org"),
        ("José Ortiz", "jose@example.org"),
        ("someone@example.org", "someone@example.org"),
        ("Nobody Known", ""),
        ("", ""),
        ("keller@", ""),
    ],
)
@pytest.mark.usefixtures("held")
async def test_a_name_means_the_address_of_its_contact(world: World, ann: User, said: str, address: str) -> None:
    assert await address_of(world.ctx(ann), said) == address


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Mia", "2 contacts fit 'Mia'; ask the user for the whole name"),
        ("Karim", "has 2 addresses; ask the user which, such as Karim (home). There are: home, work"),
        ("Karim (moon)", "has 2 addresses"),
        ("Ola", "has no e-mail address"),
    ],
)
@pytest.mark.usefixtures("held")
async def test_what_is_not_plain_is_asked_and_quotes_no_contact(world: World, ann: User, said: str, told: str) -> None:
    with pytest.raises(ToolFailed) as failed:
        await address_of(world.ctx(ann), said)
    assert told in failed.value.message
    assert not failed.value.is_tainted
    for secret in ("Keller", "Ott", "Haddad", "@"):
        assert secret not in failed.value.message


async def test_ones_own_contact_is_meant_before_that_of_another(world: World, ann: User, held: PlainContacts) -> None:
    held.people = [BENS, person("Ola Berg", "own@example.org")]
    assert await address_of(world.ctx(ann), "Ola Berg") == "own@example.org"
    held.people = [BENS]
    assert await address_of(world.ctx(ann), "Ola Berg") == "berg@example.org"


async def test_an_address_that_is_none_is_sent_to_by_nobody(world: World, ann: User, held: PlainContacts) -> None:
    held.people = [person("Eve", "x, mallory@evil.example")]
    with pytest.raises(ToolFailed, match="addresses"):
        await address_of(world.ctx(ann), "Eve")


@pytest.mark.usefixtures("held")
async def test_who_is_looked_up_by_name_counts_as_private(world: World, ann: User) -> None:
    ctx = world.ctx(ann)
    await address_of(ctx, "someone@example.org")
    assert not ctx.private_looks
    await address_of(ctx, "Keller")
    assert ctx.private_looks


@pytest.mark.usefixtures("held")
async def test_mail_goes_to_the_address_that_a_name_means(world: World, ann: User) -> None:
    text = await world.text(ann, "email_send", to="Keller, ben@example.org", subject="Tea", text="At four?")
    assert text == "Sent to mia@example.org, ben@example.org."
    with pytest.raises(ToolFailed, match="2 contacts fit"):
        await world.text(ann, "email_send", to="Mia", subject="Tea", text="At four?")


async def test_what_was_allowed_is_sent_whatever_the_contact_says_by_then(
    world: World, ann: User, held: PlainContacts
) -> None:
    tool = world.registry.tools["email_send"]
    assert tool.aim is not None
    given = {"to": "Keller", "subject": "Tea", "text": "At four?"}
    ctx = world.ctx(ann, call_id="one")
    assert await tool.aim(ctx, **given) == "mia@example.org"
    held.people = [person("Mia Keller", "mallory@evil.example")]
    again = world.ctx(ann, call_id="one", is_again=True)
    assert (await world.run(again, "email_send", **given)).text == "Sent to mia@example.org."


async def test_whom_words_mean(world: World, ann: User, held: PlainContacts) -> None:
    assert (await meant(world.ctx(ann), "karim")).name == "Karim Haddad"
    assert (await meant(world.ctx(ann), f"#{MIA.id[-8:]}")).name == "Mia Keller"
    for said, told in (("Mia", "2 contacts fit"), ("Zoe", "No contact is called"), (" ", "Say which contact")):
        with pytest.raises(ToolFailed, match=told):
            await meant(world.ctx(ann), said)
    held.people.append(person("Mia", "m@example.org"))
    assert (await meant(world.ctx(ann), "mia")).name == "Mia", "a whole name is meant before a part of one"


async def test_a_look_up_says_few_and_never_all(world: World, ann: User, held: PlainContacts) -> None:
    held.people = [person(f"Ida {number:03}") for number in range(50)]
    text = await world.text(ann, "contact_find", name="ida")
    assert "... and 42 more" in text
    with pytest.raises(ToolFailed, match="Say whom"):
        await world.text(ann, "contact_find")
    assert await world.text(ann, "contact_find", name="Zoe") == "No contact fits 'Zoe'."


async def test_birthdays_of_the_next_days(world: World, ann: User, held: PlainContacts) -> None:
    held.people = [
        person("Ida", birthday="1990-11-25"),
        person("Bo", birthday="--11-22"),
        person("Al", birthday="--12-30"),
    ]
    text = await world.text(ann, "contact_find", birthday_days=7)
    assert text.splitlines() == ["- 2026-11-22: Bo", "- 2026-11-25: Ida, 36"]
