package main

import (
	"bytes"
	"os"
	"strings"
)

// there reports whether a file can be read and contains some text.
func there(path, want string) probe {
	return probe{path, func() string {
		b, err := os.ReadFile(path)
		if err != nil {
			return word(err)
		}
		return yes(bytes.Contains(b, []byte(want)))
	}}
}

// entries reports whether a folder has entries.
func entries(path string) probe {
	return probe{path, func() string {
		l, err := os.ReadDir(path)
		return joined(word(err), yes(len(l) > 0))
	}}
}

// leads reports whether the target of a symbolic link has a prefix.
func leads(path, want string) probe {
	return probe{path, func() string {
		to, err := os.Readlink(path)
		return joined(word(err), yes(strings.HasPrefix(to, want)))
	}}
}

var proc = []probe{
	there("/proc/self/maps", "-"), there("/proc/self/smaps", "Rss"), there("/proc/self/smaps_rollup", "Rss"),
	there("/proc/self/status", "VmRSS"), there("/proc/self/stat", "("), there("/proc/self/statm", " "),
	there("/proc/self/limits", "Max open files"), there("/proc/self/io", "rchar"), there("/proc/self/cmdline", "probe"),
	there("/proc/self/comm", "\n"), there("/proc/self/environ", "="), there("/proc/self/mountinfo", "/"), there("/proc/self/mounts", "/"),
	there("/proc/self/cgroup", ":"), there("/proc/self/oom_score", "\n"), there("/proc/self/oom_score_adj", "\n"),
	there("/proc/self/sched", "se."), there("/proc/self/schedstat", " "), there("/proc/self/wchan", ""), there("/proc/self/auxv", ""),
	there("/proc/self/personality", "0"), there("/proc/self/loginuid", ""), there("/proc/self/uid_map", " "),
	there("/proc/self/numa_maps", ""), there("/proc/self/timers", ""), there("/proc/self/coredump_filter", ""),
	entries("/proc/self/fd"), entries("/proc/self/task"), entries("/proc/self/fdinfo"), entries("/proc/self/ns"), entries("/proc/self/map_files"), entries("/proc/self/net"),
	leads("/proc/self/exe", "/"), leads("/proc/self/cwd", "/"), leads("/proc/self/root", "/"), leads("/proc/thread-self", ""),
	there("/proc/cpuinfo", "processor"), there("/proc/meminfo", "MemAvailable"), there("/proc/stat", "cpu0"), there("/proc/loadavg", " "),
	there("/proc/uptime", "."), there("/proc/version", "Linux"), there("/proc/filesystems", "proc"), there("/proc/devices", "Character"),
	there("/proc/interrupts", "CPU0"), there("/proc/softirqs", "CPU0"), there("/proc/vmstat", "nr_free_pages"), there("/proc/zoneinfo", "Node"),
	there("/proc/buddyinfo", "Node"), there("/proc/diskstats", ""), there("/proc/partitions", ""), there("/proc/cmdline", ""),
	there("/proc/swaps", "Filename"), there("/proc/locks", ""), there("/proc/crypto", "name"), there("/proc/pressure/cpu", "some"),
	there("/proc/net/tcp", "local_address"), there("/proc/net/udp", "local_address"), there("/proc/net/unix", "Num"), there("/proc/net/dev", "lo"),
	there("/proc/net/route", "Iface"), there("/proc/net/snmp", "Tcp:"), there("/proc/net/netstat", "TcpExt:"), there("/proc/net/sockstat", "sockets"),
	there("/proc/net/arp", "IP address"), there("/proc/net/if_inet6", ""), there("/proc/net/protocols", "TCP"), there("/proc/net/raw", "local_address"),
	there("/proc/sys/kernel/pid_max", "\n"), there("/proc/sys/kernel/osrelease", "."), there("/proc/sys/kernel/hostname", ""), there("/proc/sys/kernel/random/uuid", "-"),
	there("/proc/sys/kernel/random/boot_id", "-"), there("/proc/sys/kernel/threads-max", "\n"), there("/proc/sys/kernel/cap_last_cap", "\n"),
	there("/proc/sys/vm/overcommit_memory", "\n"), there("/proc/sys/vm/max_map_count", "\n"), there("/proc/sys/vm/swappiness", "\n"),
	there("/proc/sys/fs/file-max", "\n"), there("/proc/sys/fs/nr_open", "\n"), there("/proc/sys/fs/pipe-max-size", "\n"), there("/proc/sys/fs/inotify/max_user_watches", "\n"),
	there("/proc/sys/net/core/somaxconn", "\n"), there("/proc/sys/net/ipv4/ip_local_port_range", "\t"), there("/proc/sys/net/ipv4/tcp_rmem", "\t"), there("/proc/sys/net/ipv4/ip_forward", "\n"),
	there("/sys/kernel/mm/transparent_hugepage/enabled", "["), there("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "\n"),
	there("/sys/devices/system/cpu/online", "0"), there("/sys/devices/system/cpu/possible", "0"), there("/sys/devices/system/node/online", "0"),
	there("/sys/class/net/lo/mtu", "65536"), there("/sys/class/net/lo/operstate", "\n"), entries("/sys/block"), entries("/sys/fs/cgroup"), entries("/dev"),
	{"/dev/null, zero, full, random, urandom", func() string {
		s := ""
		for _, d := range []string{"null", "zero", "full", "random", "urandom"} {
			f, err := os.OpenFile("/dev/"+d, os.O_RDWR, 0)
			if err != nil {
				s += word(err) + "; "
				continue
			}
			n, err := f.Read(make([]byte, 4))
			_, err2 := f.Write([]byte("x"))
			s += joined(string(rune('0'+n)), word(err), word(err2)) + "; "
			f.Close()
		}
		return s
	}},
	{"/dev/shm", func() string {
		err := os.WriteFile("/dev/shm/probe", nil, 0o600)
		os.Remove("/dev/shm/probe")
		return word(err)
	}},
	{"/dev/fd/0", func() string { _, err := os.Stat("/dev/fd/0"); return word(err) }},
	{"/proc/self/oom_score_adj can be raised", func() string { return word(os.WriteFile("/proc/self/oom_score_adj", []byte("100"), 0)) }},
	{"/proc/self/comm can be written", func() string { return word(os.WriteFile("/proc/self/comm", []byte("renamed"), 0)) }},
	{"/proc/sys/kernel/hostname can be written", func() string { return word(os.WriteFile("/proc/sys/kernel/hostname", []byte("x"), 0)) }},
}
