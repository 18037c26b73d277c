package procfs

// defaults are settings of /proc/sys that describe fixed properties of Loam, by path below /proc/sys. A test program checks that
// the system calls conform to them (unikernel/testdata/trace/defaults.c).
var defaults = map[string]any{
	"fs/epoll/max_user_watches": unlimited,
	"fs/leases-enable":          1,
	"fs/overflowgid":            overflowID,
	"fs/overflowuid":            overflowID,
	"fs/protected_hardlinks":    1,
	"fs/suid_dumpable":          0, // a process that has gained privileges writes no core dump

	"kernel/overflowgid":           overflowID,
	"kernel/overflowuid":           overflowID,
	"kernel/seccomp/actions_avail": "kill_process kill_thread trap errno trace log allow",
	"kernel/shm_rmid_forced":       0,

	"net/core/rmem_default":        datagramBuffer,
	"net/core/rmem_max":            maxBuffer,
	"net/core/wmem_default":        datagramBuffer,
	"net/core/wmem_max":            maxBuffer,
	"net/ipv4/conf/all/forwarding": 0,
	"net/ipv4/ip_default_ttl":      64,
	"net/ipv4/ip_nonlocal_bind":    0,
	"net/ipv4/tcp_sack":            1,
	"net/ipv4/tcp_timestamps":      1,
	"net/ipv4/tcp_window_scaling":  1,
	"net/ipv6/conf/all/forwarding": 0,
	"net/ipv6/ip_nonlocal_bind":    0,
	"vm/nr_hugepages":              0,
	"vm/nr_overcommit_hugepages":   0,
	"vm/oom_kill_allocating_task":  0, // the process that uses most memory is killed
	"vm/panic_on_oom":              0,
	"vm/overcommit_kbytes":         0, // vm/overcommit_ratio decides
}

const (
	unlimited      = 1<<31 - 1
	overflowID     = 65534    // shown for a user or group that has no number in a user namespace
	datagramBuffer = 212992   // of UDP, Unix and packet sockets
	maxBuffer      = 32 << 20 // SO_RCVBUF and SO_SNDBUF double the value
)
