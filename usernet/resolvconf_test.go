package usernet

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func servers(list ...string) (all []netip.AddrPort) {
	for _, s := range list {
		all = append(all, netip.MustParseAddrPort(s))
	}
	return all
}

func TestParseResolvConf(t *testing.T) {
	for _, test := range []struct {
		name, text string
		servers    []netip.AddrPort
		search     []string
	}{
		{"an empty file means a server on this host", "", servers("127.0.0.1:53"), nil},
		{"servers are asked in order", "nameserver 192.0.2.1\nnameserver 192.0.2.2\n", servers("192.0.2.1:53", "192.0.2.2:53"), nil},
		{"comments, blanks and unknown words are passed over", "# a\n; b\n\n  nameserver   192.0.2.1 # c\noptions edns0\nnameserver\nnameserver x\n", servers("192.0.2.1:53"), nil},
		{"no more than three servers", "nameserver 1.1.1.1\nnameserver 1.1.1.2\nnameserver 1.1.1.3\nnameserver 1.1.1.4\n", servers("1.1.1.1:53", "1.1.1.2:53", "1.1.1.3:53"), nil},
		{"a link-local server keeps its zone", "nameserver fe80::1%eth0", servers("[fe80::1%eth0]:53"), nil},
		{"the last of search and domain counts", "domain a.example\nsearch b.example c.example.\n", servers("127.0.0.1:53"), []string{"b.example", "c.example"}},
		{"the root is no search list", "search .\n", servers("127.0.0.1:53"), nil},
	} {
		r := parseResolvConf([]byte(test.text))
		if !slices.Equal(r.servers, test.servers) || !slices.Equal(r.search, test.search) {
			t.Errorf("%s: got %v %v", test.name, r.servers, r.search)
		}
	}
}

func TestResolvConfIsReadAgainWhenItChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resolv.conf")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := &resolvConf{path: path}
	want := func(sentence, server string) {
		t.Helper()
		if got := r.get().servers; !slices.Equal(got, servers(server)) {
			t.Errorf("%s: got %v", sentence, got)
		}
	}
	want("a file that is not there is an empty one", "127.0.0.1:53")
	write("nameserver 192.0.2.1")
	want("within a second the file is not looked at", "127.0.0.1:53")
	r.checked = r.checked.Add(-checkEvery)
	want("after it the file is read", "192.0.2.1:53")
	write("nameserver 192.0.2.111")
	r.checked = r.checked.Add(-time.Minute)
	want("and again when it has changed", "192.0.2.111:53")
}

func FuzzParseResolvConf(f *testing.F) {
	f.Add([]byte("nameserver 192.0.2.1\nsearch a b\noptions rotate\n"))
	f.Add([]byte("nameserver fe80::1%0\nsearch ."))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := parseResolvConf(text)
		if len(r.servers) == 0 || len(r.servers) > maxServers || len(r.search) > maxSearch {
			t.Fatalf("%d servers, %d domains", len(r.servers), len(r.search))
		}
	})
}
