package wire

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func dnsName(s string) DNSName {
	d, err := ParseDNSName(s)
	if err != nil {
		panic(err)
	}
	return d
}

func TestDNSNameText(t *testing.T) {
	label63 := strings.Repeat("a", 63)
	longest := strings.Join([]string{label63, label63, label63, strings.Repeat("b", 61)}, ".")
	for _, test := range []struct {
		text, wire, back string // back is the text that String returns, if it differs from text
	}{
		{".", "00", ""},
		{"a", "01 61 00", ""},
		{"www.Loam.test", "03 777777 04 4c6f616d 04 74657374 00", ""},
		{"www.Loam.test.", "03 777777 04 4c6f616d 04 74657374 00", "www.Loam.test"},
		{`a\.b.c`, "03 612e62 01 63 00", ""},
		{`a\\b`, "03 615c62 00", ""},
		{`\000\010\255`, "03 000aff 00", ""},
		{`a b`, "03 612062 00", `a\032b`},
		{`\a`, "01 61 00", "a"},
		{label63, "3f" + strings.Repeat("61", 63) + "00", ""},
		{longest, strings.Repeat("3f"+strings.Repeat("61", 63), 3) + "3d" + strings.Repeat("62", 61) + "00", ""},
	} {
		d, err := ParseDNSName(test.text)
		if err != nil || !bytes.Equal(d.AppendTo(nil), unhex(test.wire)) {
			t.Errorf("%q is % x, error %v; want %s", test.text, d.AppendTo(nil), err, test.wire)
			continue
		}
		want := test.back
		if want == "" {
			want = test.text
		}
		if got := d.String(); got != want {
			t.Errorf("%q came back as %q, want %q", test.text, got, want)
		}
	}
}

