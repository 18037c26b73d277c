package unikernel

import (
	"bytes"
	"io"
	"testing"
)

// Of what a kernel writes to the control port the last byte counts, and no more is kept.
func TestLastByte(t *testing.T) {
	var last lastByte
	if io.Copy(&last, bytes.NewReader(nil)); last.there {
		t.Error("a status of nothing")
	}
	from := io.MultiReader(io.LimitReader(zeros{}, 1<<20), bytes.NewReader([]byte{3, 7}))
	if n, err := io.Copy(&last, from); n != 1<<20+2 || err != nil || !last.there || last.value != 7 {
		t.Errorf("%d bytes, %v: %+v", n, err, last)
	}
}

// zeros is a reader without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
