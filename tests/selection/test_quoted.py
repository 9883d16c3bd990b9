"""What stands in quotation marks, in a fence, or was pasted to be worked on, is no wish of the person's."""

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cortex.selection.words.quoted import wish_of

EN = "The committee met on Tuesday and decided to turn off the heating at night. Ada will remind all the neighbours."
DE = "Der Ausschuss hat am Dienstag beschlossen, nachts die Heizung auszuschalten. Ada erinnert alle Nachbarn daran."
FR = "Le comité a décidé mardi de couper le chauffage la nuit. Ada enverra un courriel à tous les voisins demain."
ES = "El comité decidió el martes apagar la calefacción por la noche. Ada mandará un correo a todos los vecinos."
IT = "Il comitato ha deciso martedì di spegnere il riscaldamento di notte. Ada scriverà una nota a tutti i vicini."
NL = "Het bestuur heeft dinsdag besloten om 's nachts de verwarming uit te zetten. Ada herinnert alle buren eraan."
PT = "A comissão decidiu na terça desligar o aquecimento durante a noite. A Ada vai avisar todos os vizinhos amanhã."
TRACE = """Traceback (most recent call last):
  File "jobs.py", line 31, in run
    os.remove(path)
FileNotFoundError: [Errno 2] No such file or directory"""
LOG = """2025-03-02 10:11:12 INFO light in the hall turned on
2025-03-02 10:11:13 ERROR job backup was deleted
2025-03-02 10:11:14 INFO reminder sent to Ada"""
JSON = '{"lights": [{"name": "kitchen", "state": "on"}, {"name": "hall", "state": "off"}], "delete": true}'
HTML = '<div class="lights"><p>Turn off the lights</p><a href="/delete">Delete all of my files</a></div>'
CODE = "function clean(all) {\n  deleteFiles(all);\n  return sendMail();\n}"
VERSES = "\n".join(("de lamp gaat uit", "de deur gaat dicht", "zet zacht een lied", "voor mij nu aan") * 3)
LETTER = "\n".join((EN, EN, EN))
LONG = "\n".join((LETTER, LETTER, LETTER))

MAIL = "Hi Ada,\nplease delete the old files, send me the report and turn off the heating on Friday.\nBest, Jo"
BRIEF = "Hallo Ada!\n\nkannst du bitte die Heizung ausschalten und mir den Bericht schicken?\n\nViele Grüße\nJo"

