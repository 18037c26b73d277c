package frame

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// Compile turns a template into a program. A program consists of a prototype frame, the list of the fields that change,
// and, for each checksum, the sum of the constant part. The prototype has the largest frame size; every changing field
// in it is zero.

// Options are the compile options of a template.
type Options struct {
	Sizes Sizes
	Seed  uint64 // seeds all random fields and sizes
	// Reserve is the number of bytes at the start of every payload that the caller will write. The Filler writes zeros
	// there, and counts them as zeros in the checksums. So the frame's checksums stay correct only if the caller writes
	// bytes whose own checksum is zero: see package measure. The caller then calls Filler.Seal.
	Reserve int
	// Skip is the number of bytes at the start of the frame that are not written, because the kernel writes them.
	// Fields in these bytes must be constant.
	Skip int
	// NoPadding omits the padding of frames below 64 bytes. It is for methods with which the kernel writes the frame.
	NoPadding bool
	// LeaveChecksum leaves the UDP or TCP checksum to the device: see Program.Checksum.
	LeaveChecksum bool
}

// Program is a compiled template. It is immutable, and any number of Fillers can use it concurrently.
type Program struct {
	proto   []byte // the largest frame, without FCS
	prefix  []uint16
	vary    []varying
	lens    []lengthField
	sums    []sum // the checksums, from the inside out
	crcs    []crc // the CRCs, from the inside out
	aligned int   // offset of the layer whose length must be a multiple of align; 0: there is none
	align   int
	payload int // offset of the payload
	end     int // offset of the end of the packet if padding follows it, otherwise 0
	options Options
	sizes   Sizes
}

// placed is a layer of the template, with its offset in the frame.
type placed struct {
	*kind
	layer *Layer
	name  string // "ip", "ip[2]"
	at    int
	given map[string]pattern
}

// lengthField is a 16-bit length field. Its value is the offset of the end of the packet minus base.
type lengthField struct {
	at, base int
	sums     uint32
}

// Compile checks the template and returns its program. Errors in the template are of type *Error.
func Compile(t *Template, o Options) (*Program, error) {
	layers, data, err := place(t, o.Seed)
	if err != nil {
		return nil, err
	}
	if err := link(layers); err != nil {
		return nil, err
	}
	last := &layers[len(layers)-1]
	p := &Program{payload: last.at + last.length, options: o, sizes: o.Sizes, aligned: last.at, align: max(1, last.align)}
	if err := p.size(last, len(data.content)); err != nil {
		return nil, err
	}
	p.proto = make([]byte, p.sizes.Max()-FCSLen)
	for i := range layers {
		layers[i].put(p.proto[layers[i].at:])
	}
	if last.carries != nothing {
		data.put(p.proto[p.payload:p.tail()], o.Reserve)
	}
	if err := p.fields(layers); err != nil {
		return nil, err
	}
	if _, _, ok := p.Checksum(); o.LeaveChecksum && !ok {
		return nil, &Error{Field: "template", Wrong: "there is not one checksum of UDP or TCP that a device could be left to compute", Allowed: "a template without tunnels, with udp or tcp"}
	}
	p.constants()
	return p, nil
}

// tail returns the offset of the end of the payload in the largest frame.
func (p *Program) tail() int { return p.packetEnd(len(p.proto)) }

// packetEnd returns the offset of the end of the packet in a frame of n bytes without FCS. For alignment, up to align-1
// bytes may follow it.
func (p *Program) packetEnd(n int) int {
	if p.end != 0 {
		return p.end
	}
	return n - (n-p.aligned)&(p.align-1)
}

// place determines each layer's kind, patterns and offset.
func place(t *Template, seed uint64) (layers []placed, data payload, err error) {
	seen := map[string]int{}
	at := 0
	for i := range t.Layers {
		l := &t.Layers[i]
		if l.Kind == payloadKind {
			if i == 0 || i != len(t.Layers)-1 {
				return nil, data, &Error{Field: payloadKind, Wrong: "it must be the last layer, behind a header"}
			}
			if last := layers[i-1]; last.carries == nothing {
				return nil, data, &Error{Field: payloadKind, Wrong: last.summary + " cannot carry a payload", Allowed: carriedBy(last.kind)}
			}
			data, err = parsePayload(l, seed)
			return layers, data, err
		}
		k, ok := kindOf(l.Kind, l.has)
		if !ok {
			return nil, data, unknownLayer(l.Kind)
		}
		seen[l.Kind]++
		p := placed{kind: k, layer: l, name: l.Kind, at: at, given: map[string]pattern{}}
		if n := seen[l.Kind]; n > 1 {
			p.name = fmt.Sprintf("%s[%d]", l.Kind, n)
		}
		if err := p.parseFields(); err != nil {
			return nil, data, err
		}
		layers = append(layers, p)
		at += k.length
	}
	if len(layers) == 0 {
		return nil, data, &Error{Field: "template", Wrong: "it has no layers", Allowed: "for example: eth; ip; udp"}
	}
	return layers, data, nil
}

// Kinds returns the names of all layers that a template may have.
func Kinds() []string {
	var all []string
	for _, k := range kinds {
		all = append(all, k.name)
	}
	return append(all, "gre", payloadKind)
}

// parseFields parses the patterns that the template gives for the fields of the layer. With the pattern auto, a field
// is computed, as if it were not given.
func (p *placed) parseFields() error {
	for _, s := range p.layer.Fields {
		name := p.name + "." + s.Name
		f, ok := p.field(s.Name)
		if !ok {
			return unknownField(name, p.kind)
		}
		if _, twice := p.given[s.Name]; twice {
			return &Error{Field: name, Wrong: "it is given twice"}
		}
		if s.Pattern == "auto" && p.computes(s.Name) {
			continue
		}
		pattern, err := f.parsePattern(name, s.Pattern)
		if err != nil {
			return err
		}
		p.given[s.Name] = pattern
	}
	return nil
}

