//go:build linux

package gen

import "loam/gen/pace"

// OnLine resolves a rate for an interface. A rate that is a share of the interface's speed becomes a rate in bits on
// the wire; other rates are returned unchanged. The interface reports its speed (ethtool(8)). Virtual interfaces may
// report an arbitrary speed.
func OnLine(r pace.Rate, name string) (pace.Rate, error) {
	if r.Unit != pace.Line {
		return r, nil
	}
	megabits, err := linkSpeed(name)
	if err != nil || megabits == 0 || megabits == unknownSpeed {
		return r, bad("a rate of %v needs the speed of %s, which does not report one: give the rate in bits, such as 1GbpsL1", r, name)
	}
	return r.Of(uint64(megabits) * 1e6), nil
}
