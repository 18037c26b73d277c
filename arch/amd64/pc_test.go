package amd64

import (
	"testing"
	"time"
)

// bcd returns n as two binary-coded decimal digits, the default format of the clock.
func bcd(n int) uint8 { return uint8(n/10<<4 | n%10) }

func TestDecodeRTC(t *testing.T) {
	for at := time.Date(1996, 2, 27, 23, 59, 58, 0, time.UTC); at.Year() < 2101; at = at.Add(31*24*time.Hour + 3607*time.Second) {
		y, m, d := at.Date()
		r := [8]uint8{bcd(at.Second()), bcd(at.Minute()), bcd(at.Hour()), bcd(d), bcd(int(m)), bcd(y % 100), bcd(y / 100), 1 << 1}
		if got := DecodeRTC(r); got != at.Unix() {
			t.Fatalf("%v: %v", at, time.Unix(got, 0).UTC())
		}
		r = [8]uint8{uint8(at.Second()), uint8(at.Minute()), uint8((at.Hour()+11)%12 + 1), uint8(d), uint8(m), uint8(y % 100), uint8(y / 100), 1 << 2}
		if at.Hour() >= 12 {
			r[2] |= 1 << 7
		}
		if got := DecodeRTC(r); got != at.Unix() {
			t.Fatalf("%v, in binary and of 12 hours: %v", at, time.Unix(got, 0).UTC())
		}
	}
}

// DecodeRTC rejects invalid dates, which a clock with an empty battery returns.
func TestDecodeRTCNonsense(t *testing.T) {
	for _, r := range [][8]uint8{{}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {0, 0, 0, 0x31, 0x13}} {
		if got := DecodeRTC(r); got != 0 {
			t.Errorf("% x: %d", r, got)
		}
	}
}
