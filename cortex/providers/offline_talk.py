"""What the offline model says where it calls nothing: a greeting, the time, what it can do, or that it can't answer.

It is no AI and says so each time, with the way to a real model. Links are the page's own.
"""

import re
from datetime import datetime

LABEL = "Offline demo model (no AI)"
CONNECT = "[Connect a model](/models)"
EXAMPLES = (
    "Add milk to my shopping list",
    "What's on my shopping list?",
    "Remind me tomorrow at 10 to call mum",
    "Make a note: the spare key is with Ada",
    "Every weekday at 8 tell me my tasks",
    "What are my reminders?",
)
_DEMO = "I'm a demo (no AI): I follow a few simple rules and can keep lists, notes, reminders and schedules for you."
_KINDS: tuple[tuple[str, str], ...] = (
    (r"thanks?|thank you|thx|ty|cheers|much appreciated", "thanks"),
    (r"bye|goodbye|good ?night|see (?:you|ya)|later", "bye"),
    (r"how are you|how(?:'s| is) it going|how do you do|what'?s up|sup|are you (?:ok|okay|well)", "mood"),
    (
        r"(?:so )?(?:who|what) are you|what(?:'s| is) your name|(?:which|what) (?:ai )?model|"
        r"are you (?:an? |really )?(?:ai|bot|robot|human|real|chatgpt|gpt|claude|there)",
        "self",
    ),
    (
        r"help(?: me)?$|what (?:can|could|do) you (?:do|help|offer)|what(?:'s| is) this|how does (?:this|it) work|"
        r"how do i (?:start|use)|what should i (?:do|ask|say)|commands?$|show me what you can|test(?:ing)?$",
        "help",
    ),
    (r"what time|what(?:'s| is) the (?:time|date)|what day|which day|time\??$", "time"),
    (r"hi|hello|hey|hiya|howdy|yo|greetings|good (?:morning|afternoon|evening|day)|hallo|hola|bonjour|ciao", "hello"),
    (r"ok(?:ay)?|yes|no|sure|great|nice|cool|perfect|lol|haha+|fine|good|wow|never ?mind|forget (?:it|that)", "fine"),
)
_PATTERNS = tuple((re.compile(rf"(?:{pattern})\b", re.IGNORECASE), kind) for pattern, kind in _KINDS)
_ABOUT_NOW = re.compile(
    r"what(?:'s| is)? (?:the )?(?:time|day|date)(?: is it)?(?: now| today| please)?\W*", re.IGNORECASE
)
_SHORT_WORDS = 8
_SHORT = frozenset({"thanks", "bye", "hello", "fine"})
_BARE_WORDS = 5


def is_about_now(said: str) -> bool:
    """Tell whether the words ask for the time or the day and nothing else: no search tells it better than the clock."""
    return _ABOUT_NOW.fullmatch(said.strip()) is not None


def reply(said: str, now: datetime, lacking: str = "") -> str:
    """The answer to what no tool is called for. `lacking`: a sentence on what it needs and cannot have here."""
    match _kind(said):
        case "hello":
            return f"Hello! {_DEMO} Try “{EXAMPLES[0]}”. For real answers: {CONNECT}."
        case "thanks":
            return "You're welcome! Anything else for your lists, notes or reminders?"
        case "bye":
            return "Goodbye! Your lists, notes and reminders are kept."
        case "mood":
            return f"Ready to work, thank you. {_DEMO} Try “{EXAMPLES[2]}”."
        case "self":
            return (
                f"I'm Cortex, running on its {LABEL}: a few simple rules, no language model. {CONNECT} to talk to one."
            )
        case "fine":
            return f"All right. Tell me what to do next, such as “{EXAMPLES[2]}”."
        case "time":
            return f"It is {now:%H:%M} on {now:%A}, {now.day} {now:%B %Y}."
        case "help":
            return _help()
        case _:
            if lacking:
                return f"I can't do that. {lacking}"
            return (
                f"I can't help with that: I'm the {LABEL} and follow a few simple rules. {CONNECT} for real answers, "
                f"or try “{EXAMPLES[0]}” or “{EXAMPLES[2]}”."
            )


def _kind(said: str) -> str:
    """Return what sort of talk it is, "" for none that it knows."""
    text = " ".join(said.split()).strip(" .!,;:")
    count = len(text.split())
    if not text.strip("?"):
        return "help"
    for pattern, kind in _PATTERNS:
        if count <= (_BARE_WORDS if kind in _SHORT else _SHORT_WORDS) and pattern.match(text):
            return kind
    return ""


def _help() -> str:
    listed = "\n".join(f"- {example}" for example in EXAMPLES)
    return (
        f"I'm the {LABEL}: I follow a few simple rules, so I understand plain requests like these:\n\n{listed}\n\n"
        "With a real model Cortex also answers questions, writes, and works with files, the web and your home. "
        f"{CONNECT}."
    )
