//go:build linux

package gen

import "loam/gen/pace"

// OnLine resolves a rate for an interface. A rate given as a share of the line becomes bits on the wire, based on
// the speed that the interface reports (ethtool(8)); other rates are returned unchanged. Virtual interfaces may
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