func TestDNSNameTextRefused(t *testing.T) {
	label63 := strings.Repeat("a", 63) + "."
	for _, test := range []struct {
		text string
		want error
	}{
		{"", ErrLength},
		{"..", ErrLength},
		{".a", ErrLength},
		{"a..b", ErrLength},
		{"a..", ErrLength},
		{strings.Repeat("a", 64), ErrLength},
		{strings.Repeat("a", 64) + ".b", ErrLength},
		{label63 + label63 + label63 + strings.Repeat("b", 62), ErrLength},
		{label63 + label63 + label63 + label63, ErrLength},
		{label63 + label63 + label63 + strings.Repeat("b", 61) + ".c", ErrLength},
		{strings.Repeat("a", 1000), ErrLength},
		{`a\`, ErrField},
		{`a\25`, ErrField},
		{`a\256`, ErrField},
		{`a\1x2`, ErrField},
	} {
		if d, err := ParseDNSName(test.text); !errors.Is(err, test.want) {
			t.Errorf("%.20q...: %v, error %v; want %v", test.text, d, err, test.want)
		}
	}
}

func TestDNSNameCompression(t *testing.T) {
	// RFC 1035 section 4.1.4 has this example: F.ISI.ARPA at 20, FOO.F.ISI.ARPA at
	// 40, ARPA at 64 and the root at 92.
	msg := make([]byte, 93)
	copy(msg[20:], unhex("01 46 03 495349 04 41525041 00"))
	copy(msg[40:], unhex("03 464f4f c0 14"))
	copy(msg[64:], unhex("c0 1a"))
	for _, test := range []struct {
		at   int
		want string
		next int
	}{
		{20, "F.ISI.ARPA", 32}, {40, "FOO.F.ISI.ARPA", 46}, {64, "ARPA", 66}, {92, ".", 93},
	} {
		var d DNSName
		next, err := d.parse(msg, test.at)
		if err != nil || d.String() != test.want || next != test.next {
			t.Errorf("at %d: %q up to %d, error %v; want %q up to %d", test.at, d, next, err, test.want, test.next)
		}
		if d != dnsName(test.want) {
			t.Errorf("%q is not equal to itself from another source", test.want)
		}
	}
}

func TestDNSNameRefused(t *testing.T) {
	label63 := "3f" + strings.Repeat("61", 63)
	pointers := func(n int) []byte { // a message with n pointers, each to the previous one
		b := []byte{1, 'a', 0}
		at := 0
		for range n {
			b = append(b, 0xc0|byte(at>>8), byte(at))
			at = len(b) - 2
		}
		return b
	}
	for _, test := range []struct {
		name string
		msg  []byte
		at   int
		want error
	}{
		{"nothing", nil, 0, ErrLength},
		{"a label cut off", unhex("03 6161"), 0, ErrLength},
		{"no end", unhex("01 61"), 0, ErrLength},
		{"a pointer cut off", unhex("01 61 c0"), 0, ErrLength},
		{"a pointer to itself", unhex("c0 00"), 0, ErrField},
		{"a pointer to the label in front of it", unhex("01 61 c0 00"), 0, ErrField},
		{"two pointers to each other", unhex("c0 02 c0 00"), 2, ErrField},
		{"a pointer forward", unhex("c0 02 00"), 0, ErrField},
		{"a pointer beyond the message", unhex("00 ff ff"), 1, ErrField},
		{"a label type that was never used", unhex("41 00"), 0, ErrField},
		{"the other one", unhex("80 00"), 0, ErrField},
		{"256 bytes", unhex(strings.Repeat(label63, 3) + "3e" + strings.Repeat("62", 62) + "00"), 0, ErrLength},
		{"256 bytes by way of a pointer", unhex(strings.Repeat(label63, 3) + "00 3e" + strings.Repeat("62", 62) + "c000"), 193, ErrLength},
		{"128 pointers", pointers(128), 3 + 2*127, ErrField},
	} {
		var d DNSName
		if _, err := d.parse(test.msg, test.at); !errors.Is(err, test.want) {
			t.Errorf("%s: %q, error %v; want %v", test.name, d, err, test.want)
		}
	}
	var d DNSName
	if _, err := d.parse(pointers(127), 3+2*126); err != nil || d.String() != "a" {
		t.Errorf("127 pointers: %q, error %v", d, err)
	}
}

// RFC 4343: case is preserved, and ignored in comparisons.
func TestDNSNameLower(t *testing.T) {
	a, b := dnsName(`WwW.lOam.Test@[\200`), dnsName(`wWw.LoaM.teST@[\200`)
	if a == b || a.Lower() != b.Lower() || a.Lower().String() != `www.loam.test@[\200` {
		t.Errorf("lower case of %q is %q, of %q is %q", a, a.Lower(), b, b.Lower())
	}
}

func FuzzDNSName(f *testing.F) {
	f.Add(unhex("03 777777 04 6c6f616d 00"), 0)
	f.Add(unhex("01 61 00 01 62 c0 00"), 3)
	f.Add(unhex("c0 00"), 0)
	f.Fuzz(func(t *testing.T, msg []byte, at int) {
		var d DNSName
		next, err := d.parse(msg, at&0xffff)
		if err != nil {
			return
		}
		if next <= at&0xffff || next > len(msg) {
			t.Fatalf("ends at %d of %d bytes", next, len(msg))
		}
		again, err := ParseDNSName(d.String())
		if err != nil || again != d {
			t.Fatalf("%q came back as %q, error %v", d, again, err)
		}
		var flat DNSName
		if _, err := flat.parse(d.AppendTo(nil), 0); err != nil || flat != d {
			t.Fatalf("%q was written as %q, error %v", d, flat, err)
		}
	})
}

func FuzzDNSNameText(f *testing.F) {
	f.Add("www.loam.test.")
	f.Add(`a\.b\255`)
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDNSName(s)
		if err != nil {
			return
		}
		if again, err := ParseDNSName(d.String()); err != nil || again != d {
			t.Fatalf("%q became %q and then %q, error %v", s, d, again, err)
		}
	})
}
