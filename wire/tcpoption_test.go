package wire

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
)

// parseOptions parses a segment that contains these options, and returns them.
func parseOptions(flags TCPFlags, opts []byte) (TCPOptions, error) {
	b := make([]byte, TCPMinLen+(len(opts)+3)&^3)
	copy(b[TCPMinLen:], opts) // the rest is zero, which is the option end-of-list
	b[12], b[13] = uint8(len(b)/4)<<4, uint8(flags)
	h, _, err := ParseTCP(b)
	return h.TCPOptions, err
}

func TestTCPOptionsParse(t *testing.T) {
	for _, test := range []struct {
		name  string
		flags TCPFlags
		opts  string
		want  TCPOptions
	}{
		{"none", ACK, "", TCPOptions{}},
		{"nothing but padding", ACK, "01 01 01 00", TCPOptions{}},
		{"behind the end there may be anything", SYN, "00 02 04 05", TCPOptions{}},
		{"maximum segment size", SYN, "02 04 05b4", TCPOptions{MSS: 1460}},
		{"a maximum segment size of 0 says nothing", SYN, "02 04 0000", TCPOptions{}},
		{"the last of two counts", SYN, "02 04 05b4 02 04 0218", TCPOptions{MSS: 536}},
		{"maximum segment size without SYN", ACK, "02 04 05b4", TCPOptions{}},
		{"window scale", SYN, "03 03 07", TCPOptions{HasWindowScale: true, WindowScale: 7}},
		{"window scale of 0 is not the same as none", SYN, "03 03 00", TCPOptions{HasWindowScale: true}},
		{"window scale of 14", SYN, "03 03 0e", TCPOptions{HasWindowScale: true, WindowScale: 14}},
		{"window scale of 15 is read as 14", SYN, "03 03 0f", TCPOptions{HasWindowScale: true, WindowScale: 14}},
		{"window scale of 255 is read as 14", SYN | ACK, "03 03 ff", TCPOptions{HasWindowScale: true, WindowScale: 14}},
		{"window scale without SYN", ACK, "03 03 07", TCPOptions{}},
		{"SACK permitted", SYN, "04 02", TCPOptions{SACKPermitted: true}},
		{"SACK permitted without SYN", ACK, "04 02", TCPOptions{}},
		{"timestamps in an unusual place", ACK, "08 0a 00000001 00000002",
			TCPOptions{HasTimestamps: true, TSVal: 1, TSEcr: 2}},
		{"timestamps of zero are not the same as none", ACK, "0101 080a 00000000 00000000",
			TCPOptions{HasTimestamps: true}},
		{"one SACK block", ACK, "05 0a 00000001 00000002",
			TCPOptions{NumSACK: 1, SACK: [4]SACKBlock{{1, 2}}}},
		{"four SACK blocks", ACK, "05 22 0000000100000002 0000000300000004 0000000500000006 fffffff000000008",
			TCPOptions{NumSACK: 4, SACK: [4]SACKBlock{{1, 2}, {3, 4}, {5, 6}, {0xfffffff0, 8}}}},
		{"of two lists of blocks the last counts", ACK, "05 12 0000000100000002 0000000300000004 05 0a 0000000500000006",
			TCPOptions{NumSACK: 1, SACK: [4]SACKBlock{{5, 6}}}},
		{"user timeout", ACK, "1c 04 8005", TCPOptions{HasUserTimeout: true, UserTimeout: 0x8005}},
		{"kinds that Loam does not know", SYN, "fe 02 fd 04 0102 45 03 aa 02 04 05b4", TCPOptions{MSS: 1460}},
	} {
		got, err := parseOptions(test.flags, unhex(test.opts))
		if err != nil || got != test.want {
			t.Errorf("%s: parsed %+v, error %v; want %+v", test.name, got, err, test.want)
		}
	}
}

// RFC 9293 MUST-7: an implementation must handle an illegal length.
func TestTCPOptionsRefused(t *testing.T) {
	for _, opts := range []string{
		"02 00", "02 01", "08 00 0000",
		"01 01 01 02",            // the length byte is missing
		"01 01 02 04",            // the data is missing
		"02 03 05", "02 05 05b4", // known kinds with a wrong length
		"03 02", "03 04 0707", "04 03 00", "05 02", "05 09 00000000000000", "05 06 00000000",
		"08 09 00000000000000", "08 0b 000000000000000000", "1c 03 00", "1c 05 000000",
		"fe 00", "fe 01", "fe 29", // unknown kinds, whose length is invalid
	} {
		for _, flags := range []TCPFlags{SYN, ACK} {
			if got, err := parseOptions(flags, unhex(opts)); err != ErrOption {
				t.Errorf("options %s: parsed %+v, error %v; want %v", opts, got, err, ErrOption)
			}
		}
	}
}

