package memory_test

import (
	"bytes"
	"testing"

	"loam/block"
	"loam/block/blocktest"
	"loam/block/memory"
)

func TestConformance(t *testing.T) {
	for name, c := range map[string]memory.Config{
		"default": {}, "4096": {LogicalSector: 4096, MaxTransfer: 8192}, "queues": {Queues: 4},
	} {
		t.Run(name, func(t *testing.T) {
			blocktest.Run(t, func(testing.TB) block.Device { return memory.New(blocktest.MinSize, c) })
		})
	}
}

func BenchmarkDevice(b *testing.B) {
	blocktest.Bench(b, func(testing.TB) block.Device { return memory.New(blocktest.MinSize, memory.Config{}) })
}

// A write to a snapshot does not change the device that it was made from, and the reverse.
func TestSnapshot(t *testing.T) {
	d := memory.New(1<<20, memory.Config{})
	one, two := bytes.Repeat([]byte{1}, 100<<10), bytes.Repeat([]byte{2}, 512)
	write := func(d block.Device, p []byte, at int64) {
		t.Helper()
		if _, err := block.NewIO(d).WriteAt(p, at); err != nil {
			t.Fatal(err)
		}
	}
	write(d, one, 512)
	s := d.Snapshot()
	again := s.Snapshot()
	want := d.Image()
	write(d, two, 1024)
	if err := block.NewIO(s).WriteZeroes(0, 64<<10, 0); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again.Image(), want) {
		t.Error("a snapshot has changed")
	}
	if b := d.Image(); b[1024] != 2 || b[512] != 1 {
		t.Error("the origin lacks its own write")
	}
	if b := s.Image(); b[1024] != 0 || b[70<<10] != 1 {
		t.Error("the snapshot lacks its own write")
	}
}

// A device of 1 PiB takes memory only for written data, and can be resized.
func TestSparse(t *testing.T) {
	d := memory.New(1<<50, memory.Config{})
	o := block.NewIO(d)
	p := bytes.Repeat([]byte{7}, 512)
	if _, err := o.WriteAt(p, 1<<50-512); err != nil {
		t.Fatal(err)
	}
	if err := o.WriteZeroes(0, 1<<50-512, 0); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 512)
	if _, err := o.ReadAt(got, 1<<50-512); err != nil || !bytes.Equal(got, p) {
		t.Errorf("the last sector is %v, %v", got[:4], err)
	}
	d.Resize(1 << 49)
	d.Resize(1 << 50)
	<-d.Resized()
	if _, err := o.ReadAt(got, 1<<50-512); err != nil || got[0] != 0 {
		t.Errorf("what was cut off came back: %v, %v", got[:4], err)
	}
}

func TestReadOnly(t *testing.T) {
	image := bytes.Repeat([]byte("abcd"), 1<<18)
	d := memory.FromImage(image, memory.Config{ReadOnly: true})
	if !bytes.Equal(d.Image(), image) {
		t.Error("the image differs")
	}
	if err := blocktest.Do(d, 0, block.Request{Op: block.Discard, Length: 512}); err != block.ErrReadOnly {
		t.Errorf("Discard: %v", err)
	}
}
