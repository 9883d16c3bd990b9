"""The words of the further servers; `words.py` says what they are. Read 2026-11-27."""

from tests.model_servers.words import ANTHROPIC, GOOGLE, MISTRAL, OPENAI, OPENROUTER, Words

# console.groq.com/docs/errors; github.com/janhq/jan/issues/8136, thepersonalaicompany/amurex-backend/issues/51,
# fanenr/chatbot/issues/21, skapadia3214/groq-moa/issues/8, huggingface/smolagents/issues/1119
_GROQ: Words = {
    "key": (401, "Invalid API Key", {"code": "invalid_api_key"}),
    "model": (404, "The model `{model}` does not exist or you do not have access to it.", {"code": "model_not_found"}),
    "busy": (429, "Rate limit reached for model `{model}` in organization `org_x` service tier `on_demand` on tokens "
             "per minute (TPM): Limit 6000, Used 5000, Requested 2000. Please try again in 2s.",
             {"type": "tokens", "code": "rate_limit_exceeded"}),
    "window": (400, "Please reduce the length of the messages or completion.",
               {"param": "messages", "code": "context_length_exceeded"}),
    "output": (400, "`max_tokens` must be less than or equal to `{limit}`, the maximum value for `max_tokens` is less "
               "than the `context_window` for this model", {"param": "max_tokens"}),
    "tools": (400, "`tool calling` is not supported with this model", {}),
    "pictures": (400, "messages[1].content must be a string", {}),
    "schema": (400, "invalid JSON schema for tool {tool}, tools[{index}].function.parameters: "
               "`/properties/paths`: missing items", {}),
    "parameter": (400, "`{param}` is not supported with this model", {"param": "{param}"}),
    "unknown_field": (400, "property '{field}' is unsupported", {}),
    "message_field": (400, "'messages.{index}' : for 'role:assistant' the following must be satisfied[('messages."
                      "{index}' : property '{field}' is unsupported)]", {}),
    "tool_use_failed": (400, "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more "
                        "details.", {"code": "tool_use_failed"}),
    "request": (400, "{said}", {}),
    "server": (503, "Service Unavailable", {"type": "internal_server_error"}),
}  # fmt: skip

# api-docs.deepseek.com/quick_start/error_codes and guides/thinking_mode; github.com/evalstate/fast-agent/issues/621,
# MGdaasLab/WHartTest/issues/95, we0-dev/we0/issues/56
_DEEPSEEK: Words = {
    "key": (401, "Authentication Fails, Your api key: ****rong is invalid", {
        "type": "authentication_error", "code": "invalid_request_error"}),
    "model": (400, "Model Not Exist", {"code": "invalid_request_error"}),
    "credit": (402, "Insufficient Balance", {"type": "unknown_error", "code": "invalid_request_error"}),
    "busy": (503, "Service is too busy. We advise users to temporarily switch to alternative LLM API service "
             "providers.", {"type": "service_unavailable_error", "code": "service_unavailable_error"}),
    "window": (400, "This model's maximum context length is {window} tokens. However, you requested {tokens} tokens "
               "({tokens} in the messages, 0 in the completion). Please reduce the length of the messages or "
               "completion.", {"code": "invalid_request_error"}),
    "output": (400, "Invalid max_tokens value, the valid range of max_tokens is [1, {limit}]",
               {"code": "invalid_request_error"}),
    "tools": (400, "{model} does not support Function Calling", {"code": "invalid_request_error"}),
    "pictures": (400, "Failed to deserialize the JSON body into the target type: messages[1]: unknown variant "
                 "`image_url`, expected `text` at line 1 column 200", {"code": "invalid_request_error"}),
    "schema": (400, "Invalid schema for function '{tool}': array schema missing items",
               {"code": "invalid_request_error"}),
    "thinking": (400, "The `reasoning_content` in the thinking mode must be passed back to the API.",
                 {"code": "invalid_request_error"}),
    "filtered": (400, "Content Exists Risk", {"code": "invalid_request_error"}),
    "request": (400, "{said}", {"code": "invalid_request_error"}),
    "server": (500, "Internal Server Error", {"code": "internal_error"}),
}  # fmt: skip

# github.com/yym68686/uni-api/issues/105, open-webui/open-webui/issues/21266, cline/cline/issues/3120,
# continuedev/continue/issues/10778 and 12670
_XAI: Words = {
    "key": (400, "Incorrect API key provided: wr***ey. You can obtain an API key from https://console.x.ai.", {}),
    "model": (404, "The model {model} does not exist or your team 481c does not have access to it. Please ensure "
              "you're using the correct API key.", {"code": "Some requested entity was not found"}),
    "credit": (403, "Your newly created team doesn't have any credits or licenses yet. You can purchase those on "
               "https://console.x.ai/team/481c.",
               {"code": "The caller does not have permission to execute the specified operation"}),
    "busy": (429, "Too many requests for team 481c and model {model}. Your team's rate limit is - requests per second "
             "(actual/limit): 5/4", {"code": "Some resource has been exhausted"}),
    "window": (400, "This model's maximum prompt length is {window} but the request contains {tokens} tokens.", {}),
    "output": (400, "max_completion_tokens must be at most {limit}, got {asked}", {}),
    "pictures": (400, "Image inputs are not supported by this model.", {}),
    "parameter": (400, "Model {model} does not support parameter {camel}.", {}),
    "request": (400, "{said}", {}),
    "server": (500, "Service temporarily unavailable. The model did not respond to this request.",
               {"code": "The service is currently unavailable"}),
}  # fmt: skip

