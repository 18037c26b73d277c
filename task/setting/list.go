package setting

import (
	"math"

	"loam/abi/linux"
	"loam/mem"
	"loam/posix"
)

// All returns the settings of the memory of processes, and of the system of a process, by path below /proc.
func All(a *mem.Account, p *posix.Process) map[string]Setting {
	const lastPort, maxPipe = 1<<16 - 1, 1 << 31
	net, pipes := p.Inet(), p.Pipes()
	return map[string]Setting{
		"sys/kernel/hostname":   Name(linux.NameMax, func() string { return p.Uname().Nodename }, p.SetHostname),
		"sys/kernel/domainname": Name(linux.NameMax, func() string { return p.Uname().Domainname }, p.SetDomainName),

		"sys/vm/overcommit_memory": Integer(int64(mem.Heuristic), int64(mem.Never),
			func() int64 { return int64(a.Rule()) }, func(n int64) { a.SetRule(mem.Overcommit(n)) }),
		"sys/vm/overcommit_ratio": Integer(0, math.MaxInt32, a.Ratio, a.SetRatio),
		"sys/vm/max_map_count":    Integer(0, math.MaxInt32, func() int64 { return int64(a.MaxRegions()) }, a.SetMaxRegions),

		"sys/net/core/somaxconn":                  Integer(0, math.MaxInt32, net.Backlog.Load, net.Backlog.Store),
		"sys/net/ipv4/ip_unprivileged_port_start": Integer(0, lastPort, net.FirstPort.Load, net.FirstPort.Store),

		"sys/fs/lease-break-time":     Integer(math.MinInt32, math.MaxInt32, p.Locks().Leases.BreakTime, p.Locks().Leases.SetBreakTime),
		"sys/fs/pipe-max-size":        Unsigned(maxPipe, pipes.MaxSize, pipes.SetMaxSize),
		"sys/fs/pipe-user-pages-soft": Long(math.MaxInt64, pipes.SoftPages, pipes.SetSoftPages),
		"sys/fs/pipe-user-pages-hard": Long(math.MaxInt64, pipes.HardPages, pipes.SetHardPages),
	}
}
