package wire

import "strconv"

// Domain names (RFC 1035 sections 2.3.4, 3.1 and 4.1.4), for DNS messages and
// for the DHCP option that carries a search list in the same form.
//
// On the wire a name may end in a pointer to an earlier place of the message,
// whose labels continue it. A careless reader can be led round in a circle, or
// through thousands of pointers for each of thousands of names. Two rules bound
// the work here: a pointer has to lead in front of the labels that it continues,
// and a name has at most as many pointers as it can have labels.

// Limits of RFC 1035 section 2.3.4 in bytes, and what follows from them.
const (
	maxDNSName   = 255
	maxDNSLabel  = 63
	maxDNSLabels = 127 // of one byte each
)

// DNSName is a domain name as RFC 1035 section 3.1 writes it, without
// compression: every label behind its length, the empty label of the root last.
// It is comparable, as written; Lower makes names comparable as the DNS compares
// them. The zero value is no name at all (the root is one byte long).
type DNSName struct {
	octets [maxDNSName]byte
	n      uint8
}

// parse reads the name at offset at of msg and returns the offset behind it.
func (d *DNSName) parse(msg []byte, at int) (next int, err error) {
	*d = DNSName{} // what is behind n takes part in comparisons
	start, pointers := at, 0
	for at < len(msg) {
		switch c := int(msg[at]); c & 0xc0 {
		case 0x00: // a label of c bytes
			if at+1+c > len(msg) || int(d.n)+1+c > maxDNSName {
				return 0, ErrLength
			}
			copy(d.octets[d.n:], msg[at:at+1+c])
			d.n += uint8(1 + c)
			at += 1 + c
			if c > 0 {
				continue
			}
			if pointers == 0 {
				next = at
			}
			return next, nil
		case 0xc0: // a pointer
			if at+2 > len(msg) {
				return 0, ErrLength
			}
			if pointers == 0 {
				next = at + 2
			}
			pointers++
			at = c&0x3f<<8 | int(msg[at+1])
			if at >= start || pointers > maxDNSLabels {
				return 0, ErrField
			}
			start = at
		default: // reserved; the one use of it was given up (RFC 6891 section 5)
			return 0, ErrField
		}
	}
	return 0, ErrLength
}

// ParseDNSName reads a name in the form that people write: labels with dots
// between them, with or without a dot at the end, and in a label \. for a dot,
// \\ for a backslash and \DDD for the byte with that decimal number (RFC 1035
// section 5.1). The root is ".". It returns ErrLength for an empty or too long
// label or name, and ErrField for a malformed escape.
func ParseDNSName(s string) (d DNSName, err error) {
	if s == "." {
		d.n = 1
		return d, nil
	}
	label := 0 // where the length of the present label goes
	n := 1     // where its next byte goes
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '.':
			if !d.endLabel(label, n) {
				return DNSName{}, ErrLength
			}
			label = n
			n++
			continue
		case c == '\\':
			var used int
			if c, used = unescape(s[i+1:]); used == 0 {
				return DNSName{}, ErrField
			}
			i += used
		}
		if n >= maxDNSName {
			return DNSName{}, ErrLength
		}
		d.octets[n] = c
		n++
	}
	if n > label+1 { // no dot at the end
		if !d.endLabel(label, n) {
			return DNSName{}, ErrLength
		}
		label = n
	}
	if label == 0 || label >= maxDNSName {
		return DNSName{}, ErrLength
	}
	d.octets[label] = 0
	d.n = uint8(label + 1)
	return d, nil
}

// endLabel writes the length of the label between at and end.
func (d *DNSName) endLabel(at, end int) bool {
	n := end - at - 1
	if n == 0 || n > maxDNSLabel || end >= maxDNSName {
		return false
	}
	d.octets[at] = uint8(n)
	return true
}

// unescape reads what follows a backslash. used is 0 if it makes no sense.
func unescape(s string) (c byte, used int) {
	if s == "" {
		return 0, 0
	}
	if s[0] < '0' || s[0] > '9' {
		return s[0], 1
	}
	if len(s) < 3 {
		return 0, 0
	}
	v, err := strconv.ParseUint(s[:3], 10, 8)
	if err != nil {
		return 0, 0
	}
	return byte(v), 3
}

// String is the form that ParseDNSName reads, without a dot at the end; empty
// for the zero value. Nothing in it can upset a terminal or a log.
func (d DNSName) String() string {
	if d.n == 1 {
		return "."
	}
	b := make([]byte, 0, maxDNSName)
	for at := 0; at < int(d.n)-1; {
		if at > 0 {
			b = append(b, '.')
		}
		end := at + 1 + int(d.octets[at])
		for _, c := range d.octets[at+1 : end] {
			switch {
			case c == '.' || c == '\\':
				b = append(b, '\\', c)
			case c <= ' ' || c > '~':
				b = append(b, '\\', '0'+c/100, '0'+c/10%10, '0'+c%10)
			default:
				b = append(b, c)
			}
		}
		at = end
	}
	return string(b)
}

// IsZero reports whether d is no name at all.
func (d DNSName) IsZero() bool { return d.n == 0 }

// Len is the number of bytes that the name takes on the wire.
func (d *DNSName) Len() int { return int(d.n) }

// AppendTo appends the name, uncompressed, to b.
func (d *DNSName) AppendTo(b []byte) []byte { return append(b, d.octets[:d.n]...) }

// Lower is d with the letters A to Z in lower case. Two names are the same to
// the DNS if their lower forms are equal (RFC 4343 section 3).
func (d DNSName) Lower() DNSName {
	for i, c := range d.octets[:d.n] { // a length is at most 63, so below 'A'
		if 'A' <= c && c <= 'Z' {
			d.octets[i] = c + 'a' - 'A'
		}
	}
	return d
}
