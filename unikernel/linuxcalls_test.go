package unikernel

import (
	"os"
	"testing"
)

// POSIX message queues behave as on Linux: names, priorities, waits, notifications, limits.
func TestLinuxMessageQueues(t *testing.T) { compareC(t, "mqueue") }

// Futexes with priority inheritance, and waits for several futexes, behave as on Linux.
func TestLinuxPIFutexes(t *testing.T) { compareC(t, "pifutex") }

// Pipes count pages and keep packets apart as on Linux.
func TestLinuxPipes(t *testing.T) { compareC(t, "pipepages") }

// Owners of files receive SIGIO and SIGURG as on Linux.
func TestLinuxFileSignals(t *testing.T) { compareC(t, "sigio") }

// Restartable sequences are aborted when another thread may have run on the CPU, and by signals.
func TestLinuxRestartableSequences(t *testing.T) { compareC(t, "rseq") }

// TCP connections end as on Linux: unread data, errors, getpeername and shutdown after a reset or a FIN; one SIGURG.
func TestLinuxTCPEnds(t *testing.T) { compareC(t, "tcpends") }

// UDP-Lite and SIOCGIFCONF behave as on Linux, down to the headers that are sent.
func TestLinuxUDPLite(t *testing.T) {
	asRoot(t, "only root opens raw sockets on the host")
	compareC(t, "udplite")
}

// Linux processes read frames from the receive rings of packet sockets, as tcpdump does.
func TestLinuxPacketRings(t *testing.T) {
	asRoot(t, "only root opens packet sockets on the host")
	compareC(t, "ring")
}

// Linux processes list sockets by sock_diag(7), as ss does.
func TestLinuxSocketDiag(t *testing.T) { compareC(t, "sockdiag") }

// Extended attributes of class "trusted" behave as on Linux.
func TestLinuxTrustedAttributes(t *testing.T) {
	asRoot(t, "only root has them on the host")
	compareC(t, "xattr")
}

// asRoot skips a test unless it runs as root: its program needs a privilege on the host.
func asRoot(t *testing.T, why string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip(why)
	}
}

// A program of the host finds the libraries and the data that the C library opens at run time.
func TestLinuxHostFiles(t *testing.T) { compareC(t, "hostfiles") }

// /proc/cpuinfo describes the processor as the instruction CPUID does.
func TestLinuxCPUInfo(t *testing.T) { compareC(t, "cpuinfo") }

// A process that a signal ends writes a core dump as on Linux: when, with which status, and with which content.
func TestLinuxCoreDumps(t *testing.T) { compareC(t, "coredump") }

// A request to a stopped process may follow PTRACE_ATTACH and PTRACE_SEIZE without a wait, as on Linux.
func TestLinuxAttachToStopped(t *testing.T) { compareC(t, "attachstopped") }

// Only a thread with CAP_NET_BIND_SERVICE binds ports below 1024, as on Linux.
func TestLinuxPrivilegedPorts(t *testing.T) {
	asRoot(t, "only root binds them on the host")
	compareC(t, "ports")
}
