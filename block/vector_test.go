package block_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"loam/block"
	"loam/block/fault"
	"loam/block/memory"
)

func TestVectorCut(t *testing.T) {
	v := block.Vector{[]byte("abc"), []byte("de"), []byte("f")}
	for n, want := range []string{"[] [abc de f]", "[a] [bc de f]", "[ab] [c de f]", "[abc] [de f]", "[abc d] [e f]", "[abc de] [f]", "[abc de f] []", "[abc de f] []"} {
		head, rest := v.Cut(n)
		if got := fmt.Sprintf("%s %s", head, rest); got != want {
			t.Errorf("%d bytes: %s, want %s", n, got, want)
		}
	}
	if v.Len() != 6 || string(v[0]) != "abc" || v.Fits(2) || !v.Fits(1) {
		t.Errorf("%q has %d bytes", v, v.Len())
	}
}

// limited is a device with few segments for each request. It rejects requests with more.
type limited struct {
	*memory.Device
	segments int
}

func (l limited) Info() block.Info {
	i := l.Device.Info()
	i.MaxSegments = l.segments
	return i
}

// A transfer is split into requests that the device accepts, and keeps the order of the bytes.
func TestTransfer(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, segments := range []int{1, 3, 100} {
		d := limited{memory.New(1<<20, memory.Config{MaxTransfer: 4096}), segments}
		o := block.NewIO(d)
		data := make([]byte, 200*512)
		var v block.Vector
		for i := range data {
			data[i] = byte(rnd.Uint32())
		}
		for rest := data; len(rest) > 0; {
			n := min((1+rnd.IntN(20))*512, len(rest))
			v, rest = append(v, rest[:n]), rest[n:]
		}
		if n, err := o.Transfer(block.Write, v, 1024); n != len(data) || err != nil {
			t.Errorf("%d segments: %d, %v", segments, n, err)
		}
		got := make([]byte, len(data))
		if _, err := o.ReadAt(got, 1024); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d segments: read %v; the same: %v", segments, err, bytes.Equal(got, data))
		}
		want := bytes.Clone(data)
		clear(data)
		if n, err := o.Transfer(block.Read, v, 1024); n != len(data) || err != nil || !bytes.Equal(data, want) {
			t.Errorf("%d segments: read of %d, %v", segments, n, err)
		}
		part := make([]byte, 700)
		if err := o.ReadPart(part, 1024); err != nil || !bytes.Equal(part, want[:700]) {
			t.Errorf("read of a part: %v", err)
		}
	}
}

// A transfer reports that the device may still access the memory of any of its requests.
func TestTransferHeld(t *testing.T) {
	d := fault.New(memory.New(1<<20, memory.Config{MaxTransfer: 4096}), fault.Config{Rules: []fault.Rule{
		{From: 0, To: 4096, Times: 1}, {From: 8192, To: 12288, Times: 1, Err: block.ErrHeld},
	}})
	defer d.Close()
	if n, err := block.NewIO(d).Transfer(block.Read, block.Vector{make([]byte, 16384)}, 0); n != 0 || !errors.Is(err, block.ErrHeld) {
		t.Errorf("%d, %v", n, err)
	}
}
