"""Orders in English and German that need no other machine; Home Assistant's own sentences know some of them too.

A line: the intent, a word for the kind that is meant, and phrases with ` | ` between two. `*` is a gap, empty or not:
its words name the target. `#` is a number with its unit, `@` a colour, `<up>` one of `PARTS`. Words stand as
`words.normal` writes them; "please" is gone.
"""

COURTESY = (
    r"\b(?:please|bitte|mal|kindly)\b",
    r"^ *(?:(?:hey|hi|hello|hallo|ok|okay|cortex) )*(?:(?:can|could|will|would) (?:you|we) "
    r"|may i (?:ask|request) you to |i would like you to |i (?:want|need) you to "
    r"|(?:kannst|konntest) du |(?:konnen|konnten) sie )?(?:jetzt |kurz )*(?:the |der |die |das |den )?",
    r"(?: (?:now|right now|immediately|thanks|thank you|for me|jetzt|sofort|danke))* *$",
)
# What shall be so: "make sure that the gate is locked" is read as "the gate =locked".
WISHES = (
    r"^(?:make sure|ensure) (?:that )?(.+) (?:is|are) (?:turned |switched )?(\w+)$",
    r"^(.+) (?:needs? to|should|must|has to|have to) be (?:turned |switched |powered )?(\w+)$",
    r"^i (?:need|want|would like|d like) (.+) ((?:un)?locked)$",
)
EVERYTHING = frozenset(("everything", "alles", "tout", "todo", "tutto", "tudo"))  # nobody knows what that moves
PARTS = {
    "set": "(?:set|turn|change|put|bring|adjust|make|dim|brighten|heat|cool)",
    "up": "(?:increase|raise|boost|ramp up|turn up|dial up)",
    "down": "(?:decrease|reduce|lower|turn down|dial down)",
    "more": "(?:a bit |a little |slightly |etwas |ein bisschen |ein wenig |)",
    "mach": "(?:schalte?|mache?|knipse?|stelle?|drehe?|setze?|regle|fahre?|ziehe?|lasse?|dimme?|farbe?|heize?)",
    "song": "(?:track|song|title|titel|lied|stuck)",
}
PHRASES = r"""
on: (?:turn|switch|power) * on * | (?:activate|enable) * | * =?on
on: <mach> * (?:an|ein) | * (?:an|ein|anschalten|einschalten|anmachen|anstellen|anknipsen|aktivieren) | aktiviere *
on lights: (?:light up|illuminate) *
off: (?:turn|switch|shut|power) * off * | off * | (?:shut|power) down * | (?:deactivate|disable) * | * =?off
off: <mach> * (?:aus|ab) | * (?:aus|ausschalten|abschalten|ausmachen|ausstellen|ausknipsen) | deaktiviere *
off lights: extinguish *
toggle: (?:toggle|flip) * | (?:change|alter|switch|flip) * (?:state|status) * | schalte? * um | * umschalten
start: (?:start|run|initiate|launch) * | * =started | starte * | * starten
open: (?:open|lift) * | (?:open|lift|pull|roll) * up * | offne * | * (?:auf|hoch|rauf|herauf)
open: <mach> * (?:auf|hoch|rauf|herauf|nach oben) | * (?:offnen|aufmachen|hochfahren|hochziehen)
close: (?:close|shut) * | (?:pull|roll) * down * | * =(?:closed|shut) | schliesse?(?! auf) * | * (?:zu|runter|herunter)
close: <mach> * (?:zu|runter|herunter|nach unten) | * (?:schliessen|zumachen|runterfahren|herunterfahren)
stop: (?:stop|halt)(?: adjusting| moving|) * | stoppe? * | halte? * an | * (?:stoppen|anhalten|stopp)
up: (?:turn|dial) * up * | (?:increase|raise|ramp up) * | <mach> * (?:hoch|hoher|rauf|herauf)
down: (?:turn|dial) * down * | (?:decrease|reduce|lower) * | <mach> * (?:runter|herunter|niedriger)
up fan: <up> * speed * | (?:speed up|accelerate) * | <mach> * <more>schneller | * <more>schneller
down fan: <down> * speed * | slow * down * | <mach> * <more>langsamer | * <more>langsamer
up lights: brighten * | make * <more>brighter | <up> * brightness * | <mach> * <more>heller | * <more>heller
down lights: dim * down * | dim * | make * <more>(?:dimmer|darker) | <down> * brightness * | dimme *
down lights: <mach> * <more>dunkler | * <more>dunkler | * dimmen
level: <set> * (?:up to|down to|to) # | * to # | * at # | * # | <mach> * auf # | * auf #
level lights: <set> * brightness * to # | <mach> * helligkeit * auf # | * auf # dimmen
level fan: <set> * speed * to #
level heating: <set> * temperature * to # | <mach> * temperatur * auf #
volume music: <set> * volume * to # | <mach> * lautstarke * auf # | lautstarke * auf #
level blind: open * to # | offne * auf #
full lights: <set> * to (?:full|maximum|max)(?: brightness|) | <mach> * (?:auf maximum|ganz hell)
full lights: <mach> * auf (?:volle|maximale) helligkeit | * auf (?:volle|maximale) helligkeit
least lights: <set> * to (?:minimum|min)(?: brightness|) | <mach> * auf (?:minimale helligkeit|minimum)
colour lights: <set> * to @ | <set> * @ | * @ | <set> * colou?r * to @ | <mach> * auf @ | <mach> * @ | * auf @
up heating: make * <more>warmer | make it <more>warmer * | <mach>(?: es|) * <more>warmer | * <more>warmer
down heating: make * <more>(?:cooler|colder) | make it <more>(?:cooler|colder) *
down heating: <mach>(?: es|) * <more>(?:kalter|kuhler) | * <more>(?:kalter|kuhler)
lock lock: (?:lock up|lock|secure|engage) * | * =locked | (?:schliesse?|sperre?) * (?:ab|zu)
lock lock: (?:verriegle|verriegele) * | * (?:abschliessen|absperren|zusperren|verriegeln|zuschliessen)
unlock lock: (?:unlock|disengage) * | * =unlocked | open * lock * | (?:schliesse?|sperre?) * auf
unlock lock: (?:entriegle|entriegele) * | * (?:aufschliessen|aufsperren|entriegeln)
pause music: pause * | pausiere? * | * pausieren
pause vacuum: pause * | pausiere? *
play music: (?:start playing(?: music|)|play|resume|continue|unpause) * | spiele? * weiter | * fortsetzen
next music: (?:play |skip to |go to |)(?:the |)next <song> * | skip (?:this |)<song> *
next music: (?:spiele? |)nachste[nrs] <song> *
previous music: (?:play |skip to |go back to |go to |)(?:the |)previous <song> * | (?:spiele? |)vorherige[nrs] <song> *
mute music: mute * | <mach> * stumm | * stummschalten
unmute music: unmute *
up music: <up> * volume * | turn * volume up * | make * <more>louder | <mach> * <more>lauter | * <more>lauter
down music: <down> * volume * | turn * volume down * | make * <more>quieter | <mach> * <more>leiser | * <more>leiser
dock vacuum: (?:send|return|bring) * (?:home|(?:back |)to * (?:base|dock|station|charger)) | dock *
dock vacuum: schicke? * (?:zuruck |)(?:zur|zu seiner|an seine) (?:ladestation|basis|station) | schicke? * zuruck
"""
_NAMES = ("red", "green", "blue", "yellow", "orange", "purple", "pink", "cyan", "magenta", "turquoise", "violet")
COLOURS = dict(zip(_NAMES, _NAMES, strict=True))  # the words of both languages: as Home Assistant calls them
COLOURS |= {"rot": "red", "grun": "green", "blau": "blue", "gelb": "yellow", "lila": "purple", "violett": "violet"}
COLOURS |= {"rosa": "pink", "turkis": "turquoise", "weiss": "white", "white": "white"}
WHITES = dict.fromkeys(("warm white", "soft white", "warm weiss", "warmweiss"), 2700)  # kelvin
WHITES |= dict.fromkeys(("neutral white", "neutral weiss", "neutralweiss"), 4000)
WHITES |= dict.fromkeys(("cool white", "cold white", "kalt weiss", "kaltweiss", "daylight", "tageslicht"), 6000)
