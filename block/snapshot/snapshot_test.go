package snapshot_test

import (
	"bytes"
	"errors"
	"testing"

	"loam/block"
	"loam/block/blocktest"
	"loam/block/memory"
	"loam/block/snapshot"
)

func TestConformance(t *testing.T) {
	blocktest.Run(t, func(testing.TB) block.Device {
		return snapshot.New(memory.New(blocktest.MinSize, memory.Config{}), blocktest.MinSize)
	}, blocktest.Allocates)
}

// Writes to a snapshot do not change the device below it. Sectors that were not written are read from the device. The
// memory for written sectors is limited.
func TestUnchanged(t *testing.T) {
	below := memory.New(1<<20, memory.Config{})
	under := block.NewIO(below)
	old := bytes.Repeat([]byte("old "), 1<<18)
	if _, err := under.WriteAt(old, 0); err != nil {
		t.Fatal(err)
	}
	d := snapshot.New(below, 2*4096)
	defer d.Close()
	o := block.NewIO(d)
	changed := bytes.Repeat([]byte("new "), 256)
	if _, err := o.WriteAt(changed, 4096-512); err != nil {
		t.Fatal(err)
	}
	if _, err := o.WriteAt(changed, 5*4096); !errors.Is(err, block.ErrNoSpace) {
		t.Errorf("a third page: %v", err)
	}
	got := make([]byte, 1<<20)
	if _, err := o.ReadAt(got, 0); err != nil {
		t.Fatal(err)
	}
	want := bytes.Clone(old)
	copy(want[4096-512:], changed)
	if !bytes.Equal(got, want) {
		t.Error("the snapshot has other bytes than were written")
	}
	if _, err := under.ReadAt(got, 0); err != nil || !bytes.Equal(got, old) {
		t.Errorf("the device below has changed, %v", err)
	}
}
