"""The words with which model servers say what they do not take, where the row of a server does not say it itself.

Tried from the top, in any case, over the words, the type and the code of an error; patterns of the row
(`servers.py: ServerRow.says`) go ahead of all of them. Groups: `window` and `output` are limits in tokens, with or
without commas, `name` is a tool or a parameter, `index` the place of a tool in the list that was sent.
"""

from cortex.base.errors import RejectionKind

# fmt: off
SAYS: tuple[tuple[RejectionKind, str], ...] = (
    ("credit", r"can only afford (?P<output>[\d,]*\d)"),
    ("credit", r"insufficient[ _](?:quota|credits?|balance|funds)|exceeded your current quota"
     r"|credit balance is too low"
     r"|(?:requires more|used all available|run out of|out of|no|any) credits|credits (?:are"
     r"|have been) (?:depleted|used)"
     r"|budget has been exceeded|budget_exceeded|spend(?:ing)? limit|credit limit exceeded|payment required"
     r"|billing[_ ](?:hard[_ ]limit|not[_ ]active)"),
    ("filtered", r"content[_ ]filter|content[_ ]policy|content management policy|responsibleaipolicy"
     r"|prohibited_content"
     r"|violat\w+ (?:our |the )?usage (?:policy|policies|guidelines)|safety system|content exists risk"
     r"|data_inspection_failed|inappropriate content|(?:was|been) flagged|requires moderation|invalid_prompt"),
    ("ids", r"tool call id was|tool_use\.id: string should|tool_use_id: string should|`tool_use` ids must be unique"
     r"|\.(?:id|tool_call_id|call_id)': (?:string too long|'.{0,80}'\. expected an id)"
     r"|duplicate value for 'tool_call_id'"),
    ("thinking", r"signature. in .thinking|expected .thinking. or .redacted_thinking"
     r"|redacted_thinking.{0,80}cannot be mod"
     r"|thought_signature|thought signature|invalid_encrypted_content|encrypted content.{0,80}could not be"
     r"|of type 'reasoning' was provided without|item with id 'rs_\w+' not found|reasoning_details|reasoning_content"
     r"|property 'reasoning' is unsupported|reasoning is not supported with"),
    ("order", r"roles must alternate|must alternate user|unexpected role|expected last role|role must be .?user"
     r"|prefill"
     r"|not the same number of function calls|number of function response parts|function call turn comes"
     r"|function response turn comes|must be followed by tool messages|must be a response to a preceding message"
     r"|no tool (?:output|call) found for function call|without .?tool_result|unexpected .?tool_use_id"
     r"|successive (?:user|assistant)|system message must be|system role not supported|no user query found"
     r"|first message must use|must be non-empty|must have either content or tool_calls|must be a user message"
     r"|must end with a user message|contents? (?:is|are) not specified"),
    ("schema", r"invalid schema for function '?(?P<name>[\w.-]+)|invalid_function_parameters"),
    ("schema", r"tools\[\d+\]\.function_?declarations\[(?P<index>\d+)\]"),
    ("schema", r"tools[.\[](?P<index>\d+)\]?\.(?:custom\.|function\.)?(?:input_schema|parameters|name|description)"),
    ("schema", r"invalid json schema for tool [`'\"]?(?P<name>[\w.-]+)|json schema conversion failed"
     r"|unrecognized schema"
     r"|json schema is invalid|schema contains features not supported|failed to parse grammar"
     r"|error compiling grammar"),
    ("pictures", r"(?:not|n't) support (?:image|vision|multimodal|picture)|image.{0,24}(?:not|n't) (?:supported"
     r"|enabled)"
     r"|support image input|image_url.{0,40}(?:only supported|not supported|expected .?text)|not a multimodal"
     r"|at most \d+ images?|vision (?:addon|is not)|missing data required for image|content must be a string"
     r"|mmproj|invalid content type\. image"),
    ("tools", r"(?:not|n't) support (?:the )?(?:tools?\b|tool[ _]|function[ _]call)|tools? (?:is|are"
     r"|param) not supported"
     r"|support tool use|(?:tool|function)[ _]call(?:ing|s)?.{0,6} (?:is|are) (?:not|un)|tool use.{0,30}unsupported"
     r"|enable-auto-tool-choice|tools param requires|(?:not|n't) support parameters: \[[^\]]*'tools'"),
    ("route", r"no endpoints found|no allowed providers|no providers? (?:is|are) available"),
    ("model", r"model_not_found|model.{0,120}(?:does not|doesn't|not) exist|model.{0,120}(?:was |is )?not found"
     r"|invalid model"
     r"|not a valid model|unable to access model|deploymentnotfound|deployment for this resource does not exist"
     r"|no models? (?:is |are )?loaded|model.{0,120}(?:decommissioned|deprecated and|no longer available)"
     r"|not_found_error.{0,20}model:|model not exist"),
    ("output", r"max_(?:completion_)?tokens.{0,40}too large.{0,80}at most (?P<output>[\d,]*\d) completion"),
    ("output", r"max_tokens: [\d,]+ > (?P<output>[\d,]*\d)"),
    ("output", r"max_(?:completion_|output_)?tokens.{0,6} must be less than or equal to \D{0,3}(?P<output>[\d,]*\d)"),
    ("output", r"valid range of max_tokens is \[1, ?(?P<output>[\d,]*\d)\]"),
    ("output", r"maxoutputtokens value of [\d,]+ but the supported range is from 1 .{0,14}to (?P<output>[\d,]*\d)"),
    ("window", r"prompt is too long: [\d,]+ tokens > (?P<window>[\d,]*\d)"),
    ("window", r"exceed context limit: [\d,]+ \+ [\d,]+ > (?P<window>[\d,]*\d)"),
    ("window", r"maximum (?:context|prompt|input) length (?:is|of) (?P<window>[\d,]*\d)"),
    ("window", r"too large for model with (?P<window>[\d,]*\d) maximum context"),
    ("window", r"maximum number of tokens allowed \(?(?P<window>[\d,]*\d)"),
    ("window", r"configured limit of (?P<window>[\d,]*\d) tokens"),
    ("window", r"exceeds the available context size \((?P<window>[\d,]*\d)"),
    ("window", r"(?:context length of only|n_ctx:|n_ctx\":) ?(?P<window>[\d,]*\d)"),
    ("window", r"max_new_tokens.? must be <= (?P<window>[\d,]*\d)"),
    ("window", r"exceeded model token limit: (?P<window>[\d,]*\d)"),
    ("window", r"current length is [\d,]+ while limit is (?P<window>[\d,]*\d)"),
    ("window", r"range of input length should be \[1, ?(?P<window>[\d,]*\d)\]"),
    ("window", r"request too large.{0,200}tokens per min\w* \(tpm\): limit (?P<window>[\d,]*\d)"),
    ("window", r"context[_ ](?:length|window)[_ ]exceeded|contextwindowexceeded|exceed_context_size"
     r"|exceeds the (?:model'?s )?"
     r"(?:available )?context|exceeds? (?:the )?(?:context|max(?:imum)? context)|exceeded max context"
     r"|prompt(?: is)? too long"
     r"|input is too long|reduce the length of the (?:messages|prompt|input)|greater than the context length"
     r"|context window exceeds|too many tokens|token limit exceeded|request_too_large|(?:entity|payload) too large"),
    ("parameter", r"unsupported (?:parameter|value): [`'\"](?P<name>[\w.]+)"),
    ("parameter", r"(?:unknown|unrecognized|unexpected) (?:parameter|name|request argument supplied"
     r"|keyword argument):? "
     r"[`'\"]?(?P<name>[\w.]+)"),
    ("parameter", r"[`'\"]?(?P<name>[\w.]+)[`'\"]?: extra inputs are not permitted"),
    ("parameter", r"[`'\"](?P<name>[\w.]+)[`'\"] (?:is (?:deprecated|unsupported|not supported|not allowed)"
     r"|may only be set)"),
    ("parameter", r"(?:property|parameter|argument) [`'\"]?(?P<name>\w+)[`'\"]? is (?:unsupported|not supported)"),
    ("parameter", r"(?:not|n't) support (?:the )?parameters?:? \[?[`'\"]?(?P<name>\w+)"),
    ("parameter", r"(?:not|n't) support this (?P<name>\w+_\w+)"),
    ("parameter", r"argument not supported.{0,30}: (?P<name>\w+)"),
    ("overloaded", r"overloaded|over capacity|at capacity|capacity exceeded|server busy|too busy"
     r"|maximum pending requests"
     r"|loading model|no slots? available|temporarily (?:rate-limited upstream|unavailable)|engine_overloaded"),
)
