package replay

import (
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"loam/gen/guard"
	"loam/wire"
)

// Survey is a summary of a capture file.
type Survey struct {
	Frames  uint64
	Bytes   uint64 // number of bytes without FCS
	Longest int
	Span    time.Duration // time between the first and the last frame
	Public  string        // the first public destination, as an address or a prefix; "": there is none
	Skipped uint64        // number of records that are not frames
	Cut     uint64        // number of frames that were captured only in part; a replay sends the captured part
	Broken  bool          // the file ends within a record
}

// Look reads a file to its end and returns its summary. Destination addresses are those that r produces in any of the
// loops.
func Look(s *Source, r *Rewrite) (v Survey, err error) {
	for {
		b, at, err := s.Next()
		if err == io.EOF {
			v.Skipped, v.Cut, v.Broken = s.Skipped, s.Cut, s.Broken
			return v, nil
		}
		if err != nil {
			return v, err
		}
		v.Frames++
		v.Bytes += uint64(len(b))
		v.Longest = max(v.Longest, len(b))
		v.Span = at
		if v.Public != "" {
			continue
		}
		if a, ok := destination(b); ok {
			if to := r.reach(a); guard.Public(to) {
				v.Public = strings.TrimSuffix(to.String(), fmt.Sprintf("/%d", a.BitLen()))
			}
		}
	}
}

// reach returns the prefix of all addresses that r may write in place of an address.
func (r *Rewrite) reach(a netip.Addr) netip.Prefix {
	if to, m := r.address(a, 0); m != nil {
		return netip.PrefixFrom(to, m.To.Bits()).Masked()
	}
	return netip.PrefixFrom(a, a.BitLen())
}

// PPS returns the mean rate of the capture in frames per second.
func (v *Survey) PPS() float64 {
	if v.Span <= 0 {
		return float64(v.Frames) * float64(time.Second) // all frames have the same time: assume a second
	}
	return float64(v.Frames) / v.Span.Seconds()
}

// destination returns the destination address of an IP packet in frame b.
func destination(b []byte) (netip.Addr, bool) {
	eth, rest, err := wire.ParseEthernet(b)
	if err != nil {
		return netip.Addr{}, false
	}
	switch {
	case eth.Type == wire.TypeIPv4 && len(rest) >= wire.IPv4MinLen:
		return netip.AddrFrom4([4]byte(rest[16:])), true
	case eth.Type == wire.TypeIPv6 && len(rest) >= wire.IPv6Len:
		return netip.AddrFrom16([16]byte(rest[24:])), true
	}
	return netip.Addr{}, false
}
