package frame

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
)

// Patterns describe how a field changes from frame to frame:
//
//	53                 always 53
//	1024+7             1024, 1031, ..., wrapping at the field's width
//	1024-2047          cycles over a range; 1024-2047+2 takes every second value
//	53,123,443         cycles over a list
//	10.0.0.0/8         cycles over every address of a prefix
//	random             any value that fits the field; for an Ethernet source address, any
//	                   locally administered unicast address (02:...)
//	random:A-B         random values of a range, a prefix or a list
//
// All fields advance with every frame. So a field that cycles over 4 values and one that cycles over 6 produce 12
// combinations, not 24.

// pattern is a parsed pattern. If fixed reports true, it has a single value.
type pattern struct {
	base   value
	step   value
	count  uint64  // number of values before the pattern repeats; 0: 2^64
	list   []value // if not nil, replaces base, step and count
	random bool
	host   value // for a random pattern: mask of the random bits; zero: the values are drawn from base, step, count and list
}

// fixed reports whether the pattern has only one value.
func (p *pattern) fixed() bool { return p.host == value{} && p.count == 1 && p.list == nil }

// first returns the value of the first frame. The pattern must not be random.
func (p *pattern) first() value {
	if p.list != nil {
		return p.list[0]
	}
	return p.base
}

// maxList is the maximum length of a list. It prevents a template from exhausting memory.
const maxList = 1 << 16

// Error describes a mistake in a template.
type Error struct {
	Field   string // "ip.ttl", or the name of the layer
	Wrong   string
	Allowed string // allowed values; "" if Wrong is sufficient
}

// Error implements error.
func (e *Error) Error() string {
	s := e.Field + ": " + e.Wrong
	if e.Allowed != "" {
		s += "; allowed: " + e.Allowed
	}
	return s
}

func (f *field) wrong(name, format string, args ...any) error {
	allowed := f.describe() + ", a range A-B or A-B+STEP, a list A,B,..., START+STEP, random, random:RANGE"
	if f.form == address4 || f.form == address6 {
		allowed += ", a prefix ADDRESS/BITS"
	}
	return &Error{Field: name, Wrong: fmt.Sprintf(format, args...), Allowed: allowed}
}

// parsePattern parses the pattern s for the field. name is the full field name for errors.
func (f *field) parsePattern(name, s string) (p pattern, err error) {
	if s == "random" && f.form == mac && f.name != "dst" {
		const local, bits = 0x02 << 40, 40 // IEEE 802-2014 section 8.2
		return pattern{random: true, base: value{0, local}, host: ones(bits)}, nil
	}
	if s == "random" {
		return pattern{random: true, host: ones(f.width)}, nil
	}
	set, random := strings.CutPrefix(s, "random:")
	switch {
	case set == "":
		return p, f.wrong(name, "%q has no value", s)
	case strings.Contains(set, ","):
		p, err = f.parseList(name, set)
	case strings.Contains(set, "/"):
		p, err = f.parsePrefix(name, set)
	case strings.Contains(set, "-"):
		p, err = f.parseRange(name, set)
	default:
		p, err = f.parseStep(name, set, random)
	}
	p.random = random
	if !random {
		p.host = value{}
	}
	return p, err
}

// parseList parses a list of values separated by commas. name is the full field name for errors.
func (f *field) parseList(name, s string) (p pattern, err error) {
	if strings.Count(s, ",") >= maxList {
		return p, f.wrong(name, "the list has more than %d values", maxList)
	}
	for one := range strings.SplitSeq(s, ",") {
		v, err := f.parseValue(one)
		if err != nil {
			return p, f.wrong(name, "%q in the list is not a value", one)
		}
		p.list = append(p.list, v)
	}
	return p, nil
}

