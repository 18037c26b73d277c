// Package timer implements timers: as files (timerfd_create(2)), and with signals (setitimer(2), timer_create(2)).
// It knows no processes: a Set has the timers of one, and a Sender sends its signals.
package timer
