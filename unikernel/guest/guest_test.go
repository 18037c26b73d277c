package guest

import (
	"errors"
	"net/netip"
	"reflect"
	"testing"

	"loam/link"
	"loam/wire"
)

func TestRoundTrip(t *testing.T) {
	for _, c := range []Config{
		{},
		{Hostname: "web", DNS: []netip.Addr{netip.MustParseAddr("10.0.2.3"), netip.MustParseAddr("10.0.2.4")}},
		{Handed: 5, HandedFrom6: netip.MustParseAddr("fd00::2")},
		{Machine: true, Disks: []Disk{{Kind: DiskVirtio}, {Kind: DiskNVMe, FD: 5, Name: "/a b.img", Path: "/data", ReadOnly: true}, {Kind: DiskAHCI, Path: "/", Snapshot: true, Fresh: true}}, Streams: [3]uint32{0o10600, 0o20620, 1}, Ordered: true, Terminal: true},
		{Results: []string{"/tmp/a b", "/c.out"}, ResultFolders: []string{"/x"}, ResultsFD: 7},
		{Folder: "/home/a b%", User: "www-data:adm", Mounts: []Mount{{Archive: 4, Path: "/"}, {Archive: 5, Path: "/ö\n", File: true, Writable: true}, {Archive: 6, Path: "/d", Deferred: true}}},
		{Shared: []Shared{{Server: 5, Memory: 6, Path: "/a b"}, {Path: "/c", NoCache: true}}},
		{Links: []Link{
			{Kind: Socket, Name: "eth0", FDs: []int{3}, MTU: 65535, MAC: wire.MAC{2, 0, 0, 0, 0, 1},
				Address: netip.MustParsePrefix("10.0.2.15/24"), Gateway: netip.MustParseAddr("10.0.2.2"), Trace: 4,
				Address6: netip.MustParsePrefix("fd00::f/64"), Gateway6: netip.MustParseAddr("fe80::2"), Alone: true},
			{Kind: Tap, Name: "eth1", FDs: []int{5, 6}, MTU: 1500, Offloads: link.OffloadChecksum | link.OffloadTSO4},
		}},
	} {
		got, err := Decode(c.Encode())
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%q became %+v, %v", c.Encode(), got, err)
		}
	}
}

func TestMalformed(t *testing.T) {
	for _, s := range []string{"link fd=x", "link", "nonsense a=b", "link address=1", "dns address=", "host", "link mac=1", "mount archive=3", "mount path=%2", "mount path=%zz", "shared server=3", "shared cache=x", "host folder=%", "disk path=/x", "disk fd=x kind=a"} {
		if c, err := Decode(s); !errors.Is(err, errMalformed) {
			t.Errorf("%q became %+v, %v", s, c, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Config{Hostname: "h", Links: []Link{{Kind: Tap, Name: "eth0", FDs: []int{3, 4}, MTU: 1500}}}.Encode())
	f.Fuzz(func(t *testing.T, s string) {
		c, err := Decode(s)
		if err != nil {
			return
		}
		again, err := Decode(c.Encode())
		if err != nil || !reflect.DeepEqual(c, again) {
			t.Errorf("%+v became %+v, %v", c, again, err)
		}
	})
}