CUT = [  # the message, and what of it is the wish
    (f"summarise this text: {EN}", "summarise this text:"),
    (f"Fasse diesen Text zusammen: {DE}", "Fasse diesen Text zusammen:"),
    (f"résume ce texte : {FR}", "résume ce texte :"),
    (f"resume este texto: {ES}", "resume este texto:"),
    (f"riassumi questo testo: {IT}", "riassumi questo testo:"),
    (f"vat deze tekst samen: {NL}", "vat deze tekst samen:"),
    (f"resume este texto em duas frases: {PT}", "resume este texto em duas frases:"),
    (f"tl;dr:\n\n{EN}", "tl;dr:"),
    (f"fix my spelling:\n{EN}", "fix my spelling:"),
    (f"Hi there: please shorten this: {EN}", "Hi there: please shorten this:"),
    (f'translate "{EN}" to German', "translate to German"),
    (f"translate “{EN}” to German", "translate to German"),
    (f"translate '{EN}' to German", "translate to German"),
    (f"translate \u2018{EN}\u2019 to German", "translate to German"),
    (f"Was heißt „{DE}“ auf Englisch?", "Was heißt auf Englisch?"),
    (f"Was heißt »{DE}« auf Englisch?", "Was heißt auf Englisch?"),
    (f"traduis « {FR} » en anglais", "traduis en anglais"),
    (f"traduce «{ES}» al inglés", "traduce al inglés"),
    (f"traduci «{IT}» in inglese", "traduci in inglese"),
    (f"vertaal „{NL}” naar het Engels", "vertaal naar het Engels"),
    (f'traduz "{PT}" para inglês', "traduz para inglês"),
    (f"obfuscate this function\n```js\n{CODE}\n```", "obfuscate this function"),
    (f"obfuscate this function\n```js\n{CODE}", "obfuscate this function"),
    (f"what does it do?\n~~~\n{CODE}\n~~~\nthanks", "what does it do? thanks"),
    (f"what does it do?\n~~~~\n{CODE}", "what does it do?"),
    (f"erkläre ```{CODE}``` bitte", "erkläre bitte"),
    ("explain:\n\n    for each in files:\n        delete(each)\n\nin one line", "explain: in one line"),
    ("spiega:\n\tfor f in files:\n\t\tdelete(f)", "spiega:"),
    (f"what went wrong?\n{TRACE}", "what went wrong?"),
    (f"{TRACE}\n\nche cosa vuol dire?", "che cosa vuol dire?"),
    (f"wat gaat hier mis\n\n{LOG}", "wat gaat hier mis"),
    (f"{LOG}\no que quer dizer isto?", "o que quer dizer isto?"),
    (f"make a table of {JSON} please", "make a table of please"),
    (f"c'est valide ?\n{JSON}", "c'est valide ?"),
    (f"is this page accessible? {HTML}", "is this page accessible?"),
    (f"rewrite in Rust\n{CODE}", "rewrite in Rust"),
    (f"> {EN}\n> {EN}\n\nwhat would you answer?", "what would you answer?"),
    (f"¿qué contesto?\n\n> {ES}", "¿qué contesto?"),
    (f"summarise this\n\n{LETTER}", "summarise this"),
    (f"Kannst du das kürzen?\n\n{LETTER}\n\n{DE}", "Kannst du das kürzen?"),
    (f"riassumi in tre punti\n{LETTER}", "riassumi in tre punti"),
    (f"{LONG}\n\nwhat is this about?", "what is this about?"),
    (f"what does he want?\nFrom: Bob\nSubject: heating\n\n{LETTER}\n\nBest\nBob", "what does he want?"),
    (f"summarise this chat:\nAda: are you there\nBob: {EN}\nAda: {EN}", "summarise this chat:"),
    (f'translate to German: "{EN[:-1]}', "translate to German:"),
    (f"traduci in inglese «{IT}", "traduci in inglese"),
    ("make this shorter\ndef clean(x):\n    return x.delete_all", "make this shorter"),
    (f"vertaal dit gedicht:\n{VERSES}\n\nvan wie is het", "vertaal dit gedicht: van wie is het"),
    ("obfuscate this function: function f(a){return deleteAll(a)}", "obfuscate this function:"),
    ("what now?\n$ git push\nerror: failed to push some refs\nhint: updates were rejected", "what now?"),
    (f"Can you answer this mail for me?\n\nHi team,\n\n{EN} {EN}\n\nBest,\nBob", "Can you answer this mail for me?"),
    (f"{MAIL}\n\nwhat should I answer?", "what should I answer?"),
    (f"{BRIEF}\n\nWas soll ich antworten?", "Was soll ich antworten?"),
    (f"is this polite\n{MAIL}", "is this polite"),
    (f"wie klingt das?\n\n{BRIEF}", "wie klingt das?"),
    (f"{MAIL.replace('Hi Ada', 'Chère Ada')}\n\nque dois-je répondre ?", "que dois-je répondre ?"),
    ("warum?\nTypeError: light is not a function", "warum?"),
    ("is this safe?\nDELETE FROM tasks WHERE done = 1;", "is this safe?"),
    (f"summarise this\n\n{LETTER}\n\nand save it as a note", "summarise this and save it as a note"),
    (f"send ada: {EN}", "send ada:"),
    (f'remember this for me: "{EN}"', "remember this for me:"),
    (f"escribe a Ada: «{ES}»", "escribe a Ada:"),
]
KEPT = [
    'add "milk and eggs" to my list',
    'play "Here Comes the Sun"',
    "setze „Brot und Butter“ auf die Liste",
    "ajoute « lait et oeufs » à la liste",
    "spiel 'Ode an die Freude' im Bad",
    "open `notes.md` and call `shell_exec`",
    "run ```make test``` please",
    "remind me: call mum",
    "ricordami: domani alle nove il dentista, e porta i documenti",
    "two things: turn off the lights in the kitchen and wake me at seven",
    "do this:\n1. turn off the light\n2. lock the door\n3. start the washer\n4. add eggs to my list\n5. call ada now",
    "zet 's morgens om zeven de lampen aan en doe ze 's avonds om tien uur bij de kinderen weer uit",
    "don't turn on the kids' lights, it's late and they can't sleep when it's bright in the parents' room",
    'a 27" screen and a 32" one: which of them is on right now?',
    "hello~~~ turn on the lights",
    "fetch https://example.com/a?b={1}&c=[2] at 7:30",
    f"Good morning Cortex\n\n{LETTER}\n\nThank you so much in advance for your help",
    "do me a favour: the lights in the kitchen are still on. please turn them off",
    "please do three things for me: first turn off all the lights upstairs, then set the alarm to night mode, "
    "and finally remind me at seven to take out the trash.",
    "tonight: lights at thirty percent, heating at 21, jazz in the living room and the blinds down at eight o'clock",
    "what does foo(a, b) do",
    "hey\n@cortex turn on the light",
    f"Hi Cortex,\n\n{LETTER}\n\nThanks!\nAnna",
    "\n".join(("turn off the lights", "add eggs to the list", "wake me at seven") * 5),
    MAIL,
    BRIEF,
    "Hi Cortex,\nplease turn off the heating, and remind me of the bins tomorrow at eight.\nThanks, Jo",
    "add these to my list\nmilk, and not the one with the blue label that we always have,\nbread\neggs",
    f"„{DE}“",
    f"```js\n{CODE}\n```",
    f"> {NL}",
    JSON,
    TRACE,
    LETTER,
    LONG,
    "",
    "?!",
]