# docs.together.ai/docs/error-codes; github.com/stanford-crfm/helm/pull/2079
_TOGETHER: Words = {
    "key": (401, "Invalid API key provided. You can find your API key at https://api.together.ai/settings/api-keys.",
            {"code": "invalid_api_key"}),
    "model": (404, "Unable to access model {model}. Please visit https://api.together.ai/models to view the list of "
              "supported models.", {"code": "model_not_available"}),
    "credit": (402, "Credit limit exceeded, please visit https://api.together.ai/settings/billing to update your "
               "billing information.", {"type": "credit_limit"}),
    "busy": (429, "You have reached the rate limit specific to this model {model}.", {"code": "model_rate_limit"}),
    "window": (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= {window}. Given: {tokens} "
               "`inputs` tokens and {asked} `max_new_tokens`", {"param": "max_tokens"}),
    "output": (422, "Input validation error: `max_new_tokens` must be <= {limit}. Given: {asked}",
               {"param": "max_tokens"}),
    "tools": (400, "{model} is not supported for JSON mode/function calling", {"code": "constraints_model"}),
    "pictures": (400, "Model {model} does not support image inputs", {}),
    "schema": (400, "Invalid schema for function '{tool}': array schema missing items", {"param": "tools"}),
    "request": (400, "{said}", {}),
    "server": (503, "The server is currently overloaded with other requests.", {"code": "service_unavailable"}),
}  # fmt: skip

# learn.microsoft.com/azure/ai-foundry/openai/concepts/content-filter; github.com/compl-ai/compl-ai/issues/20,
# chatboxai/chatbox/issues/646
_AZURE: Words = {
    **OPENAI,
    "key": (401, "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid "
            "key for an active subscription and use a correct regional API endpoint for your resource.", {}),
    "model": (404, "The API deployment for this resource does not exist. If you created the deployment within the "
              "last 5 minutes, please wait a moment and try again.", {"code": "DeploymentNotFound"}),
    "busy": (429, "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2025-01-01 have "
             "exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 2 seconds.", {}),
    "filtered": (400, "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."
                 " Please modify your prompt and retry. To learn more about our content filtering policies please read "
                 "our documentation: https://go.microsoft.com/fwlink/?linkid=2198766",
                 {"param": "prompt", "code": "content_filter", "innererror": {
                     "code": "ResponsibleAIPolicyViolation",
                     "content_filter_result": {"violence": {"filtered": True, "severity": "medium"}}}}),
}  # fmt: skip

# github.com/ollama/ollama/issues/5793 and 14795, abi/screenshot-to-code/issues/354
_OLLAMA: Words = {
    "key": (401, "unauthorized", {}),
    "model": (404, 'model "{model}" not found, try pulling it first', {}),
    "busy": (503, "server busy, please try again.  maximum pending requests exceeded", {}),
    "tools": (400, "registry.ollama.ai/library/{model} does not support tools", {}),
    "pictures": (500, "Failed to create new sequence: failed to process inputs: this model is missing data required "
                 "for image input", {}),
    "request": (400, "{said}", {"type": "invalid_request_error"}),
    "server": (500, "llama runner process has terminated: signal: killed", {}),
}  # fmt: skip

# github.com/lmstudio-ai/lmstudio-bug-tracker/issues/237, 362, 546, 2322; Gitlawb/openclaude/issues/353
_LMSTUDIO: Words = {
    "key": (401, "Invalid API token", {}),
    "model": (404, 'Model "{model}" not found. Please load a model in the developer page or use the `lms load` '
              "command.", {}),
    "window": (400, "Trying to keep the first {tokens} tokens when context the overflows. However, the model is loaded "
               "with context length of only {window} tokens, which is not enough. Try to load the model with a larger "
               "context length, or provide a shorter input", {}),
    "pictures": (400, "Model does not support images. Please use a model that does.", {}),
    "template": (400, 'Error rendering prompt with jinja template: "Error: {said}".', {}),
    "request": (400, "{said}", {}),
    "server": (500, "The model has crashed without additional information. (Exit code: 18446744072635810000)", {}),
}  # fmt: skip