// allTCPOptions yields every combination of the options that Loam writes.
func allTCPOptions(yield func(TCPOptions)) {
	for bits := range 32 {
		for n := range MaxSACKBlocks + 1 {
			o := TCPOptions{
				HasWindowScale: bits&1 != 0, SACKPermitted: bits&2 != 0, HasTimestamps: bits&4 != 0,
				HasUserTimeout: bits&8 != 0, NumSACK: uint8(n),
			}
			if bits&16 != 0 {
				o.MSS = 1460
			}
			if o.HasWindowScale {
				o.WindowScale = 14
			}
			if o.HasTimestamps {
				o.TSVal, o.TSEcr = 0xfffffffe, 1
			}
			if o.HasUserTimeout {
				o.UserTimeout = 30
			}
			for i := range n {
				o.SACK[i] = SACKBlock{uint32(100 * i), uint32(100*i + 50)}
			}
			yield(o)
		}
	}
}

func TestTCPOptionsRoundTrip(t *testing.T) {
	allTCPOptions(func(o TCPOptions) {
		h := TCP{Flags: SYN, TCPOptions: o}
		n := h.Len()
		if n > TCPMaxLen || n%4 != 0 {
			t.Fatalf("%+v: header of %d bytes", o, n)
		}
		b := bytes.Repeat([]byte{0xee}, n+4)
		h.Put(b)
		if !bytes.Equal(b[n:], []byte{0xee, 0xee, 0xee, 0xee}) {
			t.Fatalf("%+v: Put wrote beyond Len", o)
		}
		got, rest, err := ParseTCP(b)
		leaveOutSACK(&h.TCPOptions)
		if err != nil || got != h || len(rest) != 4 {
			t.Fatalf("put and parsed: %+v, error %v; want %+v", got.TCPOptions, err, h.TCPOptions)
		}
	})
}

// The limits of RFC 2018 section 3: four blocks, three with timestamps.
func TestTCPRoomForSACK(t *testing.T) {
	for _, test := range []struct {
		o    TCPOptions
		want int
	}{
		{TCPOptions{NumSACK: 4}, 20 + 4 + 32},
		{TCPOptions{NumSACK: 4, HasTimestamps: true}, 20 + 12 + 4 + 24},
		{TCPOptions{NumSACK: 3, HasTimestamps: true}, 20 + 12 + 4 + 24},
		{TCPOptions{NumSACK: 3, HasTimestamps: true, HasUserTimeout: true}, 20 + 12 + 4 + 4 + 16},
	} {
		h := TCP{TCPOptions: test.o}
		if got := h.Len(); got != test.want {
			t.Errorf("%+v: header of %d bytes, want %d", test.o, got, test.want)
		}
	}
}

// EachTCPOption reads all options in use today, including those without a field.
func TestEachTCPOption(t *testing.T) {
	opts := unhex(`01 22 0a 0102030405060708 ac 0b 000001 000002 000003
		1e 04 0080 1d 04 0102 13 04 abcd 00 ff`)
	var got []string
	ok := EachTCPOption(opts, func(kind TCPOption, data []byte) bool {
		got = append(got, fmt.Sprintf("%d %x", kind, data))
		return true
	})
	want := []string{
		fmt.Sprintf("%d 0102030405060708", TCPOptFastOpen),
		fmt.Sprintf("%d 000001000002000003", TCPOptAccECN0),
		fmt.Sprintf("%d 0080", TCPOptMultipath),
		fmt.Sprintf("%d 0102", TCPOptAO),
		fmt.Sprintf("%d abcd", TCPOptMD5),
	}
	if !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("options %q, well formed %v; want %q", got, ok, want)
	}
	n := 0
	if ok := EachTCPOption(opts, func(TCPOption, []byte) bool { n++; return n < 2 }); !ok || n != 2 {
		t.Errorf("called %d times, well formed %v; want to stop after 2", n, ok)
	}
	if EachTCPOption(unhex("01 22 03"), func(TCPOption, []byte) bool { return true }) {
		t.Error("an option that is cut off was not noticed")
	}
}

func TestRawTCPOptions(t *testing.T) {
	if got := RawTCPOptions(capturedRST); len(got) != 0 {
		t.Errorf("% x, want none", got)
	}
	if got := RawTCPOptions(capturedData); !bytes.Equal(got, capturedData[20:32]) {
		t.Errorf("% x, want % x", got, capturedData[20:32])
	}
}
