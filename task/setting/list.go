package setting

import (
	"math"

	"loam/abi/linux"
	"loam/mem"
	"loam/posix"
	"loam/posix/file"
	"loam/posix/inet"
)

const lastPort = 1<<16 - 1

// ports is the range of ports for sockets that do not choose one.
func ports(net *inet.Network) Setting {
	return Integers(1, lastPort, func() []int64 {
		first, last := net.PortRange()
		return []int64{first, last}
	}, func(n []int64, err error) error {
		if err != nil {
			return err
		}
		return net.SetPortRange(n[0], n[1])
	})
}

// seconds is a time of TCP. On Linux, its number of jiffies fits into an int.
func seconds(p *inet.Preset) Setting {
	const jiffies = 250 // in a second
	return Integer(1, math.MaxInt32/jiffies, p.Get, p.Set)
}

// All returns the settings of the memory of processes, and of the system of a process, by path below /proc.
func All(a *mem.Account, p *posix.Process) map[string]Setting {
	const maxPipe, mostTries, leastOpen = 1 << 31, 127, 64
	net, pipes := p.Inet(), p.Pipes()
	return map[string]Setting{
		"sys/kernel/hostname":   Name(linux.NameMax, func() string { return p.Uname().Nodename }, p.SetHostname),
		"sys/kernel/domainname": Name(linux.NameMax, func() string { return p.Uname().Domainname }, p.SetDomainName),

		"sys/vm/overcommit_memory": Integer(int64(mem.Heuristic), int64(mem.Never),
			func() int64 { return int64(a.Rule()) }, func(n int64) { a.SetRule(mem.Overcommit(n)) }),
		"sys/vm/overcommit_ratio": Integer(0, math.MaxInt32, a.Ratio, a.SetRatio),
		"sys/vm/max_map_count":    Integer(0, math.MaxInt32, func() int64 { return int64(a.MaxRegions()) }, a.SetMaxRegions),

		"sys/net/core/somaxconn":                  Integer(0, math.MaxInt32, net.Backlog.Load, net.Backlog.Store),
		"sys/net/ipv4/ip_unprivileged_port_start": Checked(0, lastPort, net.FirstPort.Load, net.SetFirstPort),
		"sys/net/ipv4/ip_local_port_range":        ports(net),
		"sys/net/ipv4/tcp_keepalive_time":         seconds(&net.KeepAliveIdle),
		"sys/net/ipv4/tcp_keepalive_intvl":        seconds(&net.KeepAliveInterval),
		"sys/net/ipv4/tcp_keepalive_probes":       Integer(1, mostTries, net.KeepAliveCount.Get, net.KeepAliveCount.Set),
		"sys/net/ipv4/tcp_syn_retries":            Integer(1, mostTries, net.SynRetries.Get, net.SynRetries.Set),
		"sys/net/ipv4/tcp_fastopen":               Integer(math.MinInt32, math.MaxInt32, net.FastOpen.Load, net.FastOpen.Store),
		"sys/net/ipv4/tcp_mtu_probing":            Integer(0, 2, net.MTUProbing, net.SetMTUProbing),
		"sys/net/ipv4/tcp_base_mss":               Integer(1, math.MaxUint16, net.BaseMSS().Get, net.BaseMSS().Set),
		"sys/net/ipv4/tcp_mtu_probe_floor":        Integer(1, math.MaxUint16, net.ProbeFloor().Get, net.ProbeFloor().Set),
		"sys/net/ipv4/tcp_probe_threshold":        Integer(1, math.MaxUint16, net.ProbeThreshold().Get, net.ProbeThreshold().Set),
		"sys/net/ipv4/tcp_probe_interval":         Integer(1, math.MaxInt32, net.ProbeInterval, net.SetProbeInterval),
		"sys/net/ipv4/tcp_fin_timeout":            seconds(&net.FinWait2),
		"sys/net/ipv4/tcp_congestion_control":     Text(inet.LongestCongestion, net.Congestion, net.SetCongestion),

		"sys/fs/nr_open": Integer(leastOpen, file.MaxDescriptors, p.OpenMax.Get, p.OpenMax.Set),
		"sys/fs/inotify/max_queued_events": Integer(0, math.MaxInt32, func() int64 { n, _, _ := p.Watchers().Limits(); return n },
			p.Watchers().MostQueued.Set),
		"sys/fs/inotify/max_user_instances": Integer(0, math.MaxInt32, func() int64 { _, n, _ := p.Watchers().Limits(); return n },
			p.Watchers().MostInstances.Set),
		"sys/fs/inotify/max_user_watches": Integer(0, math.MaxInt32, func() int64 { _, _, n := p.Watchers().Limits(); return n },
			p.Watchers().MostWatches.Set),

		"sys/fs/lease-break-time":     Integer(math.MinInt32, math.MaxInt32, p.Locks().Leases.BreakTime, p.Locks().Leases.SetBreakTime),
		"sys/fs/pipe-max-size":        Unsigned(maxPipe, pipes.MaxSize, pipes.SetMaxSize),
		"sys/fs/pipe-user-pages-soft": Long(math.MaxInt64, pipes.SoftPages, pipes.SetSoftPages),
		"sys/fs/pipe-user-pages-hard": Long(math.MaxInt64, pipes.HardPages, pipes.SetHardPages),
	}
}
