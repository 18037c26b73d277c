package mem_test

import (
	"testing"

	"loam/abi/linux"
	"loam/mem"
)

// readable is an object whose content can be read. It counts its attachments.
type readable struct {
	mem.Object
	attached int
}

func (r *readable) Attach(*mem.Map)                       { r.attached++ }
func (r *readable) Detach(*mem.Map)                       { r.attached-- }
func (r *readable) ReadAt(b []byte, _ int64) (int, error) { return len(b), nil }

// Only a query with a buffer for a build ID attaches the file to the map. The file then survives munmap.
func TestQueryAttaches(t *testing.T) {
	m, _ := limited(noLimits(), &mem.Account{Total: 1 << 20})
	o := &readable{Object: mem.NewFixed(mem.Label{Path: "/f"})}
	at := mustMap(t, m, mem.Request{Length: mem.PageSize, Prot: mem.Read, Flags: mem.MapPrivate, Object: o})
	check := func(what string, want int) {
		t.Helper()
		if o.attached != want {
			t.Errorf("%s: %d attachments, want %d", what, o.attached, want)
		}
	}
	q := linux.ProcmapQuery{QueryAddr: at}
	if _, content, err := m.Query(&q); content != nil || err != nil {
		t.Errorf("without a buffer: content %v, error %v", content, err)
	}
	check("without a buffer", 1)
	q.BuildIDSize = 20
	_, content, err := m.Query(&q)
	if content == nil || err != nil {
		t.Fatalf("content %v, error %v", content, err)
	}
	check("with a buffer", 2)
	if err := m.Munmap(at, mem.PageSize); err != nil {
		t.Fatal(err)
	}
	check("after munmap", 1)
	content.Close()
	check("after Close", 0)
}
