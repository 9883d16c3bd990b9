"""German orders for the house, folded as `words.py` does it (ue, oe, ae, ss). The lines are those of `english.py`."""

HEAD = (
    r"^(?:(?:hey|hi|hallo|ok|okay|bitte|cortex) )*"
    r"(?:(?:(?:kannst|koenntest) du|(?:koennen|koennten) sie) )?(?:(?:bitte|mal|jetzt|kurz|bitte mal) )*"
)
TAIL = r"(?: (?:bitte|jetzt|sofort|danke|mal))*$"

PATTERNS = r"""
on: (?:schalte?|mache?|knipse?|stelle?|drehe?)(?: bitte| mal)* {t} (?:an|ein)
on: {t} (?:anschalten|einschalten|anmachen|anstellen|anknipsen|aktivieren)
on: aktiviere(?: bitte| mal)* {t}
on: {t} (?:an|ein)
off: (?:schalte?|mache?|knipse?|stelle?|drehe?)(?: bitte| mal)* {t} (?:aus|ab)
off: {t} (?:ausschalten|abschalten|ausmachen|ausstellen|abstellen|ausknipsen|deaktivieren)
off: deaktiviere(?: bitte| mal)* {t}
off: {t} aus
toggle: schalte?(?: bitte| mal)* {t} um
toggle: {t} umschalten
start: starte?(?: bitte| mal)* {t}
start: {t} starten
open: oeffne(?: bitte| mal)* {t}
open: {t} (?:oeffnen|aufmachen|hochfahren|hochziehen|herauffahren|rauffahren|auffahren)
open: (?:mache?|fahre?|ziehe?|lasse?)(?: bitte| mal)* {t} (?:auf|hoch|rauf|herauf|nach oben)
open: {t} (?:auf|hoch|rauf|herauf)
close: schliesse?(?: bitte| mal)* {t}
close: {t} (?:schliessen|zumachen|runterfahren|herunterfahren|runterlassen|herunterlassen|zufahren)
close: (?:mache?|fahre?|ziehe?|lasse?)(?: bitte| mal)* {t} (?:zu|runter|herunter|nach unten)
close: {t} (?:zu|runter|herunter)
stop: (?:stoppe?|halte)(?: bitte| mal)* {t}
stop: halte?(?: bitte| mal)* {t} an
stop: {t} (?:stoppen|anhalten|stopp)
up: (?:drehe?|stelle?|regle)(?: bitte| mal)* {t} (?:hoch|hoeher|rauf|herauf)
up: {t} (?:hochdrehen|aufdrehen)
down: (?:drehe?|stelle?|regle)(?: bitte| mal)* {t} (?:runter|herunter|niedriger)
down: {t} (?:runterdrehen|herunterdrehen)
faster fan!: (?:mache?|stelle?|schalte?|drehe?)?(?: bitte| mal)* ?{t} (?:etwas |ein bisschen )?schneller
slower fan!: (?:mache?|stelle?|schalte?|drehe?)?(?: bitte| mal)* ?{t} (?:etwas |ein bisschen )?langsamer
brighter light!: (?:mache?|stelle?|drehe?)?(?: bitte| mal)* ?(?:es )?{t} (?:etwas |ein bisschen |ein wenig )?heller
dimmer light!: (?:mache?|stelle?|drehe?)?(?: bitte| mal)* ?(?:es )?{t} (?:etwas |ein bisschen |ein wenig )?dunkler
dimmer light!: dimme?(?: bitte| mal)* {t}
dimmer light!: {t} dimmen
percent: (?:stelle?|setze?|mache?|drehe?|schalte?|regle|fahre?)(?: bitte| mal)* {t} auf {n} percent
percent: {t} auf {n} percent(?: (?:stellen|setzen|fahren))?
percent: {t} {n} percent
percent light!: dimme?(?: bitte| mal)* {t} auf {n} percent
percent light!: {t} auf {n} percent dimmen
percent light!: (?:stelle?|setze?|regle)(?: bitte| mal)* helligkeit {b} auf {n} percent
position blind: oeffne(?: bitte| mal)* {t} auf {n} percent
volume player!: (?:stelle?|setze?|mache?|drehe?|regle)(?: bitte| mal)* lautstaerke {b} auf {n} percent
volume player!: lautstaerke {b} auf {n} percent
most light!: (?:stelle?|setze?|drehe?|mache?|dimme?)?(?: bitte| mal)* ?{t} auf (?:volle|maximale) helligkeit
most light!: (?:stelle?|setze?|drehe?|mache?|dimme?)?(?: bitte| mal)* ?{t} (?:auf maximum|ganz hell)
least light!: (?:stelle?|setze?|drehe?|mache?|dimme?)?(?: bitte| mal)* ?{t} auf (?:minimale helligkeit|minimum)
colour light!: (?:stelle?|setze?|mache?|faerbe?|schalte?)(?: bitte| mal)* {t} (?:auf )?{c}
colour light!: {t} (?:auf )?{c}
kelvin light!: (?:stelle?|setze?|mache?|schalte?)(?: bitte| mal)* {t} auf {n} kelvin
degrees heating!: (?:stelle?|setze?|drehe?|mache?|regle|heize)(?: bitte| mal)* {t} auf {n} degrees(?: celsius)?
degrees heating!: {t} (?:auf )?{n} degrees(?: celsius)?(?: (?:stellen|setzen|heizen))?
warmer heating!: (?:mache?|stelle?|drehe?)?(?: bitte| mal)* ?(?:es )?{t} (?:etwas |ein bisschen |ein wenig )?waermer
cooler heating!: (?:mache?|stelle?|drehe?)?(?: bitte| mal)* ?(?:es )?{t} (?:etwas |ein bisschen )?(?:kaelter|kuehler)
lock lock!: (?:schliesse?|sperre?)(?: bitte| mal)* {t} (?:ab|zu)
lock lock!: (?:verriegle|verriegele)(?: bitte| mal)* {t}
lock lock!: {t} (?:abschliessen|absperren|zusperren|verriegeln|zuschliessen)
unlock lock!: (?:schliesse?|sperre?)(?: bitte| mal)* {t} auf
unlock lock!: (?:entriegle|entriegele)(?: bitte| mal)* {t}
unlock lock!: {t} (?:aufschliessen|aufsperren|entriegeln)
pause player: pausiere?(?: bitte| mal)* {t}
pause player: {t} (?:pausieren|pause)
play player!: spiele?(?: bitte| mal)* {t} (?:weiter|ab)
play player!: setze?(?: bitte| mal)* {t} fort
play player!: {t} (?:fortsetzen|weiterspielen|abspielen)
next player!: (?:spiele? )?(?:naechster|naechsten|naechstes) (?:titel|lied|song|track|stueck) {b}
previous player!: (?:spiele? )?(?:vorheriger|vorherigen|vorheriges) (?:titel|lied|song|track|stueck) {b}
mute player!: (?:schalte?|mache?|stelle?)(?: bitte| mal)* {t} stumm
mute player!: {t} (?:stumm|stummschalten)
louder player!: (?:mache?|stelle?|drehe?)?(?: bitte| mal)* ?{t} (?:etwas |ein bisschen |ein wenig )?lauter
quieter player!: (?:mache?|stelle?|drehe?)?(?: bitte| mal)* ?{t} (?:etwas |ein bisschen |ein wenig )?leiser
dock vacuum!: schicke?(?: bitte| mal)* {t} (?:zurueck )?(?:zur|zu seiner|an seine) (?:ladestation|basis|station)
dock vacuum!: schicke?(?: bitte| mal)* {t} zurueck
"""