// parsePrefix parses a prefix as the pattern of all its addresses. The field must be an address of the same IP version.
func (f *field) parsePrefix(name, s string) (p pattern, err error) {
	prefix, err := netip.ParsePrefix(s)
	if err != nil || f.form != address4 && f.form != address6 || prefix.Addr().Is4() != (f.form == address4) {
		return p, f.wrong(name, "%q is not a prefix", s)
	}
	host := f.width - prefix.Bits()
	p = pattern{base: addrValue(prefix.Masked().Addr()), step: value{0, 1}, host: ones(host)}
	if host < 64 {
		p.count = 1 << host // with 64 or more host bits count stays 0: no run reaches the end
	}
	return p, nil
}

// parseRange parses LOW-HIGH or LOW-HIGH+STEP.
func (f *field) parseRange(name, s string) (p pattern, err error) {
	low, high, _ := strings.Cut(s, "-")
	high, step, stepped := strings.Cut(high, "+")
	p.step = value{0, 1}
	if stepped {
		if p.step, err = f.parseStepValue(step); err != nil {
			return p, f.wrong(name, "%q is not a step above 0", step)
		}
	}
	var last value
	if p.base, err = f.parseValue(low); err == nil {
		last, err = f.parseValue(high)
	}
	if err != nil || last.less(p.base) {
		return p, f.wrong(name, "%q is not a range from a low value to a high one", s)
	}
	span := last.sub(p.base)
	if span.hi != 0 || span.lo == ^uint64(0) {
		return p, f.wrong(name, "the range %q is too wide to count", s)
	}
	p.count = span.lo/p.step.lo + 1
	return p, nil
}

// parseStep parses a single value or START+STEP. A sequence wraps around at the width of the field.
func (f *field) parseStep(name, s string, random bool) (p pattern, err error) {
	start, step, stepped := strings.Cut(s, "+")
	if p.base, err = f.parseValue(start); err != nil {
		return p, f.wrong(name, "%q is not a value", start)
	}
	if !stepped {
		p.count = 1
		return p, nil
	}
	if random {
		return p, f.wrong(name, "START+STEP cannot be random")
	}
	if p.step, err = f.parseStepValue(step); err != nil {
		return p, f.wrong(name, "%q is not a step above 0", step)
	}
	return p, nil
}

// parseStepValue parses a number of at most 63 bits. The form of the field's values does not matter.
func (f *field) parseStepValue(s string) (value, error) {
	v, err := (&field{width: 63}).parseValue(s)
	if err != nil || v == (value{}) {
		return value{}, errForm
	}
	return v, nil
}

// generator produces the values of a pattern one after another.
type generator struct {
	pattern
	mask   value // the bits of the field
	index  uint64
	stride uint64
	rng    *rand.Rand
}

// newGenerator returns the generator of one of several shards. The generators of all shards together produce the values
// that a single generator would.
func newGenerator(p pattern, width, shard, shards int, seed, salt uint64) generator {
	if p.list != nil {
		p.count = uint64(len(p.list))
	}
	g := generator{pattern: p, mask: ones(width), index: uint64(shard), stride: uint64(shards)}
	if p.random {
		g.rng = rand.New(rand.NewPCG(seed, salt^uint64(shard)<<32))
	}
	if p.count != 0 {
		g.index, g.stride = g.index%p.count, g.stride%p.count
	}
	return g
}

// next returns the value of the field in the next frame.
func (g *generator) next() value {
	if g.random {
		return g.draw()
	}
	i := g.index
	g.index += g.stride
	if g.count != 0 && g.index >= g.count {
		g.index -= g.count
	}
	return g.at(i)
}

func (g *generator) at(i uint64) value {
	if g.list != nil {
		return g.list[i]
	}
	if g.step.lo == 1 {
		return g.base.add(value{0, i}).and(g.mask)
	}
	return g.base.add(g.step.times(i)).and(g.mask)
}

func (g *generator) draw() value {
	if g.host != (value{}) {
		v := value{0, g.rng.Uint64()}
		if g.host.hi != 0 {
			v.hi = g.rng.Uint64()
		}
		return g.base.add(v.and(g.host))
	}
	return g.at(g.rng.Uint64N(g.count))
}
