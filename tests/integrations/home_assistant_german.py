"""Sixty German commands and what each should do in the house `GERMAN`: written before the grammar that reads them.

A line: the command, then ` -> ` and the calls (`domain.service ids {data}`, `; ` between two), or `model` where it is
not certain what is meant, who may do it, or when: then the message goes on to the model.
"""

TABLE = """
Mach das Licht in der Küche aus -> light.turn_off light.kueche_decke light.kueche_arbeitsplatte
Schalte bitte das Küchenlicht an -> light.turn_on light.kueche_decke light.kueche_arbeitsplatte
Licht im Flur aus -> light.turn_off light.flur
Kannst du das Licht im Bad ausschalten? -> light.turn_off light.bad
Badlicht an -> light.turn_on light.bad
Mach die Stehlampe aus -> light.turn_off light.stehlampe
Schalt die Lampen im Wohnzimmer ein -> light.turn_on light.stehlampe light.wohnzimmer_decke
Mach alle Lichter aus -> light.turn_off ALL_LIGHTS
Mach im ganzen Obergeschoss das Licht aus -> light.turn_off light.schlafzimmer light.nachttisch_links \
light.nachttisch_rechts light.bad light.schreibtisch light.sternenhimmel
Bitte die Schreibtischlampe einschalten -> light.turn_on light.schreibtisch
Dimme die Stehlampe auf 30 Prozent -> light.turn_on light.stehlampe {"brightness_pct": 30}
Stell das Deckenlicht in der Küche auf 75% -> light.turn_on light.kueche_decke {"brightness_pct": 75}
Mach die Stehlampe heller -> light.turn_on light.stehlampe {"brightness_step_pct": 20}
Mach das Badlicht etwas dunkler -> light.turn_on light.bad {"brightness_step_pct": -20}
Stehlampe auf volle Helligkeit -> light.turn_on light.stehlampe {"brightness_pct": 100}
Mach die Stehlampe blau -> light.turn_on light.stehlampe {"color_name": "blue"}
Stell das Schlafzimmer Licht auf warmweiß -> light.turn_on light.schlafzimmer {"color_temp_kelvin": 2700}
Schalte die Kaffeemaschine ein -> switch.turn_on switch.kaffeemaschine
Gartenpumpe aus -> switch.turn_off switch.gartenpumpe
Mach den Christbaum an -> switch.turn_on switch.weihnachtsbaum
Fahr die Rollläden im Wohnzimmer runter -> cover.close_cover cover.wohnzimmer_links cover.wohnzimmer_rechts
Rollladen im Schlafzimmer hoch -> cover.open_cover cover.schlafzimmer
Öffne die Jalousie im Büro -> cover.open_cover cover.buero
Schließ den linken Rollladen im Wohnzimmer -> model
Stopp die Markise -> cover.stop_cover cover.markise
Fahr die Markise aus -> model
Mach das Garagentor auf -> cover.open_cover cover.garagentor
Schließe bitte das Garagentor -> cover.close_cover cover.garagentor
Stell die Heizung im Bad auf 22 Grad -> climate.set_temperature climate.bad {"temperature": 22}
Dreh die Heizung im Schlafzimmer auf 18,5 Grad -> climate.set_temperature climate.schlafzimmer {"temperature": 18.5}
Stell das Thermostat im Wohnzimmer auf 21 °C -> climate.set_temperature climate.wohnzimmer {"temperature": 21}
Mach es im Bad wärmer -> climate.set_temperature climate.bad {"temperature": 21}
Heizung im Schlafzimmer kälter -> climate.set_temperature climate.schlafzimmer {"temperature": 19}
Stell die Heizung im Bad auf 60 Grad -> model
Schalte den Ventilator im Büro ein -> fan.turn_on fan.buero
Stell den Deckenventilator auf 75 Prozent -> fan.set_percentage fan.schlafzimmer {"percentage": 75}
Deckenventilator schneller -> fan.increase_speed fan.schlafzimmer
Schließ die Haustür ab -> lock.lock lock.haustuer
Sperr die Haustür auf -> lock.unlock lock.haustuer
Verriegle das Gartentor -> lock.lock lock.gartentor
Mach den Fernseher leiser -> media_player.volume_down media_player.fernseher
Küchenradio lauter -> media_player.volume_up media_player.kueche
Stell die Lautstärke vom Fernseher auf 25 Prozent -> media_player.volume_set media_player.fernseher \
{"volume_level": 0.25}
Pausiere den Fernseher -> media_player.media_pause media_player.fernseher
Nächster Titel auf dem Küchenradio -> media_player.media_next_track media_player.kueche
Spiel den Lautsprecher im Bad weiter -> media_player.media_play media_player.bad
Starte Robi -> vacuum.start vacuum.robi
Schick den Staubsauger zurück zur Ladestation -> vacuum.return_to_base vacuum.robi
Mach das Licht in der Küche nicht aus -> model
Wenn ich nach Hause komme, mach das Flurlicht an -> model
Mach in zehn Minuten das Badlicht aus -> model
Mach das Licht in der Küche aus und im Flur an -> model
Mach alle Lichter außer dem Flurlicht aus -> model
Mach das Licht aus -> model
Mach die Lampe im Schlafzimmer an -> model
Starte die Szene Filmabend -> model
Er sagte: "Mach die Stehlampe aus" -> model
Wie macht man das Badlicht aus? -> model
Mach das Fenster in der Küche zu -> model
Könntest du die Steckdose Fernseher ausschalten, falls sie an ist? -> model
"""
