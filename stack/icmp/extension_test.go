package icmp

import (
	"encoding/binary"
	"testing"

	"loam/wire"
)

// extension returns an extension structure with a correct checksum (RFC 4884 section 7).
func extension(version byte, objects ...byte) []byte {
	b := append([]byte{version << 4, 0, 0, 0}, objects...)
	binary.BigEndian.PutUint16(b[2:], ^wire.Sum(b, 0))
	return b
}

// The expected values are those of IP_RECVERR_RFC4884 on Linux 6.18, for the same messages about a UDP
// packet.
func TestExtensions(t *testing.T) {
	const skip = 28
	labels := []byte{0, 8, 1, 1, 'a', 'b', 'c', 'd'}
	damaged := extension(2, labels...)
	damaged[7] ^= 1
	unsummed := append([]byte{0x20, 0, 0, 0}, labels...)
	for sentence, c := range map[string]struct {
		quoted int // length of the quoted part according to the message, in bytes
		behind []byte
		want   Extensions
	}{
		"one object":                    {128, extension(2, labels...), Extensions{At: 100}},
		"two":                           {128, extension(2, append(labels, labels...)...), Extensions{At: 100}},
		"none":                          {128, extension(2), Extensions{At: 100}},
		"no checksum":                   {128, unsummed, Extensions{At: 100}},
		"a wrong one":                   {128, damaged, Extensions{At: 100, Unsound: true}},
		"another version":               {128, append([]byte{0x10, 0, 9, 9}, labels...), Extensions{At: 100}},
		"an object that is too long":    {128, extension(2, 0, 9, 1, 1, 'a', 'b', 'c', 'd'), Extensions{At: 100, Unsound: true}},
		"one that is too short":         {128, extension(2, 0, 3, 1, 1), Extensions{At: 100, Unsound: true}},
		"half the header of one":        {128, extension(2, 0, 8), Extensions{At: 100, Unsound: true}},
		"a quote that is too short":     {124, extension(2, labels...), Extensions{}},
		"no length":                     {0, extension(2, labels...), Extensions{}},
		"a length beyond the message":   {240, extension(2, labels...), Extensions{}},
		"nothing behind the quote":      {128, nil, Extensions{}},
		"less than a header behind it":  {128, []byte{0x20, 0, 0}, Extensions{}},
		"a quote longer than 128 bytes": {132, append(make([]byte, 4), extension(2, labels...)...), Extensions{At: 104}},
	} {
		if got := FindExtensions(append(make([]byte, 128), c.behind...), c.quoted, skip); got != c.want {
			t.Errorf("%s: %+v, want %+v", sentence, got, c.want)
		}
	}
	if got := FindExtensions(append(make([]byte, 128), extension(2)...), 128, 132); got != (Extensions{}) {
		t.Errorf("headers longer than the quote: %+v", got)
	}
}

// For any message, the result lies within the message.
func FuzzExtensions(f *testing.F) {
	f.Add(append(make([]byte, 128), extension(2, 0, 8, 1, 1, 1, 2, 3, 4)...), 128, 28)
	f.Fuzz(func(t *testing.T, payload []byte, quoted, skip int) {
		if quoted < 0 || quoted > 8*255 || skip < 0 || skip > len(payload) {
			return
		}
		if e := FindExtensions(payload, quoted, skip); e.At < 0 || e.At != 0 && skip+e.At+extensionHeader > len(payload) {
			t.Fatalf("%+v in %d bytes", e, len(payload))
		}
	})
}
