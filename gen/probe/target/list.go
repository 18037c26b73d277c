package target

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
)

// The text form of lists of ranges, in files of targets and of excluded addresses: one range per line. Comments start
// with #; empty lines are ignored. A range is an address, a prefix, or two addresses separated by a dash:
//
//	192.0.2.1
//	198.51.100.0/24        # bits after the prefix are ignored
//	203.0.113.7-203.0.113.9
//	2001:db8::/120

// MaxList is the maximum number of ranges that ReadList accepts.
const MaxList = 1 << 22

// ErrRange is wrapped by every error of ParseRange.
var ErrRange = errors.New("is no address, prefix or range of addresses")

// ParseRange parses one range. It rejects addresses with a zone and IPv4-mapped IPv6 addresses, because for these it is
// not clear which packets to send.
func ParseRange(s string) (Range, error) {
	bad := func() (Range, error) { return Range{}, fmt.Errorf("%q %w", s, ErrRange) }
	if first, last, ok := strings.Cut(s, "-"); ok {
		a, errA := netip.ParseAddr(strings.TrimSpace(first))
		b, errB := netip.ParseAddr(strings.TrimSpace(last))
		if errA != nil || errB != nil || !plain(a) || !plain(b) || a.Is4() != b.Is4() || b.Less(a) {
			return bad()
		}
		return Range{a, b}, nil
	}
	if strings.Contains(s, "/") {
		p, err := netip.ParsePrefix(s)
		if err != nil || !plain(p.Addr()) {
			return bad()
		}
		return RangeOf(p), nil
	}
	a, err := netip.ParseAddr(s)
	if err != nil || !plain(a) {
		return bad()
	}
	return Range{a, a}, nil
}

func plain(a netip.Addr) bool { return a.Zone() == "" && !a.Is4In6() }

// ReadList parses a list of ranges. An error contains the number of the line, counted from 1.
func ReadList(r io.Reader) ([]Range, error) {
	var list []Range
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		one, err := ParseRange(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if len(list) == MaxList {
			return nil, fmt.Errorf("line %d: more than %d ranges", n, MaxList)
		}
		list = append(list, one)
	}
	return list, lines.Err()
}
