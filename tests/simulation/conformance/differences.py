"""Where a backend differs from the AWS documentation. Each is a strict xfail, so a fixed difference shows."""

from collections.abc import Mapping
from typing import Final

from tests.simulation.conformance.citations import EMULATOR, MOTO, SIMULATED

#: The behaviour, by backend and by name of the case.
DIFFERENCES: Final[Mapping[str, Mapping[str, str]]] = {
    SIMULATED: {
        "test_a_page_is_a_megabyte_at_most": "cuts a page after 2, 5 or 1,000 items, as the seed says",
        "test_an_outage_ends_the_retries": "makes all three tries",
    },
    MOTO: {
        "test_a_number_does_not_compare_with_text": "fails on an order between the two types",
        "test_a_path_must_lead_somewhere": "accepts some invalid paths, and does nothing",
        "test_an_index_key_must_be_of_its_type": "accepts any",
        "test_every_placeholder_must_be_defined": "fails with a KeyError of its own",
        "test_a_token_makes_a_repeat_harmless": "applies it again",
        "test_a_token_stands_for_its_parameters": "ignores the token",
        "test_four_megabytes_at_most": "accepts more",
        "test_an_invalid_update_cancels_the_transaction": "answers ValidationException, without reasons",
        "test_a_write_that_changes_nothing_has_no_record": "writes a record",
        "test_some_characters_are_rejected": "answers InvalidParameterValue, and accepts U+FFFE",
        "test_a_batch_is_a_mebibyte_at_most": "counts characters",
        "test_a_message_is_not_empty": "accepts it",
        "test_only_messages_in_flight_can_be_hidden": "hides other messages too",
    },
    EMULATOR: {
        "test_numbers_are_exact": "counts with 28 digits",
        "test_a_path_must_lead_somewhere": "accepts some invalid paths, and does nothing",
        "test_one_attribute_is_written_once": "writes it twice",
        "test_each_clause_comes_once": "accepts it twice",
        "test_a_delay_is_a_quarter_of_an_hour_at_most": "accepts any",
        "test_one_invalid_entry_does_not_fail_a_batch": "accepts any delay",
        "test_a_timeout_is_twelve_hours_at_most": "accepts any",
        "test_only_messages_in_flight_can_be_hidden": "hides other messages too",
        "test_a_delete_with_a_stale_receipt_succeeds": "answers ReceiptHandleIsInvalid",
        "test_an_empty_failure_list_deletes_the_batch": "keeps it",
        "test_a_malformed_answer_keeps_the_batch": "deletes it",
        "test_a_response_that_is_not_an_object_keeps_the_batch": "deletes it",
        "test_an_unknown_id_keeps_the_batch": "deletes it",
    },
}
