"""Tests that CI leaves to a release: CI has 45 minutes, and a release leaves none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

_TAKES_A_MINUTE: Mapping[str, Sequence[str]] = {
    "test_answers": ("test_half_an_hour_of_load_has_no_stall",),
    "test_bench": (
        "test_where_the_server_is_stopped_the_read_ahead_is_back_at_once_and_the_files_go_later",
        "test_an_unmount_under_it_is_said_and_the_next_start_removes_its_files",
        "test_a_full_disk_is_said_and_nothing_is_left",
        "test_a_disk_that_fills_up_under_it_ends_it_with_the_reason",
    ),
    "test_calls": ("test_the_unit_allows_what_the_service_calls",),
    "test_dead_server": (
        "test_a_silent_server_stops_nothing_else",
        "test_a_silent_server_of_the_sites_programs_stops_nothing_else",
    ),
    "test_hostile_servers": ("test_no_name_of_a_server_says_anything_of_another_mount",),
    "test_hostile_users": ("test_a_mountinfo_of_300_mb_costs_the_service_nothing",),
    "test_idle": ("test_it_makes_no_system_call_for_30_s",),
    "test_journal": ("test_a_mount_that_is_read_is_sampled",),
    "test_missing": (
        "test_what_is_mounted_by_hand_at_its_first_use_a_service_or_elsewhere_is_not_missing",
        "test_a_mount_that_comes_late_or_goes_and_comes_again_is_not_missing",
    ),
    "test_overflow": (
        "test_nothing_is_missed_when_2000_events_came_while_it_was_stopped",
        "test_records_of_superblocks_that_went_unseen_are_dropped",
    ),
    "test_persist": ("test_the_service_has_it_written_for_a_server_that_it_sees",),
    "test_samples_kept": ("test_the_file_and_the_journal_have_the_same_samples_and_show_what_fio_wrote",),
    "test_state": ("test_restore_on_stop_leaves_the_values_when_the_daemon_is_killed",),
    "test_storm": ("test_a_storm_of_300_mounts_leaves_every_mount_and_every_stranger_right",),
    "test_strangers": ("test_devices_that_appear_during_a_storm_keep_the_kernels_values",),
    "test_tunnel": ("test_a_tunnel_of_which_a_thread_has_all_of_a_processor",),
}
"""For a flood, a silence, or what is counted over a while."""

_ONE_MORE_WAY: Mapping[str, Sequence[str]] = {
    "test_answers": (
        "test_it_is_never_called_stalled_nor_is_an_idle_mount_beside_it[loaded]",
        "test_it_is_never_called_stalled_nor_is_an_idle_mount_beside_it[rebooted]",
        "test_it_is_never_called_stalled_nor_is_an_idle_mount_beside_it[suspended]",
    ),
    "test_bench": ("test_however_it_is_ended_all_is_put_back[INT]",),
    "test_check": (
        "test_the_first_mount_wins_with_v3",
        "test_the_first_mount_wins_under_another_name",
        "test_a_clear_mount_after_a_tls_one_goes_through_its_tunnel",
    ),
    "test_check_host": (
        "test_a_broken_rule_does_what_the_finding_says[space-after-backslash]",
        "test_a_broken_rule_does_what_the_finding_says[missing-backslashes]",
        "test_a_broken_rule_does_what_the_finding_says[unconditional]",
        "test_a_broken_rule_does_what_the_finding_says[dollar-four]",
        "test_a_rule_of_the_same_name_hides_nfs_utils_own",
    ),
    "test_check_smb": (
        "test_channels_are_counted_and_judged[1]",
        "test_channels_are_counted_and_judged[8]",
    ),
    "test_config": (
        "test_check_names_file_key_and_value_of[a value out of bounds]",
        "test_check_names_file_key_and_value_of[a misspelt key]",
        "test_check_names_file_key_and_value_of[profiles in a circle]",
        "test_check_names_file_key_and_value_of[an interval that is none]",
        "test_check_names_file_key_and_value_of[no TOML]",
        "test_each_problem_is_an_entry_of_its_own",
        "test_a_new_value_at_a_reload_reaches_mounts_that_exist[4096-8192]",
    ),
    "test_first_look": (
        "test_27_of_30_mounts_are_right_at_the_first_look_and_all_within_50_ms[vers=4.1,nconnect=4]",
    ),
    "test_identity": ("test_sessions_are_taken_away_before_and_stay_with_the_unit[4.0]",),
    "test_persist": ("test_an_automount_has_it_again_after_it_expired",),
    "test_samples": (
        "test_a_sample_agrees_with_fio_the_server_and_the_sockets[1-vers=4.1]",
        "test_a_sample_agrees_with_fio_the_server_and_the_sockets[1-vers=4.2]",
        "test_a_sample_agrees_with_fio_the_server_and_the_sockets[4-vers=3,nolock]",
        "test_a_sample_agrees_with_fio_the_server_and_the_sockets[4-vers=4.2]",
        "test_a_sample_agrees_with_fio_the_server_and_the_sockets[16-vers=3,nolock]",
        "test_a_sample_agrees_with_fio_the_server_and_the_sockets[16-vers=4.1]",
    ),
    "test_stalls": (
        "test_each_mount_that_waits_is_told_of_and_so_is_its_end[stopped-1]",
        "test_each_mount_that_waits_is_told_of_and_so_is_its_end[dropped-1]",
        "test_each_mount_that_waits_is_told_of_and_so_is_its_end[dropped-4]",
        "test_each_mount_that_waits_is_told_of_and_so_is_its_end[hung disk-1]",
        "test_each_mount_that_waits_is_told_of_and_so_is_its_end[hung disk-4]",
        "test_of_four_connections_one_is_enough",
    ),
    "test_state": (
        "test_undo_knows_the_values_from_before_a_restart",
        "test_undo_is_respected_after_a_restart",
        "test_restore_on_stop_keeps_the_administrators_undo",
        "test_what_restore_on_stop_put_back_is_tuned_at_the_next_start",
    ),
    "test_udev_mask": ("test_values_of_an_administrator_in_nfs_conf_are_told_or_obeyed[16384-16384]",),
    "test_value_stays": (
        "test_no_mount_has_another_value_once_it_has_its_own[vers=4.1,nconnect=4-busy]",
        "test_what_waits_for_a_mount_opens_its_files_with_the_right_value[vers=4.1,nconnect=4]",
    ),
}
"""A version, a signal, a number, a mistake of another kind: of what another test of the file shows."""

_SHOWN_ELSEWHERE: Mapping[str, Sequence[str]] = {
    "test_check": (
        "test_a_clear_line_beside_a_tls_mount",
        "test_the_kernels_own_128_without_the_daemon",
    ),
    "test_check_host": (
        "test_nconnect_over_public_endpoints",
        "test_several_shares_of_one_account_over_a_private_endpoint",
        "test_a_privatelink_chain_that_ends_public",
        "test_an_address_that_changed_after_the_mount",
        "test_a_filtered_port",
        "test_a_soft_mount_and_kerberos_in_fstab",
        "test_nfsrahead_at_its_default_against_the_policy",
    ),
    "test_check_smb": (
        "test_channels_that_the_server_does_not_offer_are_missed",
        "test_another_vendors_server_is_not_held_to_azures_numbers",
    ),
    "test_commands": (
        "test_status_without_a_mount_is_empty",
        "test_the_schema_is_json",
        "test_a_broken_configuration_is_exit_2_and_costs_status_only_the_targets",
        "test_wrong_usage_is_exit_2",
    ),
    "test_config": (
        "test_check_is_content_without_a_file_and_with_a_good_one",
        "test_drop_ins_count_more_than_the_main_file",
    ),
    "test_external_updates": ("test_a_value_written_by_hand_is_set_again_at_the_next_look",),
    "test_first_look": ("test_with_nfs_utils_rule_in_place_30_of_30_mounts_end_right",),
    "test_identity": ("test_check_names_both",),
    "test_missing": (
        "test_behind_a_link_systemd_knows_it_by_what_the_link_leads_to",
        "test_a_copy_in_another_mount_namespace_is_not_the_hosts_mount",
    ),
    "test_remount": ("test_a_mount_that_is_refused_leaves_the_others_and_the_command_that_finishes",),
    "test_rivals": ("test_only_lower_true_lowers_and_every_value_is_within_the_bounds",),
    "test_sandbox": (
        "test_it_takes_what_is_mounted_already_and_says_how_many",
        "test_a_restart_tunes_what_came_meanwhile",
    ),
    "test_service": ("test_a_configured_value_is_used_after_a_reload",),
    "test_udev_mask": (
        "test_a_changed_copy_in_etc_stays_in_force_and_is_answered",
        "test_status_and_check_know_who_writes",
        "test_a_tool_that_writes_again_and_again_is_answered_three_times_and_then_left",
    ),
}
"""By tests that boot nothing, of the same code on trees of hosts, or by a scenario of another file."""

_PARTS = (_TAKES_A_MINUTE, _ONE_MORE_WAY, _SHOWN_ELSEWHERE)
LEFT: Mapping[str, Sequence[str]] = {
    file: [test for part in _PARTS for test in part.get(file, ())] for file in sorted({*chain(*_PARTS)})
}
"""The tests by their files; the names are those that pytest has for them."""
SECONDS: Mapping[str, int] = {
    "test_answers": 80,
    "test_bench": 30,
    "test_check": 55,
    "test_check_host": 35,
    "test_check_smb": 20,
    "test_commands": 50,
    "test_config": 60,
    "test_dead_server": 70,
    "test_external_updates": 45,
    "test_first_look": 25,
    "test_hostile_users": 10,
    "test_identity": 30,
    "test_journal": 40,
    "test_missing": 15,
    "test_persist": 10,
    "test_remount": 60,
    "test_rivals": 35,
    "test_samples": 30,
    "test_samples_kept": 45,
    "test_sandbox": 25,
    "test_service": 50,
    "test_stalls": 165,
    "test_state": 70,
    "test_strangers": 30,
    "test_udev_mask": 50,
    "test_value_stays": 55,
}
"""How long the files take in CI, without those; what it leaves as a whole is not among them."""
