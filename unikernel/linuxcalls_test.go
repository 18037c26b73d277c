package unikernel

import "testing"

// POSIX message queues behave as on Linux: names, priorities, waits, notifications, limits.
func TestLinuxMessageQueues(t *testing.T) { compareC(t, "mqueue") }

// Futexes with priority inheritance, and waits for several futexes, behave as on Linux.
func TestLinuxPIFutexes(t *testing.T) { compareC(t, "pifutex") }

// Owners of files receive SIGIO and SIGURG as on Linux.
func TestLinuxFileSignals(t *testing.T) { compareC(t, "sigio") }

// Restartable sequences are aborted when another thread may have run on the CPU, and by signals.
func TestLinuxRestartableSequences(t *testing.T) { compareC(t, "rseq") }
