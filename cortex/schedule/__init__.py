"""Reads and follows time: words and cron lines to timings, timings to moments, moments to slots that run or are missed.

Pure: no disk, no network, no clock; the present moment comes in as an argument. Uses `base` alone.
"""
