package link

import (
	"encoding/binary"
	"testing"
)

func TestCarries(t *testing.T) {
	all := OffloadChecksum | OffloadTSO4 | OffloadTSO6 | OffloadUSO
	tso := Offload{NeedsChecksum: true, GSO: GSOTCP4, HeaderLen: 54, GSOSize: 1460}
	with := func(o Offload, change func(*Offload)) Offload { change(&o); return o }
	for _, c := range []struct {
		why      string
		offloads Offloads
		length   int
		tags     int
		offload  Offload
		want     bool
	}{
		{"the longest frame", 0, 1514, 0, Offload{}, true},
		{"longer than the MTU", 0, 1515, 0, Offload{}, false},
		{"a header alone", 0, 14, 0, Offload{}, true},
		{"less than a header", 0, 13, 0, Offload{}, false},
		{"a tag does not count", 0, 1518, 1, Offload{}, true},
		{"nor do two", 0, 1522, 2, Offload{}, true},
		{"but no more than it takes", 0, 1519, 1, Offload{}, false},
		{"at most two", 0, 1523, 3, Offload{}, false},
		{"a checksum that nobody finishes", OffloadTSO4, 60, 0, Offload{NeedsChecksum: true}, false},
		{"a checksum that the device finishes", OffloadChecksum, 60, 0, Offload{NeedsChecksum: true}, true},
		{"segments as long as the MTU", all, 60_000, 0, tso, true},
		{"segments longer than the MTU", all, 60_000, 0, with(tso, func(o *Offload) { o.GSOSize++ }), false},
		{"the wrong kind of segments", all &^ OffloadTSO4, 60_000, 0, tso, false},
		{"TSO for IPv6", all &^ OffloadTSO6, 60_000, 0, with(tso, func(o *Offload) { o.GSO = GSOTCP6 }), false},
		{"datagrams", all &^ OffloadUSO, 60_000, 0, with(tso, func(o *Offload) { o.GSO = GSOUDP }), false},
		{"an unknown kind", all, 60_000, 0, with(tso, func(o *Offload) { o.GSO = 7 }), false},
	} {
		info := Info{MTU: 1500, Offloads: c.offloads}
		f := NewFrame(c.length)
		b := f.Bytes()
		clear(b)
		for i := range c.tags {
			binary.BigEndian.PutUint16(b[12+4*i:], 0x8100)
		}
		f.Offload = c.offload
		if got := info.Carries(f); got != c.want {
			t.Errorf("%s: %v", c.why, got)
		}
		f.Free()
	}
	empty := NewFrame(0)
	defer empty.Free()
	if info := (Info{MTU: 1500, Medium: IP}); info.Carries(empty) {
		t.Error("an empty packet")
	}
}