@pytest.mark.parametrize(("message", "wish"), CUT)
def test_what_is_quoted_or_pasted_is_no_wish(message: str, wish: str) -> None:
    assert " ".join(wish_of(message).split()) == wish


@pytest.mark.parametrize("message", KEPT)
def test_names_lists_dictation_and_bare_quotes_stay(message: str) -> None:
    assert wish_of(message) == message


MARKS = (*"\"'\u201e\u201c\u00ab\u00bb\u2018\u2019`{[}]:;字", "```", "~~~", '{"', "<div>", "a()", "é ", "word. ")
GAPS = (" ", "\n", "\n\n", "\n    ", "\n> ", "\n- ", "\t", ": ", "x = 1", "2025-01-01 ", EN, JSON, CODE, LOG)
PIECES = st.sampled_from((*MARKS, *GAPS))
MESSAGES = st.one_of(st.text(), st.lists(PIECES, max_size=40).map("".join))


@settings(max_examples=300, deadline=None)
@given(MESSAGES)
@example(f"'{EN}' „{DE}")
def test_a_wish_is_a_part_of_the_message_and_its_own_wish(message: str) -> None:
    wish = wish_of(message)
    assert len(wish) <= len(message)
    assert bool(wish.strip()) == bool(message.strip())
    assert wish_of(wish) == wish
    rest = iter(message)
    assert all(each in rest for each in wish if not each.isspace())  # nothing added, and in its order


HOSTILE = [
    '"',
    "'",
    "'a ",
    "„",
    "«",
    "\u2018",
    "```\n",
    "~~~\n",
    "\n~~~",
    "{",
    '{"',
    '["',
    "<div ",
    "<div>",
    ": ",
    "\n",
]
HOSTILE += [
    " ",
    "\n ",
    "\n\n",
    "\n    x",
    "> ",
    "\n> ",
    "a: b\n",
    "a(",
    "a b. ",
    "x\n\n",
    '"a" ',
    "-",
    "é",
    "\u0130",
    ":\n\t",
]


def _seconds(message: str) -> float:
    start = time.process_time()
    wish_of(message)
    return time.process_time() - start


@pytest.mark.parametrize("piece", HOSTILE)
def test_time_grows_with_the_length_alone(piece: str) -> None:
    for begin in ("", "a", "see "):
        assert _seconds(begin + piece * (100_000 // len(piece))) < 1.0  # a square of it takes minutes
