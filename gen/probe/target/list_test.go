package target

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestReadList(t *testing.T) {
	const text = `# whom not to ask
192.0.2.1
198.51.100.77/24   # bits behind the prefix do not count

  203.0.113.7 - 203.0.113.9
2001:db8::/120#no space needed
`
	got, err := ReadList(strings.NewReader(text))
	want := []string{"192.0.2.1", "198.51.100.0/24", "203.0.113.7-203.0.113.9", "2001:db8::/120"}
	if err != nil || !slices.Equal(texts(got), want) {
		t.Errorf("%v, %v; want %v", texts(got), err, want)
	}
}

func TestListErrorsNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1\n\nexample.org":    `line 3: "example.org" is no address, prefix or range of addresses`,
		"192.0.2.0/33":                `line 1: "192.0.2.0/33" is no address, prefix or range of addresses`,
		"192.0.2.9-192.0.2.1":         `line 1: "192.0.2.9-192.0.2.1" is no address, prefix or range of addresses`,
		"192.0.2.1-2001:db8::1":       `line 1: "192.0.2.1-2001:db8::1" is no address, prefix or range of addresses`,
		"fe80::1%eth0":                `line 1: "fe80::1%eth0" is no address, prefix or range of addresses`,
		"::ffff:192.0.2.1":            `line 1: "::ffff:192.0.2.1" is no address, prefix or range of addresses`,
		"::ffff:192.0.2.0/120":        `line 1: "::ffff:192.0.2.0/120" is no address, prefix or range of addresses`,
		"1-2-3":                       `line 1: "1-2-3" is no address, prefix or range of addresses`,
		strings.Repeat("1", 1<<16+10): `bufio.Scanner: token too long`,
	} {
		if got, err := ReadList(strings.NewReader(text)); err == nil || err.Error() != want {
			t.Errorf("%.30q: %v, %v; want %s", text, got, err, want)
		}
	}
}

// FuzzReadList checks that no list causes a panic and the ranges can be written and parsed again.
func FuzzReadList(f *testing.F) {
	f.Add("192.0.2.1\n198.51.100.0/24 # x\n203.0.113.7-203.0.113.9\n2001:db8::/120\n")
	f.Add("0.0.0.0/0\n::/0")
	f.Add("#\n\n-\n/\n")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ReadList(strings.NewReader(text))
		if err != nil {
			return
		}
		again, err := ReadList(strings.NewReader(strings.Join(texts(list), "\n")))
		if err != nil || !slices.Equal(again, list) {
			t.Errorf("%v became %v, %v", list, again, err)
		}
		Without(list, Reserved(true))
		if s, err := NewSet(list, Reserved(true)); err == nil {
			checkNumbers(t, text, s)
		}
	})
}

func TestReserved(t *testing.T) {
	for _, c := range []struct {
		addr            string
		block, isPublic bool
	}{
		{"8.8.8.8", false, true},
		{"2600::1", false, true},
		{"10.1.2.3", true, false},
		{"172.31.255.255", true, false},
		{"172.32.0.0", false, true},
		{"fd00::1", true, false},
		{"127.0.0.1", true, false},
		{"255.255.255.255", true, false},
		{"::1", true, false},
		{"ff02::1", true, false},
	} {
		a := netip.MustParseAddr(c.addr)
		if b, ok := BlockOf(a); ok != c.block || ok && b.Why == "" {
			t.Errorf("%s: %v, %v", c.addr, b, ok)
		}
		s, err := NewSet([]Range{{a, a}}, Reserved(true))
		if err != nil || (s.Len() == 1) != c.isPublic {
			t.Errorf("%s: %d left, %v", c.addr, s.Len(), err)
		}
	}
}

// Allowing private networks does not allow the other reserved addresses.
func TestReservedWithoutPrivate(t *testing.T) {
	s, err := NewSet(ranges(t, "10.0.0.0/8", "127.0.0.0/8", "192.168.1.0/24"), Reserved(false))
	if err != nil || !slices.Equal(texts(s.Ranges()), []string{"10.0.0.0/8", "192.168.1.0/24"}) {
		t.Errorf("%v, %v", texts(s.Ranges()), err)
	}
}

func TestWithout(t *testing.T) {
	got := Without(ranges(t, "192.0.2.0/24", "fd00::/16"), ranges(t, "192.0.2.0/25", "fd00::1"))
	want := []string{"192.0.2.128/25", "fd00::", "fd00::2-fd00:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}
	if !slices.Equal(texts(got), want) {
		t.Errorf("%v, want %v", texts(got), want)
	}
}
