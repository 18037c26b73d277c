package wire

// IPv4 (RFC 791 section 3.1) and TCP (RFC 9293 section 3.1) encode options in the same way: a kind octet and
// a length octet, which counts both octets and the data. Kinds 0 (end of the list) and 1 (no operation, for
// alignment) have no length octet.

// nextOption returns the first option of opts, and the rest of opts after it. It skips no-operation options. ok is
// false at the end of the list, after which only padding follows, and for a malformed option. bad is true only for a
// malformed option.
func nextOption(opts []byte) (kind uint8, data, rest []byte, ok, bad bool) {
	const end, nop = 0, 1
	for len(opts) > 0 {
		switch kind = opts[0]; kind {
		case end:
			return 0, nil, nil, false, false
		case nop:
			opts = opts[1:]
			continue
		}
		if len(opts) < 2 || opts[1] < 2 || int(opts[1]) > len(opts) {
			return 0, nil, nil, false, true
		}
		n := int(opts[1])
		return kind, opts[2:n], opts[n:], true, false
	}
	return 0, nil, nil, false, false
}
