package wire

import "strconv"

// Domain names (RFC 1035 sections 2.3.4, 3.1 and 4.1.4), for DNS messages and for the DHCP search list option, which
// uses the same encoding.
//
// An encoded name may end in a pointer to an earlier offset of the message, at which more labels of the name follow.
// Without limits, a message could make a parser loop forever, or follow thousands of pointers for each of thousands of
// names. Two rules bound the work. A pointer must refer to an offset before the labels that precede the pointer. And a
// name has at most as many pointers as it can have labels.

// Limits of RFC 1035 section 2.3.4 in bytes, and the resulting number of labels.
const (
	maxDNSName   = 255
	maxDNSLabel  = 63
	maxDNSLabels = 127 // labels of one byte each
)

// DNSName is an uncompressed domain name in the encoding of RFC 1035 section 3.1: each label follows its length octet;
// the empty label of the root is last. It is comparable byte by byte. The DNS ignores case: to do so, compare the
// results of Lower. The zero value is no name (the root is one byte long).
type DNSName struct {
	octets [maxDNSName]byte
	n      uint8
}

// parse parses the name in msg that begins at the offset at, and returns the offset after
// the name.
func (d *DNSName) parse(msg []byte, at int) (next int, err error) {
	*d = DNSName{} // bytes after the first n are part of comparisons, so they must be zero
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
		default: // reserved; its only use has been withdrawn (RFC 6891 section 5)
			return 0, ErrField
		}
	}
	return 0, ErrLength
}

// ParseDNSName parses the text form of a name: labels separated by dots, with an optional dot at the end.
// Inside a label, \. is a dot, \\ a backslash, and \DDD the byte with that decimal number (RFC 1035 section
// 5.1). The root is ".". It returns ErrLength for an empty or too long label or name, and ErrField for a
// malformed escape.
func ParseDNSName(s string) (d DNSName, err error) {
	if s == "." {
		d.n = 1
		return d, nil
	}
	label := 0 // offset of the length of the current label
	n := 1     // offset of the label's next byte
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

// endLabel writes the length octet of a label, which is at the offset at. The label ends
// before the offset end. It returns false if the length is invalid.
func (d *DNSName) endLabel(at, end int) bool {
	n := end - at - 1
	if n == 0 || n > maxDNSLabel || end >= maxDNSName {
		return false
	}
	d.octets[at] = uint8(n)
	return true
}

// unescape decodes the text after a backslash. used is the number of bytes of the escape sequence, or 0 if it is
// invalid.
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

// String returns the text form that ParseDNSName accepts, without a dot at the end. It is empty for the zero
// value. Unprintable bytes are escaped, so the result is safe for a terminal or a log.
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

// IsZero reports whether d is the zero value, which is no name.
func (d DNSName) IsZero() bool { return d.n == 0 }

// Len returns the encoded size of the name in bytes.
func (d *DNSName) Len() int { return int(d.n) }

// AppendTo appends the uncompressed name to b.
func (d *DNSName) AppendTo(b []byte) []byte { return append(b, d.octets[:d.n]...) }

// Lower returns d with the letters A to Z in lower case. Two names are equal in the DNS if their lower-case
// forms are equal (RFC 4343 section 3).
func (d DNSName) Lower() DNSName {
	for i, c := range d.octets[:d.n] { // the length octets stay unchanged: they are at most 63, below 'A'
		if 'A' <= c && c <= 'Z' {
			d.octets[i] = c + 'a' - 'A'
		}
	}
	return d
}
