package guest

import (
	"fmt"
	"strconv"
	"strings"
)

// escape encodes any text as one word. Bytes that a word must not contain become a percent sign and two
// hexadecimal digits, as in RFC 3986 section 2.1.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c > ' ' && c < 0x7f && c != '%' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	return b.String()
}

// unescape reverses escape.
func unescape(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", errMalformed
		}
		c, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			return "", errMalformed
		}
		b.WriteByte(byte(c))
		i += 2
	}
	return b.String(), nil
}
