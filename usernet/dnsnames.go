package usernet

import (
	"net/netip"
	"strings"

	"loam/wire"
)

// Names that the gateway resolves itself. They are below loam.internal. The top-level domain "internal" is reserved for
// private use and will never be delegated (ICANN board resolution 2024.07.29.06). So these names hide no public name.
//
//	host.loam.internal      the gateway's address, which is the host: see Config.HostLoopback
//	gateway.loam.internal   another name for host.loam.internal
//	NAME.loam.internal      the guest, with Config.Hostname as NAME

const localDomain = "loam.internal"

const localTTL = 60 // seconds; time to live of records of local names

// localNames returns the local names, relative to localDomain, and their addresses.
func (c *Config) localNames() map[string]netip.Addr {
	names := make(map[string]netip.Addr)
	if c.Hostname != "" {
		names[strings.ToLower(c.Hostname)] = c.Guest
	}
	names["host"], names["gateway"] = c.Gateway, c.Gateway
	return names
}

// answerLocally returns the reply to a query for a name below localDomain, or nil for any
// other name.
func answerLocally(names map[string]netip.Addr, m *wire.DNS) []byte {
	name := m.Question.Name.Lower().String()
	if name == localDomain {
		return m.AppendReply(nil, wire.DNSAuthoritative, wire.DNSNoError)
	}
	name, below := strings.CutSuffix(name, "."+localDomain)
	if !below {
		return nil
	}
	addr, exists := names[name]
	switch {
	case !exists:
		return m.AppendReply(nil, wire.DNSAuthoritative, wire.DNSNXDomain)
	case m.Question.Class == wire.DNSClassIN && m.Question.Type == wire.DNSTypeA:
		return m.AppendAnswer(nil, wire.DNSAuthoritative, localTTL, addr)
	default: // the name exists but has no record of the requested type
		return m.AppendReply(nil, wire.DNSAuthoritative, wire.DNSNoError)
	}
}
