"""Every form that takes a certificate refuses one that TLS cannot read, before anything is reached with it."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from cortex.integrations.aether_db.form import AetherDbForm
from cortex.integrations.cards.talk import TalkForm
from cortex.integrations.home_assistant.form import HomeAssistantForm
from cortex.services.models.files import ServerAddress

FORMS: dict[type[BaseModel], dict[str, Any]] = {
    AetherDbForm: {"host": "db.lan", "user": "reader", "schemas": ["shop"]},
    HomeAssistantForm: {"address": "http://ha.local:8123", "token": "t"},
    TalkForm: {"address": "https://cloud.example.org", "user": "cortex", "password": "word"},
    ServerAddress: {"base_url": "https://models.example.org/v1"},
}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@pytest.mark.parametrize(
    ("ca", "says"),
    [
        ("my certificate", "paste the certificate whole"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "this certificate cannot be read"),
    ],
    ids=["no certificate", "unreadable"],
)
def test_what_is_no_certificate_is_refused_on_every_form(form: type[BaseModel], ca: str, says: str) -> None:
    assert form.model_validate(FORMS[form])
    with pytest.raises(ValidationError, match=says):
        form.model_validate({**FORMS[form], "ca": ca})
