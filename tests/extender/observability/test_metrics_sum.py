"""The metrics of several processes as those of one."""

from __future__ import annotations

from extender.observability.metrics_sum import sum_expositions

FIRST = b"""\
# HELP reprieve_requests_total Calls
# TYPE reprieve_requests_total counter
reprieve_requests_total{verb="filter"} 1.0
# HELP reprieve_request_seconds Time
# TYPE reprieve_request_seconds histogram
reprieve_request_seconds_bucket{le="+Inf"} 1.0
reprieve_request_seconds_count 1.0
reprieve_request_seconds_sum 0.5
# HELP reprieve_objects Cached
# TYPE reprieve_objects gauge
reprieve_objects{kind="pods"} 7.0
# HELP reprieve_queue_length Calls
# TYPE reprieve_queue_length gauge
reprieve_queue_length 1.0
"""
OTHER = b"""\
# HELP reprieve_requests_total Calls
# TYPE reprieve_requests_total counter
reprieve_requests_total{verb="filter"} 2.0
reprieve_requests_total{verb="preempt"} 3.0
# HELP reprieve_request_seconds Time
# TYPE reprieve_request_seconds histogram
reprieve_request_seconds_bucket{le="+Inf"} 2.0
reprieve_request_seconds_count 2.0
reprieve_request_seconds_sum 0.25
# HELP reprieve_objects Cached
# TYPE reprieve_objects gauge
reprieve_objects{kind="pods"} 6.0
# HELP reprieve_queue_length Calls
# TYPE reprieve_queue_length gauge
reprieve_queue_length 2.0
"""


def test_counters_histograms_and_what_each_process_has_for_itself_are_summed() -> None:
    lines = sum_expositions(FIRST, [OTHER]).decode().splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        'reprieve_requests_total{verb="filter"} 3.0',
        'reprieve_requests_total{verb="preempt"} 3.0',
        'reprieve_request_seconds_bucket{le="+Inf"} 3.0',
        "reprieve_request_seconds_count 3.0",
        "reprieve_request_seconds_sum 0.75",
        'reprieve_objects{kind="pods"} 7.0',
        "reprieve_queue_length 3.0",
    ]


def test_the_metrics_of_one_process_stay_as_they_are() -> None:
    assert sum_expositions(FIRST, []) == FIRST
