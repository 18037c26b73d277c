package procfs

import (
	"testing"

	"loam/abi/linux"
	"loam/mem"
)

// A policy that is written is shown in brackets; other text is refused and changes nothing.
func TestPolicy(t *testing.T) {
	b := &mem.Blocks{}
	for _, test := range []struct {
		text string
		want string
		err  error
	}{
		{"", "always [madvise] never\n", linux.EINVAL},
		{"always\n", "[always] madvise never\n", nil},
		{"never", "always madvise [never]\n", nil},
		{"alway", "always madvise [never]\n", linux.EINVAL},
		{"always\n\n", "always madvise [never]\n", linux.EINVAL},
		{"madvise", "always [madvise] never\n", nil},
	} {
		if err := SetPolicy(b, test.text); err != test.err {
			t.Errorf("%q: %v, want %v", test.text, err, test.err)
		}
		if got := PolicyText(b.Policy()); got != test.want {
			t.Errorf("after %q: %q, want %q", test.text, got, test.want)
		}
	}
}
