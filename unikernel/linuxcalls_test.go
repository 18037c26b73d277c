//go:build !race

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

// Threads run only on the CPUs that sched_setaffinity(2) allows.
func TestLinuxAffinity(t *testing.T) { compareC(t, "affinity") }

// Owners of files receive SIGIO and SIGURG as on Linux.
func TestLinuxFileSignals(t *testing.T) { compareC(t, "sigio") }

// Restartable sequences are aborted when another thread may have run on the CPU, and by signals.
func TestLinuxRestartableSequences(t *testing.T) { compareC(t, "rseq") }

// The vsyscall page, wakes of no waiter, far returns, fdinfo and files without a name behave as on Linux.
func TestLinuxSelftests(t *testing.T) { compareC(t, "selftests") }

// The sums of smaps_rollup and PROCMAP_QUERY are as on Linux.
func TestLinuxQueries(t *testing.T) { compareC(t, "queries") }

// Unix sockets pass pidfds of senders and peers as on Linux: SO_PASSPIDFD and SO_PEERPIDFD.
func TestLinuxPassedProcesses(t *testing.T) {
	asRoot(t, "only root sends messages in the name of another process")
	compareC(t, "passpidfd")
}

// Memory that mseal(2) has sealed stays as it is, as on Linux.
func TestLinuxSealedMemory(t *testing.T) { compareC(t, "mseal") }

// TCP connections end as on Linux: unread data, errors, getpeername and shutdown after a reset or a FIN; one SIGURG.
func TestLinuxTCPEnds(t *testing.T) { compareC(t, "tcpends") }

// UDP-Lite and SIOCGIFCONF behave as on Linux, down to the headers that are sent.
func TestLinuxUDPLite(t *testing.T) {
	asRoot(t, "only root opens raw sockets on the host")
	compareC(t, "udplite")
}

// Sends with MSG_MORE or UDP_CORK make one datagram, as on Linux.
func TestLinuxUDPCork(t *testing.T) { compareC(t, "udpcork") }

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

// Memory with huge pages has the same content as on Linux after operations on parts of it.
func TestLinuxHugePages(t *testing.T) { compareC(t, "hugepages") }

// Memory is in huge pages as MADV_HUGEPAGE and the policy in /sys say, and no page is left when its processes have ended.
func TestLinuxHugePagesInUse(t *testing.T) {
	const once = `after a load: 0 kB here, 0 kB in all
after stores: 8192 kB here, 8192 kB in all
content: of 2048 pages 2048 are filled, 0 are zero
after munmap of a page: 6144 kB here, 6144 kB in all
after mprotect of a page: 4096 kB here
after MADV_DONTNEED of a page: 4096 kB here, 4096 kB in all
MADV_COLLAPSE: done
after MADV_COLLAPSE: 6144 kB here, 6144 kB in all
content: of 512 pages 511 are filled, 1 are zero
without advice: 6144 kB here, 6144 kB in all
an unknown policy: Invalid argument
with the policy always: 8192 kB here, 8192 kB in all
with PR_SET_THP_DISABLE: 8192 kB here, 8192 kB in all
huge pages: the child ends with status 0
`
	const want = once + once + "at the end: 0 kB here, 0 kB in all\npages are left: 0\n"
	cmd := linuxCommand(compiled(t, t.TempDir(), "hugepages"), "in use")
	if got, err := cmd.CombinedOutput(); err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, differing(string(got), want))
	}
}

// Access control lists say who may use files, and renames leave whiteouts, as on Linux.
func TestLinuxAccessControlLists(t *testing.T) {
	asRoot(t, "its processes become other users")
	compareC(t, "acl")
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

// The pages of all pipes of a user are limited as on Linux.
func TestLinuxPipeQuota(t *testing.T) {
	asRoot(t, "it becomes another user")
	compareC(t, "pipequota")
}

// The number of descriptors in messages of a user has Linux's limit.
func TestLinuxInFlight(t *testing.T) {
	asRoot(t, "it becomes another user")
	compareC(t, "inflight")
}

// Files of /proc/sys are written as on Linux, and the new values have an effect.
func TestLinuxSettings(t *testing.T) {
	asRoot(t, "it creates namespaces and becomes another user")
	compareC(t, "sysctl")
}

// System calls conform to the settings in /proc/sys that cannot be changed, and /proc/meminfo does not show more memory than there is.
func TestLinuxDefaults(t *testing.T) { compareC(t, "defaults") }

// File systems are mounted by fsopen(2) and the calls that belong to it, and mounts are moved, as on Linux.
func TestLinuxNewMounts(t *testing.T) {
	asRoot(t, "only root mounts on the host")
	compareC(t, "newmount")
}

// Calls check their arguments, and report events and figures, as on Linux.
func TestLinuxArguments(t *testing.T) { compareC(t, "arguments") }

// Leases of files are given, broken and reported as on Linux.
func TestLinuxLeases(t *testing.T) {
	asRoot(t, "it becomes another user")
	compareC(t, "lease")
}

// /proc/locks and /proc/PID/fdinfo show locks, leases and requests that wait as on Linux.
func TestLinuxLocks(t *testing.T) { compareC(t, "locks") }

// Settings of System V's IPC and of the network are written as on Linux, and have an effect.
func TestLinuxLimits(t *testing.T) {
	asRoot(t, "it creates namespaces")
	compareC(t, "limits")
}

// setns(2) accepts the descriptor of a process as on Linux.
func TestLinuxNamespaceOfProcess(t *testing.T) {
	asRoot(t, "it creates namespaces")
	compareC(t, "setns")
}

// wait4(2) and waitid(2) select children by their signal and by the thread that has created them, as on Linux.
func TestLinuxWaits(t *testing.T) { compareC(t, "waits") }

// A descriptor does not suffice to create a name for its file (linkat(2), AT_EMPTY_PATH).
func TestLinuxLinkOfDescriptor(t *testing.T) {
	asRoot(t, "it becomes another user")
	compareC(t, "linkempty")
}
