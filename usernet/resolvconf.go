package usernet

import (
	"bytes"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"
)

// The host's resolver configuration, resolv.conf(5), as far as a forwarder and a
// DHCP server need it: which servers to ask, and the search list.

// resolvers is what a resolv.conf says.
type resolvers struct {
	servers []netip.AddrPort
	search  []string // domains, without a dot at the end; the first is the host's own
}

// Limits of resolv.conf(5): MAXNS, and what older versions of glibc allowed of a
// search list; it also keeps DHCP's options small.
const (
	maxServers = 3
	maxSearch  = 6
	dnsPort    = 53
)

// parseResolvConf reads the text of a resolv.conf. What it does not understand
// it passes over, as every resolver does. A file without a server means one on
// the host itself.
func parseResolvConf(text []byte) resolvers {
	var r resolvers
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "nameserver":
			a, err := netip.ParseAddr(fields[1])
			if err == nil && len(r.servers) < maxServers {
				r.servers = append(r.servers, netip.AddrPortFrom(a, dnsPort))
			}
		case "domain":
			r.search = domains(fields[1:2]) // search and domain: the last one counts
		case "search":
			r.search = domains(fields[1:])
		}
	}
	if len(r.servers) == 0 {
		r.servers = []netip.AddrPort{netip.AddrPortFrom(hostLoopback, dnsPort)}
	}
	return r
}

// domains leaves out the root, which systemd writes for "no search list".
func domains(fields []string) (list []string) {
	for _, f := range fields {
		if f = strings.TrimSuffix(f, "."); f != "" && len(list) < maxSearch {
			list = append(list, f)
		}
	}
	return list
}

// checkEvery is how often at most the file is looked at.
const checkEvery = time.Second

// resolvConf follows a resolv.conf.
type resolvConf struct {
	path string

	mu      sync.Mutex // guards what follows
	checked time.Time  // when the file was last looked at
	stamp   fileStamp  // of what has been read
	current resolvers
}

// fileStamp tells one version of a file from another.
type fileStamp struct {
	modified time.Time
	size     int64
}

// get returns what the file says now. A file that cannot be read is an empty
// one.
func (r *resolvConf) get() resolvers {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if !r.checked.IsZero() && now.Sub(r.checked) < checkEvery {
		return r.current
	}
	first := r.checked.IsZero()
	r.checked = now
	var stamp fileStamp
	if info, err := os.Stat(r.path); err == nil {
		stamp = fileStamp{info.ModTime(), info.Size()}
	}
	if first || stamp != r.stamp {
		text, _ := os.ReadFile(r.path)
		r.current, r.stamp = parseResolvConf(text), stamp
	}
	return r.current
}
