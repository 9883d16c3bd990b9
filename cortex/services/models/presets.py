"""The providers and servers that the Models page offers, with the addresses that their own pages give (2026-11)."""

from dataclasses import dataclass

from cortex.services.models.files import Kind, host_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A provider as the form offers it. `base_url` "" = the maker's own. `keys_url`: where a key is made, "" = none.

    `is_local`: a server that people run on their own machine, mostly without a key.
    """

    id: str
    label: str
    provider: Kind = "openai"
    base_url: str = ""
    keys_url: str = ""
    is_local: bool = False

    @property
    def place(self) -> str:
        """The server as a person reads it."""
        return "" if self.id == OTHER else host_of(self.provider, self.base_url)


OTHER = "other"
PRESETS = (
    Preset(
        id="openrouter",
        label="OpenRouter",
        base_url="https://openrouter.ai/api/v1",
        keys_url="https://openrouter.ai/settings/keys",
    ),
    Preset(id="openai", label="OpenAI", keys_url="https://platform.openai.com/api-keys"),
    Preset(
        id="anthropic",
        label="Anthropic",
        provider="anthropic",
        keys_url="https://console.anthropic.com/settings/keys",
    ),
    Preset(
        id="gemini",
        label="Google Gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        keys_url="https://aistudio.google.com/apikey",
    ),
    Preset(
        id="mistral",
        label="Mistral",
        base_url="https://api.mistral.ai/v1",
        keys_url="https://console.mistral.ai/api-keys",
    ),
    Preset(
        id="groq", label="Groq", base_url="https://api.groq.com/openai/v1", keys_url="https://console.groq.com/keys"
    ),
    Preset(
        id="deepseek",
        label="DeepSeek",
        base_url="https://api.deepseek.com/v1",
        keys_url="https://platform.deepseek.com/api_keys",
    ),
    Preset(id="ollama", label="Ollama", base_url="http://127.0.0.1:11434/v1", is_local=True),
    Preset(id="lmstudio", label="LM Studio", base_url="http://127.0.0.1:1234/v1", is_local=True),
    Preset(id="llamacpp", label="llama.cpp", base_url="http://127.0.0.1:8080/v1", is_local=True),
    Preset(id="vllm", label="vLLM", base_url="http://127.0.0.1:8000/v1", is_local=True),
    Preset(id=OTHER, label="Other"),
)
