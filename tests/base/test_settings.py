"""Settings: where values come from, and that a wrong one is named in one line."""

import stat
from pathlib import Path

import pytest

from cortex.base import key_file
from cortex.base.errors import ConfigError
from cortex.base.server_settings import KINDS, shape_of
from cortex.base.settings import HIDDEN, Settings, env_example, load_settings, read_settings, unknown_variables

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("PORT", "99999", "CORTEX_PORT: must be at most 65535 (it is '99999')"),
        ("TIME_ZONE", "Mars", "CORTEX_TIME_ZONE: is no time zone"),
        ("PUBLIC_URL", "example.org", "CORTEX_PUBLIC_URL: must be an address such as"),
        ("TRUSTED_PROXIES", "proxy", "CORTEX_TRUSTED_PROXIES: 'proxy' does not appear"),
        ("MAX_ROUNDS", "26", "CORTEX_MAX_ROUNDS: must be at most 25"),
        ("MODEL_HOSTS", "box.lan", "CORTEX_MODEL_HOSTS: write host:port"),
        ("ALLOWED_FOLDERS", "code=here", "CORTEX_ALLOWED_FOLDERS: write name=/absolute/path"),
        ("DATABASE_URL", "mysql://x", "CORTEX_DATABASE_URL: must begin with sqlite: or postgresql:"),
        ("ALLOW_PLAIN_HTTP", "yes", "CORTEX_ALLOW_PLAIN_HTTP: must be '' or 'lan'"),
        ("NOTIFY_HOSTS", "box.lan", "CORTEX_NOTIFY_HOSTS: write host:port"),
        ("PUSH_SUBJECT", "mailto:me@localhost", "CORTEX_PUSH_SUBJECT: must be a real contact"),
        ("SMTP_HOST", "https://mail.lan", "CORTEX_SMTP_HOST: write the name of a host"),
        ("SMTP_HOST", "mail.example.org", "CORTEX_SMTP_FROM: is needed with CORTEX_SMTP_HOST"),
        ("SMTP_FROM", "Cortex", "CORTEX_SMTP_FROM: is no e-mail address"),
        ("SMTP_CA_FILE", "nowhere.pem", "CORTEX_SMTP_CA_FILE: is no file here"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_wrong_value_is_one_line_that_names_it(
    name: str, value: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORTEX_" + name, value)
    with pytest.raises(ConfigError) as caught:
        load_settings(None, home=tmp_path)
    assert caught.value.message.startswith(says)
    assert "\n" not in caught.value.message


def test_a_mail_password_never_goes_out_readable(tmp_path: Path) -> None:
    login = {"smtp_user": "ada@example.org", "smtp_password": "hunter2", "smtp_security": "none"}
    with pytest.raises(ConfigError, match="CORTEX_SMTP_SECURITY: would send the password readable") as caught:
        load_settings(None, home=tmp_path, smtp_host="mail.example.org", **login)
    assert "hunter2" not in caught.value.message
    here = load_settings(None, home=tmp_path, smtp_host="127.0.0.1", **login)
    assert (here.smtp_from, "hunter2" in repr(here)) == ("ada@example.org", False)


def test_a_short_secret_key_is_refused_without_showing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORTEX_SECRET_KEY", "hunter2")
    with pytest.raises(ConfigError) as caught:
        load_settings(None, home=tmp_path)
    assert "CORTEX_SECRET_KEY" in caught.value.message
    assert "hunter2" not in caught.value.message


def test_the_key_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    assert load_settings(None, home=tmp_path).secret_key == ""
    made = key_file.made_key(tmp_path / "secret.key")
    settings = load_settings(None, home=tmp_path)
    assert (settings.secret_key, key_file.made_key(settings.key_file)) == (made, made)
    assert len(made) >= 48
    assert stat.S_IMODE(settings.key_file.stat().st_mode) == 0o600
    assert made not in repr(settings)
    assert [path.name for path in tmp_path.iterdir()] == ["secret.key"]


@pytest.mark.parametrize("content", [b"x", b"\xff" * 60], ids=["too short", "no text"])
def test_a_damaged_key_file_stops_the_start(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "secret.key").write_bytes(content)
    with pytest.raises(ConfigError, match="is not a valid key"):
        load_settings(None, home=tmp_path)


def test_the_environment_wins_over_the_env_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("CORTEX_PORT=1111\nCORTEX_ALLOWED_HOSTS=one.example, two.example\n")
    monkeypatch.setenv("CORTEX_PORT", "2222")
    settings = load_settings(tmp_path / ".env", home=tmp_path)
    assert settings.port == 2222
    assert settings.allowed_hosts == ("one.example", "two.example")


@pytest.mark.parametrize("content", [b"CORTEX_PORT=1\n\xff\xfe", "CORTEX_PORT=1\n".encode("utf-16")])
def test_an_env_file_that_is_no_text_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(content)
    with pytest.raises(ConfigError, match=r"\.env' cannot be read: it is not UTF-8 text"):
        load_settings(tmp_path / ".env", home=tmp_path)


def test_folders_are_read_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORTEX_ALLOWED_FOLDERS", "code=/srv/code, docs=/srv/docs")
    folders = load_settings(None, home=tmp_path).folders
    assert folders == {"code": "/srv/code", "docs": "/srv/docs"}


def test_databases_default_to_files_in_home_and_follow_postgresql(tmp_path: Path) -> None:
    settings = load_settings(None, home=tmp_path)
    assert settings.database == f"sqlite:///{tmp_path}/cortex.db"
    assert settings.engine_database == f"sqlite:///{tmp_path}/engine.db"
    shared = load_settings(None, home=tmp_path, database_url="postgresql://u@db/cortex")
    assert shared.engine_database == "postgresql://u@db/cortex"


def test_a_home_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="CORTEX_HOME"):
        load_settings(None, home=tmp_path / "file")


def test_a_misspelt_variable_is_pointed_at_its_likeliest_name(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("CORTEX_HOSTS=x\nfoo bar\n")
    lines = unknown_variables({"CORTEX_PROT": "1", "PATH": "x"}, tmp_path / ".env")
    assert lines == [
        f"Line 2 of {str(tmp_path / '.env')!r} cannot be read",
        "CORTEX_HOSTS is not a setting; did you mean CORTEX_HOST?",
        "CORTEX_PROT is not a setting; did you mean CORTEX_PORT?",
    ]


def test_env_example_is_current() -> None:
    assert (ROOT / ".env.example").read_text() == env_example()


@pytest.mark.parametrize("url", ["https://example.org/cortex", "https://example.org/a/", "http://127.0.0.1:80/x"])
def test_a_public_address_below_a_path_is_refused_with_what_to_do(url: str) -> None:
    with pytest.raises(ConfigError, match=r"CORTEX_PUBLIC_URL.*no path.*host name of its own"):
        read_settings(None, public_url=url)


def test_whatever_is_kept_out_of_logs_is_kept_out_of_pages_and_sealed() -> None:
    quiet = {name for name, field in Settings.model_fields.items() if not field.repr}
    assert quiet
    assert {name for name in quiet if name not in HIDDEN} == set()
    assert {name for name in quiet & KINDS.keys() if shape_of(name) != "secret"} == set()
