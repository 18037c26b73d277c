package ext4_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"loam/block/crash"
	"loam/block/memory"
	"loam/block/trace"
	"loam/fs"
	"loam/fs/ext4"
)

// A power failure never shows a new file with content that was not written to it: the file is absent, empty or complete, whether
// fsync has returned or not. The content must be durable before the commit block that makes its blocks part of the file.
func TestContentBeforeCommit(t *testing.T) {
	image := loadImage(t, makeImage(t, "16M", "-b", "1024", "-J", "size=4", "-N", "64"))
	base := memory.FromImage(image.Image(), memory.Config{LogicalSector: 1024}) // the superblock is not torn: see CAVEATS.md
	log := &trace.Log{}
	s := mount(t, trace.New(base.Snapshot(), log), ext4.Config{Interval: time.Hour})
	v := newView(s)
	const files, size = 3, 20_000
	for i := range files {
		f, err := v.Open(v.Dir, fmt.Sprint("/file", i), fs.WriteOnly|fs.Create, 0o644)
		must(t, err)
		_, err = f.Write(bytes.Repeat([]byte{byte('a' + i)}, size))
		must(t, err)
		must(t, f.Sync())
		must(t, f.Close())
	}
	must(t, s.Close())
	cursor := crash.New(base, log.Events())
	complete := 0
	for {
		more, err := cursor.Next()
		must(t, err)
		if !more {
			break
		}
		states := []*memory.Device{cursor.Lost(), cursor.Kept()}
		for n := range uint64(min(cursor.Unsettled(), 6)) {
			states = append(states, cursor.State(n))
		}
		for _, d := range states {
			after := mount(t, d, ext4.Config{Interval: time.Hour})
			w := newView(after)
			for i := range files {
				f, err := w.Open(w.Dir, fmt.Sprint("/file", i), fs.ReadOnly, 0)
				if err != nil {
					continue // it is absent
				}
				got := make([]byte, size+1)
				n, err := f.ReadAt(got, 0)
				must(t, err)
				must(t, f.Close())
				if n > 0 && !bytes.Equal(got[:n], bytes.Repeat([]byte{byte('a' + i)}, size)) {
					t.Fatalf("after %d events, file %d has other content than was written", cursor.At(), i)
				}
				if n > 0 {
					complete++
				}
			}
			must(t, after.Close())
		}
	}
	if complete == 0 {
		t.Error("no state has a complete file")
	}
}