// computes reports whether Compile computes the field if the template does not give it.
func (p *placed) computes(name string) bool {
	return name == p.next || name == "checksum" || name == "len" || name == "s"
}

// link checks that each layer can carry the next one, and sets the fields that identify the next layer.
func link(layers []placed) error {
	if k := layers[0].name; k != "eth" {
		return &Error{Field: k, Wrong: "a frame begins with eth", Allowed: "eth; " + k + "; ..."}
	}
	for i := range layers {
		l := &layers[i]
		if i+1 == len(layers) {
			l.endStack()
			continue
		}
		next := &layers[i+1]
		n, ok := next.numbers[l.carries]
		if !ok {
			return &Error{Field: next.name, Wrong: fmt.Sprintf("%s cannot carry %s", l.summary, next.summary), Allowed: carriedBy(l.kind)}
		}
		if _, given := l.given[l.next]; l.next != "" && !given {
			l.given[l.next] = pattern{base: value{0, n}, count: 1}
		}
		if next.kind.name != "mpls" {
			l.endStack()
		}
	}
	return nil
}

// endStack sets the bottom-of-stack bit of the last MPLS label, unless the template gives it.
func (p *placed) endStack() {
	if _, given := p.given["s"]; p.kind.name == "mpls" && !given {
		p.given["s"] = pattern{base: value{0, 1}, count: 1}
	}
}

// carriedBy lists the layers that can follow a layer.
func carriedBy(k *kind) string {
	var all []string
	for i := range kinds {
		if _, ok := kinds[i].numbers[k.carries]; ok {
			all = append(all, kinds[i].name)
		}
	}
	if k.carries == proto4 || k.carries == proto6 {
		all = append(all, "gre")
	}
	if k.carries != nothing {
		all = append(all, payloadKind)
	}
	if len(all) == 0 {
		return "nothing behind " + k.name
	}
	return strings.Join(all, ", ")
}

// size determines the frame sizes and the end of the packet.
func (p *Program) size(last *placed, content int) error {
	least := p.payload + max(content, p.options.Reserve)
	least += (p.aligned - least) & (p.align - 1)
	padded := max(least, MinSize-FCSLen)
	if p.options.NoPadding {
		padded = least
	}
	switch {
	case least > MaxSize-FCSLen:
		return &Error{Field: payloadKind, Wrong: fmt.Sprintf("headers and payload are %d bytes", least), Allowed: fmt.Sprintf("at most %d", MaxSize-FCSLen)}
	case p.options.Skip > p.payload:
		return &Error{Field: last.name, Wrong: "the method writes more headers than the template has"}
	case p.sizes.Max() == 0:
		p.sizes = FixedSize(padded + FCSLen)
		p.end = least
	case p.sizes.low < least+FCSLen:
		return &Error{Field: "size", Wrong: fmt.Sprintf("%d bytes have no room for headers and payload", p.sizes.low),
			Allowed: fmt.Sprintf("%d bytes or more, FCS included", max(least+FCSLen, MinSize))}
	case last.carries == nothing:
		p.end = p.payload
	}
	return nil
}

// fields writes constant fields into the prototype and lists changing fields in vary.
func (p *Program) fields(layers []placed) error {
	p.plan(layers)
	for i := range layers {
		l := &layers[i]
		for j := range l.fields {
			f := &l.fields[j]
			pattern, given := l.given[f.name]
			if !given {
				continue
			}
			v := newVarying(l, f, pattern)
			if pattern.fixed() {
				v.put(p.proto, 0, pattern.first())
				continue
			}
			if v.at < p.options.Skip {
				return &Error{Field: l.name + "." + f.name, Wrong: "this method has the kernel write the field, so it cannot change", Allowed: "a single value, or a method that writes frames"}
			}
			v.put(p.proto, 0, value{})
			p.vary = append(p.vary, v)
		}
	}
	if len(p.vary) > maxVarying {
		return &Error{Field: "template", Wrong: fmt.Sprintf("more than %d fields change", maxVarying)}
	}
	p.cover()
	return nil
}

const maxVarying = 64

func salt(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}

// MaxLen returns the length in bytes of what a Filler writes for the longest frame: the frame without FCS and without
// skipped bytes. The slots passed to a Filler must have at least this length.
func (p *Program) MaxLen() int { return len(p.proto) - p.options.Skip }

// Sizes returns the frame sizes, FCS included.
func (p *Program) Sizes() *Sizes { return &p.sizes }

// Payload returns the offset of the payload in the bytes that a Filler writes.
func (p *Program) Payload() int { return p.payload - p.options.Skip }

// V6 reports whether the first IP header is IPv6. It is false without an IP header.
func (t *Template) V6() bool {
	for i := range t.Layers {
		switch t.Layers[i].Kind {
		case "ip":
			return false
		case "ip6":
			return true
		}
	}
	return false
}

// UDP returns the default template for UDP over IPv4, or over IPv6 if v6 is set.
func UDP(v6 bool) *Template {
	ip := "ip"
	if v6 {
		ip = "ip6"
	}
	return &Template{Layers: []Layer{{Kind: "eth"}, {Kind: ip}, {Kind: "udp"}}}
}

// isIP reports whether the layer is an IP header, which provides the addresses of a pseudo header.
func (p *placed) isIP() bool { return p.kind.carries == proto4 || p.kind.carries == proto6 }
