package guest

import (
	"fmt"
	"strconv"
	"strings"
)

// escape makes one word of any text, by percent and two digits for what may not be
// in one, as in RFC 3986 section 2.1.
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

// unescape undoes escape.
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
