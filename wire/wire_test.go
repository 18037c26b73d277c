package wire

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"
)

// Helpers for the tests of all protocols. Unless stated otherwise, the frames were captured between two Linux
// 6 hosts (10.0.2.15 and 10.0.2.2).

// unhex decodes hexadecimal digits with white space between them.
func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		panic(err)
	}
	return b
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func mac(s string) MAC { return MAC(unhex(strings.ReplaceAll(s, ":", " "))) }

// patch returns a copy of b with the bytes p written at the offset at.
func patch(b []byte, at int, p ...byte) []byte {
	b = append([]byte(nil), b...)
	copy(b[at:], p)
	return b
}

// refusal is a line in a table of malformed input: the defect and the expected error.
type refusal struct {
	name string
	b    []byte
	want error
}

func testRefusals(t *testing.T, parse func([]byte) error, table []refusal) {
	t.Helper()
	for _, r := range table {
		if got := parse(r.b); got != r.want {
			t.Errorf("%s: error %v, want %v", r.name, got, r.want)
		}
	}
}

func TestErrorsHaveText(t *testing.T) {
	seen := map[string]bool{}
	for e := ErrShort; int(e) < len(errorText); e++ {
		text := e.Error()
		if text == "wire: unknown error" || seen[text] {
			t.Errorf("error %d has no text of its own: %q", e, text)
		}
		seen[text] = true
	}
	if got := Error(0).Error(); got != "wire: unknown error" {
		t.Errorf("zero error says %q", got)
	}
}
