package hand

import "testing"

// Encoded messages are decoded to the same values.
func TestMessages(t *testing.T) {
	c := Connection{Port: 80, Client: 4711}
	if got, ok := ParseConnection(c.Append(nil)); !ok || got != c {
		t.Errorf("%+v, %v; want %+v", got, ok, c)
	}
	ends := []End{{Client: 1, Refused: true}, {Client: 65535, Reset: true, In: 1 << 40, Out: 7}, {}}
	var b []byte
	for _, e := range ends {
		b = e.Append(b)
	}
	for _, want := range ends {
		var got End
		var ok bool
		if got, b, ok = NextEnd(b); !ok || got != want {
			t.Errorf("%+v, %v; want %+v", got, ok, want)
		}
	}
	if len(b) != 0 {
		t.Errorf("%d bytes are left", len(b))
	}
}

// Messages that are too short or too long are rejected.
func TestMalformed(t *testing.T) {
	for n := range 2 * EndSize {
		b := make([]byte, n)
		if _, ok := ParseConnection(b); ok != (n == ConnectionSize) {
			t.Errorf("a connection of %d bytes: %v", n, ok)
		}
		if _, rest, ok := NextEnd(b); ok != (n >= EndSize) || len(rest) != max(0, n-EndSize) {
			t.Errorf("an end of %d bytes: %v, and %d bytes", n, ok, len(rest))
		}
	}
}
