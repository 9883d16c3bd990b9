"""Whether an answer says that it lacks a tool: a cheap pattern in several languages, on the model's own words.

It only opens the search (`stages/missing.py`), once a message; a false alarm costs a look, never a call.
"""

import re

from cortex.selection.text import normal

_LONGEST = 1_500
_LACK = r"(?:tools?|functions?|capabilit(?:y|ies)|means|ability|access|permission|integrations?|plug-?ins?)"
_DO = (
    "access|see|read|open|check|look|search|browse|run|execute|create|add|set|save|send|show|list|control|turn|connect|"
    "reach|remember|do that|view|fetch|write|store|retrieve|directly"
)
_PATTERNS = (
    rf"\b(?:i|we)(?: currently| just)? (?:don't|do not|can't|cannot|didn't|lack)(?: \w+){{0,4}} {_LACK}\b",
    rf"\b(?:i|we) lack\b|\bi (?:have|was given|see) (?:no|any) {_LACK}\b|\bno {_LACK} (?:to|for)\b",
    rf"\b(?:missing|without)(?: \w+){{0,2}} {_LACK}\b|\bi (?:was not|wasn't) given\b",
    r"\bnot (?:equipped|connected|able) to\b|\b(?:i'm|i am)(?: \w+)? (?:unable|not able) to\b",
    rf"\bi (?:can't|cannot|can not|couldn't)(?: \w+)? (?:{_DO})\b",
    r"\bich habe (?:leider )?kein(?:e|en)? (?:\w+ )?(?:zugriff|werkzeuge?|funktion|möglichkeit|tools?)\b",
    r"\bich kann (?:\w+ ){0,6}nicht (?:zugreifen|lesen|öffnen|ausführen|sehen|anlegen|abrufen|suchen|senden|direkt)\b",
    r"\bje n'ai pas (?:accès|d'outil|la possibilité)",
    r"\bje ne (?:peux|suis) pas (?:\w+ ){0,4}(?:accéder|capable|consulter|ouvrir)",
    r"\bno tengo (?:acceso|ninguna herramienta|una herramienta|la capacidad)",
    r"\bno puedo (?:acceder|ver|abrir|ejecutar|leer)",
    r"\bnon ho (?:accesso|uno strumento|strumenti)|\bnon posso (?:accedere|vedere|aprire|eseguire)",
    r"\bnão tenho (?:acesso|ferramentas?)|\bnão posso (?:acessar|ver|abrir)",
    r"\bik heb geen (?:toegang|hulpmiddel|tool)|\bik kan (?:\w+ ){0,4}niet (?:openen|zien|lezen|uitvoeren)",
)
_SAYS = re.compile("|".join(f"(?:{pattern})" for pattern in _PATTERNS))


def says_missing(answer: str) -> bool:
    """Whether the answer says that a tool, an access or an ability is missing. Long answers are no such word."""
    return len(answer) <= _LONGEST and _SAYS.search(normal(answer)) is not None
