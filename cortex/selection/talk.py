"""What kind of thing a short message is: small talk, a yes, a goodbye, a follow-up. Word lists in several languages.

Decides nothing about tools; the stages do. English first, the greetings of its neighbours beside it.
"""

from functools import lru_cache

from cortex.selection.text import stem, words


def _set(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_SMALL_TALK = _set("""
    hi hello hey hiya howdy yo greetings morning afternoon evening night good day there thanks thank thx ty you
    cheers bye goodbye see ya later cu ok okay k great nice cool perfect lovely awesome fine sure yes no yeah yep nope
    please welcome sorry how are is it going what's up sup doing well i'm im and very much so a lot again my friend
    cortex assistant everyone lol haha
    hallo moin servus guten tag morgen abend danke dir bitte tschüss wie geht's geht es gut
    hola buenos días dias tardes noches gracias adiós adios qué tal bonjour salut bonsoir merci au revoir ça va
    ciao buongiorno grazie olá obrigado obrigada hoi dank je wel doei
""")
_ASSENT = _set("""
    yes yeah yep yup sure ok okay please do it go ahead that that's right fine correct exactly of course absolutely
    definitely sounds good great perfect the first second third last one both all them thanks
    ja bitte gerne mach das genau klar sí si claro dale por favor oui bien sûr vas-y d'accord sim va bene certo jawel
""")
_ASSENT_FIRST = _set("""
    yes yeah yep yup sure ok okay please go do both all the that's sounds ja gerne klar genau sí si claro dale oui sim
    certo
""")
_FOLLOW_FIRST = _set("and also what about now then same again another too plus or but und auch y et e anche")
_POINTING = _set("it that this them those these ones same again too it's that's das den eso ça")
_PARTING = _set("thanks thank thx bye goodbye danke gracias merci grazie tschüss ciao adiós obrigado")
_COMMON = _set("""
    a an the this that these those there here i you he she it we they me him her us them my your his its our their
    mine yours who whom what which when where why how whose whether if of to in on at by for from with without about
    into onto over under up down out off as than then and or but not no nor so too very just only also again ever yet
    still already now today soon later right ok okay please thanks thank hello hi is are was were be been being am do
    does did done doing have has had having can could will would shall should may might must need want like let make
    made get got give gave given take took go going gone come came know knew think thought say said tell told ask see
    saw look seem mean help try use thing things stuff something anything everything nothing some any all each every
    both few many much more most other another such same own one two three first last next new old good bad great well
    really actually maybe perhaps i'm i've i'd i'll you're you've it's that's there's what's who's how's let's don't
    doesn't didn't isn't aren't wasn't can't couldn't won't wouldn't because while during before after between through
    way kind sort type lot bit time times day days people person man guy since until per like name answer question
    type everyone anyone someone mr mrs much long
""")
_SHORT, _LEANING, _POINTING_WORDS = 8, 12, 8
_ASKING_CHARACTERS = 160


@lru_cache(maxsize=1)
def common_terms() -> frozenset[str]:
    """Stems that say nothing about what somebody wants: they can't carry a tool in by themselves."""
    return frozenset(stem(word) for word in _COMMON)


def is_small_talk(text: str) -> bool:
    """Whether the text is blank, or a greeting, thanks or assent and nothing more."""
    said = words(text)
    return len(said) <= _SHORT and all(word in _SMALL_TALK for word in said)


def is_parting(text: str) -> bool:
    """Whether the text is small talk that thanks or says goodbye."""
    return is_small_talk(text) and not is_assent(text) and any(word in _PARTING for word in words(text))


def is_assent(text: str) -> bool:
    """Whether the text says yes to what was proposed, and hardly more."""
    said = words(text)
    if not 0 < len(said) <= _SHORT or said[0] not in _ASSENT_FIRST:
        return False
    return sum(word not in _ASSENT for word in said) <= len(said) // 3


def is_answer(text: str, asked: str) -> bool:
    """Whether the text is short enough to be an answer to what the assistant asked back last."""
    end = asked.rstrip()[-_ASKING_CHARACTERS:]
    return 0 < len(words(text)) <= _LEANING and ("?" in end or "confirm" in words(end))


def is_follow_up(text: str) -> bool:
    """Whether the text leans on what was said before: short, and it begins with "and", or points ("it", "that")."""
    said = words(text)
    if not 0 < len(said) <= _LEANING:
        return False
    return said[0] in _FOLLOW_FIRST or (len(said) <= _POINTING_WORDS and any(word in _POINTING for word in said))
