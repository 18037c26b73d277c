package boot

import (
	"bytes"
	"testing"
)

func TestArchives(t *testing.T) {
	for _, want := range [][][]byte{nil, {{}}, {[]byte("one")}, {[]byte("one"), {}, bytes.Repeat([]byte("x"), 5000)}} {
		b := EncodeArchives(want)
		for i, a := range want {
			if got, ok := Archive(b, i); !ok || !bytes.Equal(got, a) {
				t.Errorf("archive %d of %d: %q, %v", i, len(want), got, ok)
			}
		}
		for _, i := range []int{-1, len(want)} {
			if _, ok := Archive(b, i); ok {
				t.Errorf("there is an archive %d of %d", i, len(want))
			}
		}
	}
}

func FuzzArchive(f *testing.F) {
	f.Add(EncodeArchives([][]byte{[]byte("a"), []byte("b")}), 1)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		if a, ok := Archive(b, n); ok && len(a) > len(b) {
			t.Errorf("%d bytes of %d", len(a), len(b))
		}
	})
}
