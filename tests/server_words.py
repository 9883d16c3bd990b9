"""What model servers answered to requests that they did not take, by their documents and by reports of people.

The sources stand in the rows of `cortex/providers/servers.py`. Each: the server, what of the request it did not take,
its words, and what the words name: limits in tokens, a tool or a parameter, the place of a tool.
"""

# fmt: off
SAID: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    ("openrouter", "tools",
     "No endpoints found that support tool use. To learn more about provider routing, visit", {}),
    ("openrouter", "pictures", "No endpoints found that support image input", {}),
    ("openrouter", "model", "nobody/nothing is not a valid model ID", {}),
    ("openrouter", "credit", "Insufficient credits. Add more using https://openrouter.ai/settings/credits", {}),
    ("openrouter", "credit",
     "This request requires more credits, or fewer max_tokens. You requested up to 32000 tokens, but can"
     " only afford 2048.", {"output": "2048"}),
    ("openrouter", "window",
     "This endpoint's maximum context length is 131,072 tokens. However, you requested about 150,000 "
     "tokens", {"window": "131,072"}),
    ("openai", "window",
     "This model's maximum context length is 8192 tokens. However, your messages resulted in 8545 "
     "tokens.", {"window": "8192"}),
    ("openai", "window", "Your input exceeds the context window of this model. context_length_exceeded", {}),
    ("openai", "output",
     "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you "
     "provided 100000.", {"output": "16384"}),
    ("openai", "parameter",
     "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value "
     "is supported.", {"name": "temperature"}),
    ("openai", "schema",
     "Invalid schema for function 'add_task': In context=('properties', 'tags'), array schema missing "
     "items.", {"name": "add_task"}),
    ("openai", "credit",
     "You exceeded your current quota, please check your plan and billing details. insufficient_quota", {}),
    ("openai", "model", "The model `gpt-9` does not exist or you do not have access to it. model_not_found", {}),
    ("anthropic", "window", "prompt is too long: 213462 tokens > 200000 maximum", {"window": "200000"}),
    ("anthropic", "window",
     "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
     {"window": "200000"}),
    ("anthropic", "output",
     "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-"
     "sonnet-4-5", {"output": "64000"}),
    ("anthropic", "thinking", "messages.1.content.0: Invalid `signature` in `thinking` block", {}),
    ("anthropic", "thinking",
     "messages.3.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`.", {}),
    ("anthropic", "schema", "tools.3.custom.input_schema: JSON schema is invalid.", {"index": "3"}),
    ("anthropic", "credit", "Your credit balance is too low to access the Anthropic API.", {}),
    ("anthropic", "overloaded", "overloaded_error Overloaded", {}),
    ("anthropic", "model", "not_found_error model: claude-9", {}),
    ("google", "window",
     "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).", {"window": "1048575"}),
    ("google", "thinking", "Function call is missing a thought_signature in functionCall parts.", {}),
    ("google", "parameter",
     'Invalid JSON payload received. Unknown name "parallel_tool_calls": Cannot find field.',
     {"name": "parallel_tool_calls"}),
    ("google", "schema",
     "GenerateContentRequest.tools[0].function_declarations[2].parameters.properties[x].items: missing "
     "field.", {"index": "2"}),
    ("google", "overloaded", "The model is overloaded. Please try again later. UNAVAILABLE", {}),
    ("google", "overloaded", "You exceeded your current quota, please check your plan and billing details.", {}),
    ("google", "model", "models/gemini-9 is not found for API version v1main", {}),
    ("mistral", "ids", "Tool call id was call_abc but must be a-z, A-Z, 0-9, with a length of 9.", {}),
    ("mistral", "order", "Unexpected role 'user' after role 'tool'", {}),
    ("mistral", "order",
     "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant", {}),
    ("mistral", "window",
     "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context "
     "length", {"window": "32768"}),
    ("mistral", "thinking",
     '{"detail":[{"type":"extra_forbidden","loc":["body","messages",31,"assistant","reasoning_content"],"msg":"Extra'
     ' inputs are not permitted"}]}', {}),
    ("mistral", "parameter",
     '{"detail":[{"type":"extra_forbidden","loc":["body","max_completion_tokens"],"msg":"Extra inputs '
     'are not permitted","input":32000}]}', {"name": "max_completion_tokens"}),
    ("mistral", "overloaded", "Service tier capacity exceeded for this model.", {}),
    ("groq", "thinking",
     "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property "
     "'reasoning_content' is unsupported)]", {}),
    ("groq", "thinking", "messages[3].reasoning: reasoning is not supported with this model", {}),
    ("groq", "window", "Please reduce the length of the messages or completion. context_length_exceeded", {}),
    ("groq", "window",
     "Request too large for model `x` in organization `org_1` on tokens per minute (TPM): Limit 6000, "
     "Requested 9000, please reduce your message size and try again.", {"window": "6000"}),
    ("groq", "output",
     "`max_tokens` must be less than or equal to `32768`, the maximum value for `max_tokens` is less "
     "than the window", {"output": "32768"}),
    ("groq", "model", "The model `x` has been decommissioned. model_decommissioned", {}),
    ("deepseek", "thinking", "The `reasoning_content` in the thinking mode must be passed back to the API.", {}),
    ("deepseek", "parameter", "Thinking mode does not support this tool_choice", {"name": "tool_choice"}),
    ("deepseek", "credit", "Insufficient Balance", {}),
    ("deepseek", "filtered", "Content Exists Risk", {}),
    ("deepseek", "pictures",
     "Failed to deserialize the JSON body into the target type: messages[0]: unknown variant "
     "`image_url`, expected `text`", {}),
    ("deepseek", "model", "Model Not Exist", {}),
    ("xai", "window",
     "This model's maximum prompt length is 131072 but the request contains 537812 tokens.", {"window": "131072"}),
    ("xai", "credit", "Your team has either used all available credits or reached its monthly spending limit.", {}),
    ("xai", "parameter", "Model grok-3-mini does not support parameter presencePenalty.", {"name": "presencePenalty"}),
    ("together", "window",
     "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 8000 `inputs` "
     "tokens", {"window": "8193"}),
    ("together", "model", "Unable to access model nobody/nothing. Please visit the site to view supported models.", {}),
    ("azure", "filtered",
     "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. "
     "content_filter", {}),
    ("azure", "model", "The API deployment for this resource does not exist. DeploymentNotFound", {}),
    ("ollama", "tools", "registry.ollama.ai/library/gemma3:4b does not support tools", {}),
    ("ollama", "model", 'model "qwen9" not found, try pulling it first', {}),
    ("ollama", "overloaded", "server busy, please try again.  maximum pending requests exceeded", {}),
    ("lmstudio", "window",
     "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with"
     " context length of only 4096 tokens, which is not enough.", {"window": "4096"}),
    ("lmstudio", "window",
     "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: "
     "5000>= n_ctx: 4096)", {"window": "4096"}),
    ("llamacpp", "window",
     "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it", {"window": "4096"}),
    ("llamacpp", "window", "the request exceeds the available context size. try increasing the context size", {}),
    ("llamacpp", "pictures", "image input is not supported - hint: you may need to provide the mmproj", {}),
    ("llamacpp", "order", "Conversation roles must alternate user/assistant/user/assistant/...", {}),
    ("llamacpp", "tools", "tools param requires --jinja flag", {}),
    ("llamacpp", "overloaded", "Loading model unavailable_error", {}),
    ("vllm", "window",
     "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum context length is"
     " 4096 tokens and your request has 2104 input tokens (2000 > 4096 - 2104).", {"window": "4096"}),
    ("vllm", "tools", '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', {}),
    ("vllm", "pictures", "/models/x is not a multimodal model", {}),
    ("vllm", "model", "The model `x` does not exist.", {}),
    ("litellm", "parameter",
     "litellm.UnsupportedParamsError: openai does not support parameters: ['parallel_tool_calls'], for "
     "model=x", {"name": "parallel_tool_calls"}),
    ("litellm", "credit", "Budget has been exceeded! Current cost: 1.2, Max budget: 1.0 budget_exceeded", {}),
    ("litellm", "model", "/chat/completions: Invalid model name passed in model=x", {}),
)
# fmt: on
