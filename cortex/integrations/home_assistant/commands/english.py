"""English orders for the house. A line: intent, the kind where only a place is named (`!`: nothing else), pattern.

Articles are gone from the text already. `readings.py` compiles this.
"""

HEAD = (
    r"^(?:(?:hey|hi|hello|ok|okay|please|cortex) )*(?:(?:(?:can|could|will|would) (?:you|we)"
    r"|may i (?:ask|request) you to|i would like you to|i want you to|i need you to) (?:please |kindly )*)?(?:please )?"
)
TAIL = r"(?: (?:please|now|right now|immediately|thanks|thank you|for me))*$"

PATTERNS = r"""
on: (?:turn|switch|power) on {t}
on: (?:turn|switch|power) {t} on
on: (?:activate|enable) {t}
on: {t} on
on: {t} (?:needs? to|should|must|has to|have to) be (?:turned|switched|powered) on
on: (?:make sure|ensure) (?:that )?{t} (?:is|are) (?:turned |switched )?on
on light!: (?:light up|illuminate) {t}
off: (?:turn|switch|shut|power) off {t}
off: (?:turn|switch|shut|power) {t} off
off: (?:shut|power) down {t}
off: (?:deactivate|disable) {t}
off light!: extinguish {t}
off: {t} off
off: off {t}
off: {t} (?:needs? to|should|must|has to|have to) be (?:turned|switched|powered) off
off: (?:make sure|ensure) (?:that )?{t} (?:is|are) (?:turned |switched )?off
toggle: (?:toggle|flip) {t}
toggle: (?:change|alter|switch|flip) (?:state|status) of {t}
toggle: (?:change|alter|switch|flip) {a} (?:state|status)(?: {b})?
start: (?:start|run|initiate|launch) {t}
start: {t} (?:needs? to|should|must|has to|have to) be started
open: (?:open|lift) {t}
open: (?:open|lift|pull|roll) {t} up
open: (?:open|pull|roll) up {t}
close: (?:close|shut) {t}
close: (?:pull|roll) {t} down
close: (?:pull|roll) down {t}
close: (?:make sure|ensure) (?:that )?{t} (?:is|are) (?:closed|shut)
close: {t} (?:needs? to|should|must|has to|have to) be (?:closed|shut)
stop: (?:stop|halt) {t}
stop: stop (?:adjusting|moving|opening|closing) {t}
raise: raise {t}
lower: lower {t}
up: (?:turn|dial) up {t}
up: (?:turn|dial) {t} up
up: increase {t}
down: (?:turn|dial) down {t}
down: (?:turn|dial) {t} down
down: (?:decrease|reduce) {t}
faster fan!: (?:increase|raise|boost|ramp up|turn up) speed (?:of|on) {t}
faster fan!: (?:increase|raise|boost|ramp up|turn up) {a} speed(?: {b})?
faster fan!: (?:speed up|accelerate) {t}
slower fan!: (?:decrease|reduce|lower|turn down) speed (?:of|on) {t}
slower fan!: (?:decrease|reduce|lower|turn down) {a} speed(?: {b})?
slower fan!: (?:slow down {t}|slow {a} down)
brighter light!: (?:brighten {t}|brighten {a} up|make {b} (?:a bit |a little |slightly )?brighter)
brighter light!: (?:increase|raise|turn up) brightness (?:of|on|in|for) {t}
brighter light!: (?:increase|raise|turn up) {t} brightness
dimmer light!: (?:dim {t}|dim {a} down|dim down {b})
dimmer light!: make {t} (?:a bit |a little |slightly )?(?:dimmer|darker|less bright)
dimmer light!: (?:decrease|lower|reduce|turn down) brightness (?:of|on|in|for) {t}
dimmer light!: (?:decrease|lower|reduce|turn down) {t} brightness
percent: (?:set|turn|change|put|bring|adjust) {t} to {n} percent
percent: {t} (?:to |at )?{n} percent
percent light!: (?:dim|brighten) {t} to {n} percent
percent light!: (?:set|change|put|bring|adjust|turn) brightness (?:of|on|in|for) {t} to {n} percent
percent light!: (?:set|change|put|bring|adjust|turn) {a} brightness(?: {b})? to {n} percent
position blind: open {t} to {n} percent
percent fan!: (?:set|change|put|adjust|turn) speed (?:of|on) {t} to {n} percent
percent fan!: (?:set|change|put|adjust|turn) {a} speed(?: {b})? to {n} percent
volume player!: (?:set|change|put|adjust|turn) volume {b} to {n} percent
volume player!: (?:set|change|put|adjust|turn) {a} volume(?: {b})? to {n} percent
most light!: (?:set|turn|change|put|bring) {t} to (?:full brightness|maximum brightness|max brightness|full|maximum|max)
least light!: (?:set|turn|change|put|bring|dim) {t} to (?:minimum brightness|min brightness|minimum|min)
colour light!: (?:set|turn|change|make|put) {t} (?:to )?{c}
colour light!: {t} (?:to )?{c}
colour light!: (?:set|change) colou?r of {t} to {c}
kelvin light!: (?:set|turn|change|make|put) {t} to {n} kelvin
degrees heating!: (?:set|turn|change|put|bring|adjust|heat|cool|make) {t} (?:up |down )?to {n} degrees(?: celsius| c)?
degrees heating!: (?:set|change|put|adjust|turn) temperature (?:of|in|on|for) {t} to {n}(?: degrees)?
degrees heating!: (?:set|change|put|adjust|turn) {a} temperature(?: {b})? to {n}(?: degrees)?
degrees heating!: {t} (?:to )?{n} degrees
warmer heating!: make {t} (?:a bit |a little |slightly )?warmer
warmer heating!: make it (?:a bit |a little |slightly )?warmer {b}
cooler heating!: make {t} (?:a bit |a little |slightly )?(?:cooler|colder)
cooler heating!: make it (?:a bit |a little |slightly )?(?:cooler|colder) {b}
lock lock!: (?:lock up|lock|secure|engage) {t}
lock lock!: (?:make sure|ensure) (?:that )?{t} (?:is|are) locked
lock lock!: {t} (?:needs? to|should|must|has to|have to) be locked
lock lock!: i (?:need|want|would like) {t} locked
unlock lock!: (?:unlock|disengage) {t}
unlock lock!: open lock (?:of|on|for) {t}
unlock lock!: open {t} lock
unlock lock!: {t} (?:needs? to|should|must|has to|have to) be unlocked
unlock lock!: i (?:need|want|would like) {t} unlocked
pause player: pause {t}
play player!: (?:play|resume|continue|unpause) {t}
play player!: start playing (?:music )?{t}
next player!: (?:(?:play|skip to|go to) )?next (?:track|song|title) {b}
next player!: skip (?:track|song|title|this song|this track) {b}
previous player!: (?:(?:play|skip to|go to|go back to) )?previous (?:track|song|title) {b}
mute player!: mute {t}
unmute player!: unmute {t}
louder player!: (?:increase|raise|turn up) volume {b}
louder player!: (?:increase|raise|turn up) {a} volume(?: {b})?
louder player!: turn (?:volume up {b}|{a} volume up)
louder player!: make {t} (?:a bit |a little |slightly )?louder
quieter player!: (?:decrease|lower|reduce|turn down) volume {b}
quieter player!: (?:decrease|lower|reduce|turn down) {a} volume(?: {b})?
quieter player!: turn (?:volume down {b}|{a} volume down)
quieter player!: make {t} (?:a bit |a little |slightly )?(?:quieter|softer)
dock vacuum!: (?:send|return|bring) {t} (?:back )?(?:home|to (?:its )?(?:base|dock|station|charger|charging station))
dock vacuum!: dock {t}
"""
