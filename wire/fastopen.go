package wire

// Sizes of a cookie of TCP Fast Open in bytes (RFC 7413 section 4.1.1). The size is even.
const minFastOpenCookie, MaxFastOpenCookie = 4, 16

// FastOpenCookie is the TCP option Fast Open (RFC 7413) in a SYN. It holds a cookie, or requests one. The zero value is the
// absence of the option.
type FastOpenCookie struct {
	present bool
	n       uint8
	b       [MaxFastOpenCookie]byte
}

// NewFastOpenCookie returns the option with the cookie b. If b is empty, the option requests a cookie. If the size is not
// allowed, it returns false, and a receiver ignores the option.
func NewFastOpenCookie(b []byte) (c FastOpenCookie, ok bool) {
	if n := len(b); n != 0 && (n < minFastOpenCookie || n > MaxFastOpenCookie || n%2 != 0) {
		return c, false
	}
	c.present, c.n = true, uint8(copy(c.b[:], b))
	return c, true
}

// Present reports whether the option is present.
func (c *FastOpenCookie) Present() bool { return c.present }

// Len returns the size of the cookie in bytes: 0 if the option requests a cookie or is absent.
func (c *FastOpenCookie) Len() int { return int(c.n) }

// Bytes returns the cookie. The result shares memory with c.
func (c *FastOpenCookie) Bytes() []byte { return c.b[:c.n] }

// room returns the size of the option with padding after n bytes of other options: a multiple of four, or 0 if the option is
// absent or does not fit.
func (c *FastOpenCookie) room(n int) int {
	size := (2 + int(c.n) + 3) &^ 3
	if !c.present || n+size > 40 {
		return 0
	}
	return size
}

// put writes the option with padding before it, size bytes in all, and returns size.
func (c *FastOpenCookie) put(b []byte, size int) int {
	if size == 0 {
		return 0
	}
	pad := size - 2 - int(c.n)
	for i := range pad {
		b[i] = uint8(TCPOptNop)
	}
	b[pad], b[pad+1] = uint8(TCPOptFastOpen), 2+c.n
	copy(b[pad+2:], c.Bytes())
	return size
}
