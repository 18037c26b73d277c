package replay

import (
	"io"
	"net/netip"
	"time"

	"loam/gen/guard"
	"loam/wire"
)

// Survey is what is in a file.
type Survey struct {
	Frames  uint64
	Bytes   uint64 // without FCS
	Longest int
	Span    time.Duration // from the first frame to the last
	Public  netip.Addr    // the first public destination; not valid: there is none
	Skipped uint64        // records that are no frames
	Cut     uint64        // frames that were captured in part: they are sent as they are
	Broken  bool          // the file ends within a record
}

// Look reads a file to its end.
func Look(s *Source) (v Survey, err error) {
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
		if !v.Public.IsValid() {
			if a, ok := destination(b); ok && guard.Public(netip.PrefixFrom(a, a.BitLen())) {
				v.Public = a
			}
		}
	}
}

// PPS is the mean rate with which the frames were captured.
func (v *Survey) PPS() float64 {
	if v.Span <= 0 {
		return float64(v.Frames) * float64(time.Second) // all at once
	}
	return float64(v.Frames) / v.Span.Seconds()
}

// destination is the address that an IP packet goes to.
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