# Seen on the real server (xllamacpp 2026.10, 2026-11-27); ggml-org/llama.cpp tools/server/README.md
_LLAMA: Words = {
    "key": (401, "Invalid API Key", {}),
    "busy": (503, "Loading model", {}),
    "window": (400, "request ({tokens} tokens) exceeds the available context size ({window} tokens), try increasing it",
               {"type": "exceed_context_size_error", "n_prompt_tokens": 931, "n_ctx": "{window}"}),
    "pictures": (500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
                 {}),
    "tools": (500, "tools param requires --jinja flag", {}),
    "template": (500, "Jinja Exception: {said}", {}),
    "request": (400, "{said}", {}),
    "server": (500, "Compute error.", {}),
}  # fmt: skip

# github.com/vllm-project/vllm/issues/6862, 19861, 23402, 33418; docs.vllm.ai features/tool_calling
_VLLM: Words = {
    "key": (401, "Unauthorized", {}),
    "model": (404, "The model `{model}` does not exist.", {}),
    "window": (400, "This model's maximum context length is {window} tokens. However, you requested {total} tokens "
               "({tokens} in the messages, {asked} in the completion). Please reduce the length of the messages or "
               "completion.", {}),
    "output": (400, "'max_tokens' or 'max_completion_tokens' is too large: {asked}. This model's maximum context length"
               " is {limit} tokens and your request has {tokens} input tokens ({asked} > {limit} - {tokens}).", {}),
    "tools": (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', {}),
    "pictures": (400, "{model} is not a multimodal model", {}),
    "template": (400, "{said}", {}),
    "request": (400, "{said}", {}),
    "server": (500, "EngineCore encountered an issue. See stack trace (above) for the root cause.", {
        "type": "InternalServerError"}),
}  # fmt: skip

# docs.litellm.ai/docs/exception_mapping; github.com/BerriAI/litellm/issues/8978, 14056, pull/16231;
# mcdonc/klangk/pull/2067
_LITELLM: Words = {
    "key": (401, "Authentication Error, Invalid proxy server token passed. Received API Key = sk-...rong, Key Hash "
            "(Token) =abc. Unable to find token in cache or `LiteLLM_VerificationTokenTable`", {"type": "auth_error"}),
    "model": (400, "/chat/completions: Invalid model name passed in model={model}. Call `/v1/models` to view available "
              "models for your key.", {}),
    "credit": (400, "Budget has been exceeded! Current cost: 10.2, Max budget: 10.0", {"type": "budget_exceeded"}),
    "busy": (429, "litellm.RateLimitError: AnthropicException - Overloaded. Received Model Group={model}\nAvailable "
             "Model Group Fallbacks=None", {"type": "throttling_error"}),
    "window": (400, "litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: "
               "OpenAIException - This model's maximum context length is {window} tokens. However, your messages "
               "resulted in {tokens} tokens. Please reduce the length of the messages.\nmodel={model}. "
               "context_window_fallbacks=None. Received Model Group={model}", {}),
    "output": (400, "litellm.BadRequestError: OpenAIException - max_tokens is too large: {asked}. This model supports "
               "at most {limit} completion tokens, whereas you provided {asked}.. Received Model Group={model}", {}),
    "tools": (400, "litellm.UnsupportedParamsError: ollama_chat does not support parameters: ['tools'], for "
              "model={model}. To drop these, set `litellm.drop_params=True` or for proxy:\n\n`litellm_settings:\n "
              "drop_params: true`", {}),
    "pictures": (400, "litellm.BadRequestError: OpenAIException - Invalid content type. image_url is only supported by "
                 "certain models.. Received Model Group={model}", {}),
    "schema": (400, "litellm.BadRequestError: OpenAIException - Invalid schema for function '{tool}': In context="
               "('properties', 'paths'), array schema missing items.. Received Model Group={model}", {}),
    "parameter": (400, "litellm.UnsupportedParamsError: gpt-5 models don't support {param}={value}. Only {param}=1 is "
                  "supported. To drop unsupported params set `litellm.drop_params = True`", {}),
    "filtered": (400, "litellm.BadRequestError: litellm.ContentPolicyViolationError: AzureException - The response was "
                 "filtered due to the prompt triggering Azure OpenAI's content management policy.\nmodel={model}. "
                 "content_policy_fallback=None. fallbacks=None.", {}),
    "request": (400, "litellm.BadRequestError: OpenAIException - {said}. Received Model Group={model}", {}),
    "server": (500, "litellm.InternalServerError: OpenAIException - The server had an error. Received Model "
               "Group={model}", {"type": "internal_server_error"}),
}  # fmt: skip

BY_ROW: dict[str, Words] = {
    "openai": OPENAI,
    "responses": OPENAI,
    "anthropic": ANTHROPIC,
    "openrouter": OPENROUTER,
    "google": GOOGLE,
    "mistral": MISTRAL,
    "groq": _GROQ,
    "deepseek": _DEEPSEEK,
    "xai": _XAI,
    "together": _TOGETHER,
    "azure": _AZURE,
    "ollama": _OLLAMA,
    "lmstudio": _LMSTUDIO,
    "llamacpp": _LLAMA,
    "vllm": _VLLM,
    "litellm": _LITELLM,
    "other": OPENAI,
}
