"""How reconcile reads the whole table: cursors, their conditions, and when a pass begins and ends."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

PASS: Final = (
    Mutant(
        "a cursor moves before its page is worked",
        modules.TABLE_PASS,
        "TablePasses._segment",
        "worked, complete = _worked(page.found, work)",
        "self._store.save(segment.past(page.cursor, page.items))\nworked, complete = _worked(page.found, work)",
    ),
    Mutant(
        "a cursor moves past failed items",
        modules.TABLE_PASS,
        "TablePasses._segment",
        "not complete and segment.tries + 1 < MOST_TRIES",
        "complete is None",
    ),
    Mutant(
        "a cursor is not saved",
        modules.TABLE_PASS,
        "TablePasses._segment",
        "moved and self._store.save(moved)",
        "moved",
    ),
    Mutant(
        "a page is passed over",
        modules.TABLE_PASS,
        "TablePasses._segment",
        "segment.cursor",
        "segment.cursor and segment.cursor + '~'",
    ),
    Mutant("an alarm gets no pass", modules.RECONCILE_ENTRY, "handle", "passes.ask()", "pass"),
    Mutant(
        "the last metrics of reconcile are not written",
        modules.RECONCILE_ENTRY,
        "handle",
        "telemetry.flush()\nreturn None",
        "return None",
    ),
    Mutant(
        "a segment is skipped", modules.TABLE_PASS, "TablePasses._work", "range(table_pass.segments)", "range(1, 3)"
    ),
    Mutant(
        "a pass ends without its last segment",
        modules.TABLE_PASS,
        "TablePasses._work",
        "ends.count(SegmentEnd.DONE) == table_pass.segments",
        "ends.count(SegmentEnd.DONE) >= table_pass.segments - 1",
    ),
    Mutant(
        "a pass never ends",
        modules.TABLE_PASS,
        "TablePasses._work",
        "ends.count(SegmentEnd.DONE) == table_pass.segments",
        "ends.count(SegmentEnd.DONE) > table_pass.segments",
    ),
    Mutant(
        "a pass takes over the cursors of the one before",
        modules.PASS_ITEMS,
        "decoded_segment",
        "saved_by != table_pass.number",
        "not item",
    ),
    Mutant(
        "a cursor is saved over another run's",
        modules.PASS_ITEMS,
        "_put_over",
        "'#version = :read'",
        "'(#version = :read OR attribute_exists(#version))'",
    ),
    Mutant(
        "the first save of a cursor ignores another run's",
        modules.PASS_ITEMS,
        "_put_over",
        "'attribute_not_exists(#version)'",
        "'(attribute_not_exists(#version) OR attribute_exists(#version))'",
    ),
    Mutant("an alarm begins no pass", "tidemill.entrypoints.reconcile", "handle", "passes.ask()", "pass"),
    Mutant(
        "a pass that was asked for is forgotten",
        modules.PASS_STATE,
        "TablePass.workable",
        "self.asked or now - self.began_at >= PASS_INTERVAL",
        "now - self.began_at >= PASS_INTERVAL",
    ),
    Mutant(
        "a pass begins only when it was asked for",
        modules.PASS_STATE,
        "TablePass.workable",
        "self.asked or now - self.began_at >= PASS_INTERVAL",
        "self.asked",
    ),
    Mutant(
        "a run holds its pass for ever",
        modules.TABLE_PASS,
        "TablePasses._taken",
        "min(time_left, _LONGEST_HOLD)",
        "_LONGEST_HOLD * 999999",
    ),
)
