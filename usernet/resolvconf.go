package usernet

import (
	"bytes"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"
)

// The host's resolver configuration, resolv.conf(5). The DNS forwarder uses its name servers, and the DHCP server uses
// its search list.

// resolvers is the content of a resolv.conf.
type resolvers struct {
	servers []netip.AddrPort
	search  []string // search list: domains without a trailing dot; the first is the host's own domain
}

// Limits on the lines that are used: MAXNS of resolv.conf(5), and the limit that older versions of glibc set on the
// search list. Six domains also keep the DHCP options small.
const (
	maxServers = 3
	maxSearch  = 6
	dnsPort    = 53
)

// parseResolvConf parses a resolv.conf. Unknown lines are ignored, as by other resolvers. Without a nameserver line,
// the server is the host itself, as resolv.conf(5) specifies.
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
			r.search = domains(fields[1:2]) // the last of several search and domain lines applies
		case "search":
			r.search = domains(fields[1:])
		}
	}
	if len(r.servers) == 0 {
		r.servers = []netip.AddrPort{netip.AddrPortFrom(hostLoopback, dnsPort)}
	}
	return r
}

// domains returns a search list without the root domain. systemd writes the root domain in place of an empty list.
func domains(fields []string) (list []string) {
	for _, f := range fields {
		if f = strings.TrimSuffix(f, "."); f != "" && len(list) < maxSearch {
			list = append(list, f)
		}
	}
	return list
}

// checkEvery is the minimum interval between two checks of the file.
const checkEvery = time.Second

// resolvConf is a resolv.conf that is read again when it changes.
type resolvConf struct {
	path string

	mu      sync.Mutex // guards the fields below
	checked time.Time  // time of the last check
	stamp   fileStamp  // stamp of the file version that was read last
	current resolvers
}

// fileStamp distinguishes versions of a file.
type fileStamp struct {
	modified time.Time
	size     int64
}

// get returns the current content of the file. A file that cannot be read is treated as empty.
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
